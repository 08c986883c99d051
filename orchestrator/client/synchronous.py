"""The client for synchronous code. ``asynchronous.py`` has the same methods."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from http import HTTPStatus
from types import TracebackType
from typing import Any, TypeVar

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


class Client:
    """A client of one service. May be used by several threads; a context manager, which closes its connections.

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
        self._http = httpx2.Client(**calls.connection_options(url, key, connections, user, teams))

    def search(self, query: str | SearchRequest, *, timeout_s: float | None = None, **fields: object) -> SearchResponse:
        """Search. The time limit is passed on to the service as ``timeout_ms``, if the request has none.

        :param fields: of the request, as in ``POST /v1/search``: ``limit``, ``filter``, ``collections``, …
        :raises TriviumError: see :mod:`orchestrator.client.errors`.
        """
        return self.send(calls.search(query, fields), timeout_s)

    def explain(
        self, query: str | SearchRequest, *, timeout_s: float | None = None, **fields: object
    ) -> SearchResponse:
        """Search with the explanation of the plan and of every score."""
        return self.search(query, timeout_s=timeout_s, **{**fields, "explain": True})

    def pages(
        self, query: str | SearchRequest, *, timeout_s: float | None = None, **fields: object
    ) -> Iterator[SearchResponse]:
        """The pages of a search, each requested when it is asked for. The time limit is that of each page."""
        response = self.search(query, timeout_s=timeout_s, **fields)
        yield response
        while response.next_cursor:
            response = self.search(query, timeout_s=timeout_s, **{**fields, "cursor": response.next_cursor})
            yield response

    def search_batch(self, queries: Iterable[Query], *, timeout_s: float = batches.TIMEOUT_S) -> Iterator[BatchOutcome]:
        """The outcome of each search, in order, as it comes. Searches are sent in parts; after a lost connection the
        rest of a part is sent again, so no outcome is lost and none comes twice.

        :param queries: any number of them; they are read as they are sent.
        :param timeout_s: of each part of at most 64 searches.
        :raises TriviumError: if a part cannot be sent, or the service refuses it as a whole.
        """
        for part in batches.parts(queries):
            while not part.is_done:
                call, done = part.call(), part.done
                attempts = Attempts(call, self._url, timeout_s, self._budget)
                while part.done == done:  # further attempts begin anew after each that got on
                    try:
                        yield from self._outcomes(part, call, attempts)
                    except TriviumError as error:
                        if part.done == done:
                            time.sleep(attempts.delay_s(error))

    def _outcomes(self, part: Part, call: Call[Any], attempts: Attempts) -> Iterator[BatchOutcome]:
        splitter = LineSplitter()
        with attempts.errors(), self._http.stream(**call.options(attempts.begin_s())) as response:
            if response.status_code != HTTPStatus.OK:
                call.response(response.status_code, response.headers.get("retry-after"), response.read())
            for content in response.iter_bytes():
                attempts.remaining_s()
                yield from map(part.outcome, splitter.feed(content))
        attempts.require_all(part.is_done)

    def feedback(
        self,
        query_id: str,
        id_: str,
        kind: FeedbackKind,
        *,
        collection: str | None = None,
        position: int | None = None,
        timeout_s: float | None = None,
    ) -> FeedbackResponse:
        """Say what became of a hit.

        :param query_id: of the response that had it.
        :param id_: of the hit.
        :param kind: ``used``, ``useful`` or ``not_useful``.
        :param position: where it was shown, from 1; by default its position in the response.
        :raises NotFound: if the service has not recorded the response.
        :raises Conflict: if hits of several collections have the id, and none is named.
        """
        return self.send(calls.feedback(query_id, id_, kind, collection, position), timeout_s)

    def index(
        self,
        documents: Iterable[Input],
        *,
        chunk: bool = False,
        replace_chunks: bool = False,
        on_progress: Callable[[int], None] = lambda _: None,
        timeout_s: float = 60.0,
    ) -> IndexOutcome:
        """Write documents, in requests of at most a thousand; those before an error are written.

        :param documents: any number of them; they are read as they are sent.
        :param chunk: whether the service splits each long document into chunks, which replace those that it has; they
            count as documents in the outcome.
        :param replace_chunks: whether the chunks of these documents that are not among those of the same request are
            deleted. Then they have to fit in one request, or nothing is sent.
        :param on_progress: called with the number of documents that were sent since the last call.
        :param timeout_s: of each request.
        :raises ValueError: if ``replace_chunks`` needs several requests.
        """
        outcome, sent = IndexOutcome(), 0
        for content, count in indexing.requests(documents, in_one=replace_chunks):
            outcome.add(self.send(calls.index(content, chunk, replace_chunks), timeout_s), sent)
            sent += count
            on_progress(count)
        return outcome

    def get(self, id_: str, *, collection: str | None = None, timeout_s: float | None = None) -> Document:
        """A document.

        :raises NotFound: if there is none that the key may see.
        :raises Conflict: if several collections have the id, and none is named.
        """
        return self.send(calls.get(id_, collection), timeout_s)

    def neighbors(
        self, id_: str, *, collection: str | None = None, limit: int | None = None, timeout_s: float | None = None
    ) -> NeighborsResponse:
        """What is one step away from a document in the graph.

        :param limit: documents and names together; 40 by default.
        :raises NotFound: if there is no such document that the key may see.
        :raises Conflict: if several collections have the id, and none is named.
        """
        return self.send(calls.neighbors(id_, collection, limit), timeout_s)

    def documents(
        self,
        *,
        collection: str | None = None,
        filter: Mapping[str, Any] | None = None,  # as in the API
        timeout_s: float | None = None,
    ) -> Iterator[Document]:
        """All documents that match, in a fixed order. The time limit is that of each page."""
        cursor: str | None = None
        while True:
            page = self.send(calls.page(collection, filter, cursor), timeout_s)
            yield from page.documents
            cursor = page.next_cursor
            if cursor is None:
                return

    def delete(
        self, id_: str, *, collection: str | None = None, with_chunks: bool = True, timeout_s: float | None = None
    ) -> DeleteResponse:
        """Delete a document and its chunks. One that does not exist is no error."""
        return self.send(calls.delete(id_, collection, with_chunks), timeout_s)

    def delete_many(
        self,
        filter: Mapping[str, Any],  # as in the API
        *,
        dry_run: bool = False,
        timeout_s: float = 60.0,
    ) -> DeleteManyResponse:
        """Delete the documents that match a filter, or count them."""
        return self.send(calls.delete_many(filter, dry_run), timeout_s)

    def collections(self, *, timeout_s: float | None = None) -> tuple[CollectionCount, ...]:
        """The collections, and how many documents of each the key may see."""
        return self.send(calls.collections(), timeout_s).collections

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def send(self, call: Call[T], timeout_s: float | None = None) -> T:
        """Send any request, and return its response."""
        attempts = Attempts(call, self._url, self._timeout_s if timeout_s is None else timeout_s, self._budget)
        while True:
            try:
                return self._attempt(call, attempts)
            except TriviumError as error:
                time.sleep(attempts.delay_s(error))

    def _attempt(self, call: Call[T], attempts: Attempts) -> T:
        content = bytearray()
        with attempts.errors(), self._http.stream(**call.options(attempts.begin_s())) as response:
            for part in response.iter_bytes():
                content += part
                attempts.remaining_s()  # the time limit of the HTTP client is that of each part
        return call.response(response.status_code, response.headers.get("retry-after"), bytes(content))
