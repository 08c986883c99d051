"""Plans of recent requests: planning takes longer than looking up what was planned before."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from cachetools import LRUCache

from orchestrator.planning.errors import BadRequest
from orchestrator.planning.plan import Plan
from orchestrator.planning.plan_key import plan_hash
from orchestrator.schema.search import SearchRequest

_MAX_BYTES = 4_194_304
"""Maximum size of the encoded requests whose plans are cached. A plan needs about ten times the memory of its
request."""
_OVERHEAD = 512
"""Bytes that are added to the size of each request."""


class _Planned(msgspec.Struct, frozen=True, gc=False):
    """A plan with its hash, and its size as part of :data:`_MAX_BYTES`."""

    plan: Plan
    hash: bytes
    size: int


class PlanCache:
    """Plans with their hashes, by request and by what else decides them."""

    def __init__(self) -> None:
        self._plans: LRUCache[tuple[object, ...], _Planned] = LRUCache(_MAX_BYTES, getsizeof=lambda each: each.size)

    def get(self, request: SearchRequest, others: tuple[object, ...], make: Callable[[], Plan]) -> tuple[Plan, bytes]:
        """The plan of a request, and its hash.

        :param others: everything but the request that decides the plan.
        :param make: makes the plan.
        :raises BadRequest: if a text of the request is not Unicode.
        """
        try:
            encoded = msgspec.msgpack.encode(request)  # the dictionaries of a request cannot be hashed
        except OverflowError:  # a whole number of more than 64 bits
            encoded = repr(request).encode("utf-8", "surrogatepass")
        except UnicodeEncodeError as error:
            field = "query" if _has_surrogates(request.query) else "a text of the request"
            raise BadRequest(f"{field}: cannot be encoded as UTF-8, at character {error.start + 1}") from error
        key = (encoded, *others)
        planned = self._plans.get(key)
        if planned is None:
            plan = make()
            planned = self._plans[key] = _Planned(plan, plan_hash(plan), _OVERHEAD + len(encoded))
        return planned.plan, planned.hash


def _has_surrogates(text: str) -> bool:
    return any("\ud800" <= letter <= "\udfff" for letter in text)
