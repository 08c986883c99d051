"""Explanations of BM25 scores, as Tantivy and Lucene give them: trees of values with descriptions."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from adapters.model.term_score import TermScore


class Explained(Struct, frozen=True):
    """A value, and what it was computed from."""

    value: float
    description: str
    details: tuple[Explained, ...] = ()

    def detail(self, name: str) -> Explained:
        """The detail whose description begins with a name.

        :raises ValueError: if there is none.
        """
        for each in self.details:
            if each.description.startswith(name):
                return each
        raise ValueError(f"the explanation of a score has no {name}: {self.description[:80]!r}")


def term_score(term: str, exact: bool, score: float, product: Explained) -> TermScore:
    """The parts of a score.

    :param product: the explanation of the score of one term or phrase, a product of idf, tf and constants.
    :raises ValueError: if it is not.
    """
    tf = product.detail("freq / (" if product.description.startswith("TermQuery") else "tf, ")
    if not tf.details:
        raise ValueError("the explanation of a score has no frequency")
    return TermScore(
        term,
        exact,
        score,
        idf=product.detail("idf").value,
        tf=tf.value,
        frequency=tf.details[0].value,
        length=tf.detail("dl, ").value,
    )


def best_form(scores: Iterable[TermScore]) -> TermScore:
    """The best of the forms in which a compound is searched.

    :raises ValueError: if there is none.
    """
    return max(scores, key=lambda each: (each.score, each.term))


def summed(scores: Iterable[TermScore]) -> tuple[TermScore, ...]:
    """Each term once, with the sum of its scores; the best first, equal ones by term."""
    by_term: dict[tuple[str, bool], TermScore] = {}
    for each in scores:
        before = by_term.get((each.term, each.exact))
        by_term[each.term, each.exact] = replace(before, score=before.score + each.score) if before else each
    return tuple(sorted(by_term.values(), key=lambda each: (-each.score, each.term, each.exact)))
