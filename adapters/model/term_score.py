"""What a term of a query adds to the score of a document."""

from __future__ import annotations

from msgspec import Struct


class TermScore(Struct, frozen=True, gc=False):
    """A term of a query that a document has: the scores of all of them add up to the document's score by BM25.

    :param term: as it is indexed, so a word by its stem; the words of a phrase have spaces between them.
    :param exact: whether it is searched as it is written, without stemming, and as a phrase if it has several words.
    :param score: ``weight * 2.2 * idf * tf``; a word that the query has twice counts twice, an expansion half. A
        server's release of Lucene may compute scores without the factor 2.2.
    :param idf: how rare it is among the documents, ``log(1 + (N - n + .5) / (n + .5))`` for ``n`` of ``N``; of a
        phrase, the sum of its words.
    :param tf: in [0, 1], ``f / (f + 1.2 * (.25 + .75 * length / average length))`` for the frequency ``f``.
    :param frequency: how often the document has it.
    :param length: of the document in terms, approximately: an index stores lengths in one byte.
    """

    term: str
    exact: bool
    score: float
    idf: float
    tf: float
    frequency: float
    length: float
