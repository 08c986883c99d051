"""Records which documents searches return, and what users say about them.

A response is recorded after it is complete: it waits in a queue of limited size, which a background task writes twice a
second. Only the caller's own tenant and environment can give feedback to it, and delete it.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from time import time

import anyio
import anyio.to_thread
import msgspec

from adapters import AdapterError, Scope, Viewer
from adapters.model.feedback import Feedback, Hit, ShownResponse
from adapters.model.spelling import allowed_names
from adapters.storage.feedback_store import FeedbackStore
from orchestrator.auth.principal import Forbidden, Principal
from orchestrator.planning.errors import BadRequest
from orchestrator.schema.feedback import DeletedFeedback, FeedbackRequest, FeedbackResponse
from orchestrator.schema.search import SearchRequest
from orchestrator.service.admission import Admission
from orchestrator.service.errors import Ambiguous, NotFound
from orchestrator.service.response_cache import EncodedResponse

_log = logging.getLogger(__name__)

_WRITE_S = 0.5
"""Seconds between two writes of the responses."""
_MAX_CONCURRENT, _MAX_WAITING = 1, 256
"""Feedback of all tenants that is written, and that waits: the file has one writer at a time."""
_TIMEOUT_S = 5.0
"""How long feedback waits for its turn."""
_MAX_WAITING_BYTES = 16_777_216
"""Of the responses that wait to be recorded; the others are not."""


class _Hit(msgspec.Struct):
    collection: str
    id: str
    parent_id: str | None = None


class _Body(msgspec.Struct):
    """What is needed of the body of a response."""

    hits: list[_Hit]
    profiles: tuple[str | None, ...] = ()


@dataclass(frozen=True, slots=True)
class _Returned:
    query_id: str
    scope: Scope
    viewer: Viewer
    at: float
    query: str
    offset: int
    content: bytes

    @property
    def bytes(self) -> int:
        """Memory that it needs, about: a character may need four bytes."""
        return len(self.content) + 4 * len(self.query)


class FeedbackService:
    """The feedback of a process. It belongs to one event loop.

    :param store: ``None`` if nothing is recorded.
    :param keeps_texts: whether the texts of queries are stored; otherwise only their hashes are.
    :param now: in seconds since the epoch.
    """

    def __init__(self, store: FeedbackStore | None, keeps_texts: bool, now: Callable[[], float] = time) -> None:
        self.recorded = self.dropped = 0
        """Responses since the start."""
        self._store = store
        self._keeps_texts = keeps_texts
        self._now = now
        self._admission = Admission(_MAX_CONCURRENT, _MAX_WAITING)
        self._waiting: list[_Returned] = []
        self._waiting_bytes = 0
        self._has_failed = False

    @property
    def is_on(self) -> bool:
        """Whether responses are recorded."""
        return self._store is not None

    def offer(self, request: SearchRequest, principal: Principal, request_id: str, response: EncodedResponse) -> None:
        """Record a response to a query soon. Never waits."""
        del request_id
        plan = response.plan
        if self._store is None or plan.listing is not None or plan.like is not None:
            return
        returned = _Returned(
            response.query_id,
            principal.scope,
            principal.viewer,
            self._now(),
            request.query,
            plan.page.offset,
            response.content,
        )
        if self._waiting_bytes + returned.bytes > _MAX_WAITING_BYTES:
            self.dropped += 1
            return
        self._waiting.append(returned)
        self._waiting_bytes += returned.bytes

    async def run(self) -> None:
        """Write the responses that wait, until this is cancelled. Errors are logged."""
        while True:
            await asyncio.sleep(_WRITE_S)
            await self.flush()

    async def flush(self) -> None:
        """Write the responses that wait. The first of several failures in a row is logged."""
        try:
            await self._write()
        except Exception as error:
            if not self._has_failed:
                reason = error.for_operators if isinstance(error, AdapterError) else type(error).__name__
                _log.exception("responses cannot be recorded for feedback: %s", reason)
            self._has_failed = True
        else:
            self._has_failed = False

    async def give(self, given: FeedbackRequest, principal: Principal) -> FeedbackResponse:
        """Record feedback.

        :raises NotFound: if nothing is recorded, or the principal's tenant and environment have no such response to a
            caller that sees no more than it.
        :raises BadRequest: if it has no such hit.
        :raises Ambiguous: if hits of several collections have the id, and none is named.
        :raises Overloaded: if too much is waiting.
        :raises AdapterError: if it cannot be stored.
        """
        store, tenant = self._required_store(), principal.scope.tenant
        async with self._admission.slot(tenant, _TIMEOUT_S):
            await self._write()
            shown = await anyio.to_thread.run_sync(store.find, principal.scope, given.query_id)
        if shown is None:
            await asyncio.sleep(_WRITE_S)  # another process may have returned it, and records it within this time
            async with self._admission.slot(tenant, _TIMEOUT_S):
                shown = await anyio.to_thread.run_sync(store.find, principal.scope, given.query_id)
        if shown is None or not principal.viewer.covers(shown.viewer):
            raise _unknown(given.query_id)
        number = _number_of(given, shown.hits)
        position = shown.first + number if given.position is None else given.position
        feedback = Feedback(given.query_id, number, given.kind, position, self._now())
        async with self._admission.slot(tenant, _TIMEOUT_S):
            if not await anyio.to_thread.run_sync(store.record, feedback):
                raise _unknown(given.query_id)
        collection, id_, _ = shown.hits[number]
        return FeedbackResponse(
            query_id=given.query_id, id=id_, collection=collection, kind=given.kind, position=position
        )

    async def delete(self, principal: Principal) -> DeletedFeedback:
        """Delete everything that was recorded for the principal's tenant and environment.

        :raises Forbidden: if the principal acts for a user or teams: what is deleted is that of all users.
        :raises NotFound: if nothing is recorded.
        :raises Overloaded: if too much is waiting.
        :raises AdapterError: if it cannot be deleted.
        """
        if principal.viewer.is_narrowed:
            raise Forbidden("feedback is deleted for all users of a tenant, by a request that names no user or team")
        store = self._required_store()
        async with self._admission.slot(principal.scope.tenant, _TIMEOUT_S):
            await self._write()
            return DeletedFeedback(*await anyio.to_thread.run_sync(store.delete, principal.scope, self._now()))

    def _required_store(self) -> FeedbackStore:
        if self._store is None:
            raise NotFound("this service records no feedback: TRIVIUM_FEEDBACK is nothing")
        return self._store

    async def _write(self) -> None:
        """Write the responses that wait. Those that cannot be written are lost, and counted."""
        if not self._waiting or self._store is None:
            return
        returned, self._waiting = self._waiting, []
        try:
            with anyio.CancelScope(shield=True):  # it waits two seconds at most for another process
                await anyio.to_thread.run_sync(self._add, self._store, returned)
        except Exception:
            self.dropped += len(returned)
            raise
        finally:
            self._waiting_bytes -= sum(each.bytes for each in returned)
        self.recorded += len(returned)

    def _add(self, store: FeedbackStore, returned: list[_Returned]) -> None:
        decode = msgspec.json.Decoder(_Body).decode
        bodies = [decode(each.content) for each in returned]
        store.add(
            [
                ShownResponse(
                    each.query_id,
                    each.scope,
                    each.viewer,
                    each.at,
                    query_hash(each.query),
                    each.query if self._keeps_texts else None,
                    each.offset + 1,
                    tuple((hit.collection, hit.id, hit.parent_id or hit.id) for hit in body.hits),
                    body.profiles,
                )
                for each, body in zip(returned, bodies, strict=True)
            ]
        )


def query_hash(text: str) -> str:
    """The hash that is stored instead of the text of a query. White space makes no difference to it.

    It does not keep a query secret: a guessed text can be checked against it.
    """
    return hashlib.blake2b(" ".join(text.split()).encode(), digest_size=16).hexdigest()


def _unknown(query_id: str) -> NotFound:
    return NotFound(f"query_id: {query_id!r} is of no response that is recorded for this tenant and environment")


def _number_of(given: FeedbackRequest, hits: tuple[Hit, ...]) -> int:
    named = [
        number
        for number, (collection, id_, _) in enumerate(hits)
        if id_ == given.id and given.collection in (None, collection)
    ]
    if not named:
        if collections := [collection for collection, id_, _ in hits if id_ == given.id]:
            raise BadRequest(f"collection: {given.collection!r}, {allowed_names(given.collection or '', collections)}")
        raise BadRequest(
            f"id: {given.id[:80]!r} is no hit of this response, "
            + (allowed_names(given.id, [id_ for _, id_, _ in hits]) or "it has none")
        )
    if len(named) > 1:
        names = ", ".join(hits[number][0] for number in named)
        raise Ambiguous(f"collection: hits of {names} have the id {given.id[:80]!r}; name one")
    return named[0]
