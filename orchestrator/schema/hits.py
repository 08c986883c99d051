"""The hits of a response."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from msgspec import UNSET, Struct, UnsetType

from adapters.model.document import Metadatum
from adapters.model.protection import Sensitivity, Visibility
from fusion.values import Contribution


class RerankedHit(Struct, frozen=True):
    """The rank that the reranker gave to a hit, from 1, and its score on the reranker's own scale, if there is one."""

    rank: int
    score: float | None


class SearchHit(Struct, frozen=True, gc=False):
    """One document. ``sources`` has every source: null if it was not searched, failed, or did not return the document.

    ``confidence`` is how sure it is, in [0, 1], that the document answers the query, compared with queries that the
    documents do not answer; null if that was not measured. ``method`` is the name of the source that returned it, or
    ``hybrid`` if several did, or ``filter`` in a list; ``found_in`` names every list that it was found in, as
    ``source/collection``.

    For citations: ``url``, ``parent_id``, ``chunk_index``; ``heading_path`` and ``chunker_version`` of the metadata;
    ``source_span``, start and end (exclusive) of the hit in the parent document, in characters, null if the document
    has no ``parent_start``; and ``span``, the same within ``text``. ``window_id`` names the window of chunks of
    ``collapse: window``. ``section`` is the innermost heading above a chunk.

    ``neighbor_ids``: the chunks that ``neighbors`` adds to ``text``; without it those right before and after the hit.

    ``snippet`` is the part of the text with most words of the query, as HTML: they are in ``<mark>``, and everything
    else is escaped; null without ``highlight``. A field that the request's ``fields`` leave out is not in the JSON.
    """

    id: str
    parent_id: str | None
    collection: str
    title: str
    text: str
    snippet: str | None
    url: str | None
    created_at: datetime | None
    importance: float | None
    sensitivity: Sensitivity
    visibility: Visibility
    tags: tuple[str, ...]
    language: str | None
    metadata: dict[str, Metadatum]
    score: float
    fusion_score: float
    confidence: float | None
    method: str
    found_in: tuple[str, ...]
    sources: Mapping[str, Contribution | None]
    boosts: Mapping[str, float]
    embedding_model: str
    chunker_version: str | None
    chunk_index: int | None
    heading_path: tuple[str, ...]
    section: str | None
    window_id: str | None
    span: tuple[int, int]
    source_span: tuple[int, int] | None
    neighbor_ids: tuple[str, ...]
    rerank: RerankedHit | UnsetType = UNSET


class ContextText(Struct, frozen=True):
    """The passages of the hits as one text: passage ``[3]`` is that of the third hit.

    :param tokens: of the text, by the tokenizer of the embedding model.
    :param hits: the number of hits whose passages are in the text.
    :param cut: whether the last passage is cut, or a hit has none.
    """

    text: str
    tokens: int
    hits: int
    cut: bool


HIT_FIELDS = SearchHit.__struct_fields__
ALWAYS_RETURNED = ("id", "collection")
"""The fields of a hit that a request cannot leave out."""
