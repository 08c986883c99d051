"""Where an answer ended, in a form that nobody needs to read: the next page goes on from there."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Annotated

import msgspec
from msgspec import Meta

from adapters.filter import Filter
from cache import key
from orchestrator.caller import Caller
from orchestrator.contract import SearchRequest

_VERSION = 1
BYTES = 8
"""Of a digest: enough for a mistake to be noticed."""


class Cursor(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A place in the ranking of one request, and what has to be the same for that to be the same ranking.

    ``depth`` is how much was asked of the sources, ``day`` the one (since the epoch) that ages are counted from,
    ``encoder`` what made the query's vector, and ``basis`` who answered and how that was put together. Anybody can
    write one, so it may ask for nothing that a request may not.
    """

    version: int
    request: bytes
    basis: bytes
    generation: int
    offset: Annotated[int, Meta(ge=0, le=1_000_000)]
    depth: Annotated[int, Meta(ge=1, le=1_000_000)]
    day: Annotated[int, Meta(ge=0, le=1_000_000)]
    encoder: str

    @classmethod
    def read(cls, written: str, request: bytes, deepest: int) -> Cursor:
        """What :meth:`__str__` wrote for the same request.

        :param deepest: what a request can ask of the sources.

        :raises ValueError: if it is none, or one of another request.
        """
        try:
            found = msgspec.msgpack.decode(urlsafe_b64decode(written.encode("ascii")), type=cls)
        except ValueError:  # msgspec's, binascii's and the codec's are all of this kind
            raise ValueError("no cursor of ours, give the next_cursor of an answer") from None
        if found.version != _VERSION or found.request != request:
            raise ValueError("belongs to another request: everything but limit must stay as it was")
        if found.depth > deepest:
            raise ValueError("no cursor of ours, give the next_cursor of an answer")
        return found

    @classmethod
    def at(
        cls, offset: int, request: bytes, basis: bytes, generation: int, depth: int, day: int, encoder: str
    ) -> Cursor:
        """A new one."""
        return cls(_VERSION, request, basis, generation, offset, depth, day, encoder)

    def __str__(self) -> str:
        return urlsafe_b64encode(msgspec.msgpack.encode(self)).decode()


def digest(request: SearchRequest, wanted: Filter, caller: Caller) -> bytes:
    """Of all that decides a ranking; nothing is opened by it.

    :param wanted: the request's filter in normal form, within what the caller may see.
    """
    return key(*deciding(request, wanted, caller))[:BYTES]


def deciding(request: SearchRequest, wanted: Filter, caller: Caller) -> tuple[object, ...]:
    """All that decides a ranking, in canonical form.

    :param wanted: as for :func:`digest`.
    """
    return (
        request.query,
        request.vector,
        request.mode,
        wanted,
        request.fusion,
        sorted(request.weights.items()),
        sorted(request.boosts.items()),
        request.collapse,
        request.neighbors,
        request.min_score,
        caller,
    )
