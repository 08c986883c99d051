"""The client for ``async`` code, with the methods of ``synchronous.py``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from http import HTTPStatus
from types import TracebackType
from typing import Any, TypeVar

import anyio

from adapters.model.document import Document
from adapters.model.feedback import FeedbackKind
from orchestrator.client import batches, calls, indexing
from orchestrator.client.batches import BatchOutcome, LineSplitter, Part, Query
from orchestrator.client.calls import Attempts, Call
from orchestrator.client.errors import TriviumError
from orchestrator.client.indexing import IndexOutcome, Input
from orchestrator.client.packages import httpx2
from orchestrator.client.retries import DEFAULT, Retries, RetryBudget
from orchestrator.schema.documents import CollectionCount, DeleteManyResponse, DeleteResponse, NeighborsResponse
from orchestrator.schema.feedback import FeedbackResponse
from orchestrator.schema.search import SearchRequest, SearchResponse

T = TypeVar("T")


class AsyncClient:
    """A client of one service, for one event loop of asyncio or trio. A context manager, which closes its connections.

    :param url: of the service, such as ``http://127.0.0.1:8080``.
    :param key: the API key.
    :param user: on whose behalf the calls are made, and ``teams``: of the user, if the key has neither of its own.
    :param timeout_s: time limit of each call, its retries included; each method may have another one.
    :param connections: that are open at the same time, at most.
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        user: str | None = None,
        teams: Sequence[str] | None = None,
        timeout_s: float = 10.0,
        retries: Retries = DEFAULT,
        connections: int = 100,
    ) -> None:
        self._url = url.rstrip("/")
        self._timeout_s = timeout_s
        self._budget = RetryBudget(retries)
        self._http = httpx2.AsyncClient(**calls.connection_options(url, key, connections, user, teams))

    async def search(
        self, query: str | SearchRequest, *, timeout_s: float | None = None, **fields: object
    ) -> SearchResponse:
        """See :meth:`orchestrator.client.Client.search`."""
        return await self.send(calls.search(query, fields), timeout_s)

    async def explain(
        self, query: str | SearchRequest, *, timeout_s: float | None = None, **fields: object
    ) -> SearchResponse:
        """See :meth:`orchestrator.client.Client.explain`."""
        return await self.search(query, timeout_s=timeout_s, **{**fields, "explain": True})

    async def pages(
        self, query: str | SearchRequest, *, timeout_s: float | None = None, **fields: object
    ) -> AsyncIterator[SearchResponse]:
        """See :meth:`orchestrator.client.Client.pages`."""
        response = await self.search(query, timeout_s=timeout_s, **fields)
        yield response
        while response.next_cursor:
            response = await self.search(query, timeout_s=timeout_s, **{**fields, "cursor": response.next_cursor})
            yield response

    async def search_batch(
        self, queries: Iterable[Query], *, timeout_s: float = batches.TIMEOUT_S
    ) -> AsyncIterator[BatchOutcome]:
        """See :meth:`orchestrator.client.Client.search_batch`."""
        for part in batches.parts(queries):
            while not part.is_done:
                call, done = part.call(), part.done
                attempts = Attempts(call, self._url, timeout_s, self._budget)
                while part.done == done:
                    try:
                        async for outcome in self._outcomes(part, call, attempts):
                            yield outcome
                    except TriviumError as error:
                        if part.done == done:
                            await anyio.sleep(attempts.delay_s(error))

    async def _outcomes(self, part: Part, call: Call[Any], attempts: Attempts) -> AsyncIterator[BatchOutcome]:
        splitter = LineSplitter()
        with attempts.errors():
            async with self._http.stream(**call.options(attempts.begin_s())) as response:
                if response.status_code != HTTPStatus.OK:
                    content = await response.aread()
                    call.response(response.status_code, response.headers.get("retry-after"), content)
                contents = response.aiter_bytes()
                while True:
                    with anyio.fail_after(attempts.remaining_s()):
                        content = await anext(contents, b"")
                    if not content:
                        break
                    for outcome in map(part.outcome, splitter.feed(content)):
                        yield outcome
        attempts.require_all(part.is_done)

    async def feedback(
        self,
        query_id: str,
        id_: str,
        kind: FeedbackKind,
        *,
        collection: str | None = None,
        position: int | None = None,
        timeout_s: float | None = None,
    ) -> FeedbackResponse:
        """See :meth:`orchestrator.client.Client.feedback`."""
        return await self.send(calls.feedback(query_id, id_, kind, collection, position), timeout_s)

    async def index(
        self,
        documents: Iterable[Input],
        *,
        chunk: bool = False,
        replace_chunks: bool = False,
        on_progress: Callable[[int], None] = lambda _: None,
        timeout_s: float = 60.0,
    ) -> IndexOutcome:
        """See :meth:`orchestrator.client.Client.index`."""
        outcome, sent = IndexOutcome(), 0
        for content, count in indexing.requests(documents, in_one=replace_chunks):
            outcome.add(await self.send(calls.index(content, chunk, replace_chunks), timeout_s), sent)
            sent += count
            on_progress(count)
        return outcome

    async def get(self, id_: str, *, collection: str | None = None, timeout_s: float | None = None) -> Document:
        """See :meth:`orchestrator.client.Client.get`."""
        return await self.send(calls.get(id_, collection), timeout_s)

    async def neighbors(
        self, id_: str, *, collection: str | None = None, limit: int | None = None, timeout_s: float | None = None
    ) -> NeighborsResponse:
        """See :meth:`orchestrator.client.Client.neighbors`."""
        return await self.send(calls.neighbors(id_, collection, limit), timeout_s)

    async def documents(
        self,
        *,
        collection: str | None = None,
        filter: Mapping[str, Any] | None = None,  # as in the API
        timeout_s: float | None = None,
    ) -> AsyncIterator[Document]:
        """See :meth:`orchestrator.client.Client.documents`."""
        cursor: str | None = None
        while True:
            page = await self.send(calls.page(collection, filter, cursor), timeout_s)
            for document in page.documents:
                yield document
            cursor = page.next_cursor
            if cursor is None:
                return

    async def delete(
        self, id_: str, *, collection: str | None = None, with_chunks: bool = True, timeout_s: float | None = None
    ) -> DeleteResponse:
        """See :meth:`orchestrator.client.Client.delete`."""
        return await self.send(calls.delete(id_, collection, with_chunks), timeout_s)

    async def delete_many(
        self,
        filter: Mapping[str, Any],  # as in the API
        *,
        dry_run: bool = False,
        timeout_s: float = 60.0,
    ) -> DeleteManyResponse:
        """See :meth:`orchestrator.client.Client.delete_many`."""
        return await self.send(calls.delete_many(filter, dry_run), timeout_s)

    async def collections(self, *, timeout_s: float | None = None) -> tuple[CollectionCount, ...]:
        """See :meth:`orchestrator.client.Client.collections`."""
        return (await self.send(calls.collections(), timeout_s)).collections

    async def close(self) -> None:
        """See :meth:`orchestrator.client.Client.close`."""
        await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def send(self, call: Call[T], timeout_s: float | None = None) -> T:
        """See :meth:`orchestrator.client.Client.send`."""
        attempts = Attempts(call, self._url, self._timeout_s if timeout_s is None else timeout_s, self._budget)
        while True:
            try:
                return await self._attempt(call, attempts)
            except TriviumError as error:
                await anyio.sleep(attempts.delay_s(error))

    async def _attempt(self, call: Call[T], attempts: Attempts) -> T:
        remaining_s = attempts.begin_s()
        with attempts.errors():
            with anyio.fail_after(remaining_s):
                response = await self._http.request(**call.options(remaining_s))
        return call.response(response.status_code, response.headers.get("retry-after"), response.content)
