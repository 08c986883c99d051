"""The token of the next page: where it begins, and what has to be the same for the ranking to be the same.

Nothing is stored between pages: the ranking is computed again. A client can forge a token, so a token may not request
more than a request may.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Annotated

import msgspec
from msgspec import Meta

from orchestrator.schema.search import EncoderUsed

_FORMAT = 1
HASH_BYTES = 8
"""Length of a hash in a token: long enough to detect a mistake. A token is not a security measure."""


class PageToken(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A position in the ranking of one request.

    :param ranking_hash: hash of everything in the request that decides the ranking.
    :param execution_hash: hash of how the ranking was computed: which sources succeeded, and how they were fused.
    :param depth: number of documents that each source was searched for.
    :param day: the day that ages are counted from, in days since the epoch.
    :param encoder: the encoder of the query.
    """

    format: int
    ranking_hash: bytes
    execution_hash: bytes
    generation: int
    offset: Annotated[int, Meta(ge=0, le=1_000_000)]
    depth: Annotated[int, Meta(ge=1, le=1_000_000)]
    day: Annotated[int, Meta(ge=0, le=1_000_000)]
    encoder: EncoderUsed

    @classmethod
    def decode(cls, text: str, ranking_hash: bytes, max_depth: int) -> PageToken:
        """A token that :meth:`encode` wrote for the same request.

        :param max_depth: the largest depth that a request can have.
        :raises ValueError: if it is no token, or one of another request.
        """
        try:
            token = msgspec.msgpack.decode(urlsafe_b64decode(text.encode("ascii")), type=cls)
        except ValueError:  # the errors of msgspec, binascii and the codec are all of this type
            raise ValueError("not a cursor of this service, give the next_cursor of a response") from None
        if token.format != _FORMAT or token.ranking_hash != ranking_hash:
            raise ValueError("belongs to another request: everything but limit must stay the same")
        if token.depth > max_depth:
            raise ValueError("not a cursor of this service, give the next_cursor of a response")
        return token

    @classmethod
    def at(
        cls,
        offset: int,
        ranking_hash: bytes,
        execution_hash: bytes,
        generation: int,
        depth: int,
        day: int,
        encoder: EncoderUsed,
    ) -> PageToken:
        """A token of the current format."""
        return cls(_FORMAT, ranking_hash, execution_hash, generation, offset, depth, day, encoder)

    def encode(self) -> str:
        """The token as text, for ``next_cursor``."""
        return urlsafe_b64encode(msgspec.msgpack.encode(self)).decode()
