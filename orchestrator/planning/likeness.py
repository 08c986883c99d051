"""Requests for documents that are like others, instead of a query."""

from __future__ import annotations

from msgspec import Struct

from orchestrator.planning.errors import BadRequest
from orchestrator.schema.search import Like, SearchRequest


class LikePlan(Struct, frozen=True, gc=False):
    """What the hits are like.

    :param ids: of documents, in ``collection``, or in the only one that has them if it is ``None``.
    :param text: empty if the documents are all.
    """

    ids: tuple[str, ...]
    collection: str | None
    text: str


def like_plan(request: SearchRequest, max_chars: int) -> LikePlan | None:
    """What the hits of a request are like; ``None`` if it has a query.

    :param max_chars: maximum length of the text.
    :raises BadRequest: if the request has a field that does not go with that, or the text is not allowed.
    """
    like = request.like
    if like is None:
        return None
    if request.query:
        raise BadRequest("like: allowed if query is empty")
    if request.min_confidence:
        raise BadRequest("min_confidence: allowed with a query; how alike documents are is not measured")
    _check(like, max_chars)
    return LikePlan(tuple(dict.fromkeys(like.ids)), like.collection, like.text)


def _check(like: Like, max_chars: int) -> None:
    if not like.ids and not like.text.strip():
        raise BadRequest("like: empty, give ids, a text, or both")
    if like.collection is not None and not like.ids:
        raise BadRequest("like: a collection is allowed with ids")
    if len(like.text) > max_chars:
        raise BadRequest(f"like: a text of {len(like.text)} characters, allowed are {max_chars}")
