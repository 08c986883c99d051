"""The synchronous interface: the service runs in a thread of its own, on its own event loop."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import anyio
from anyio.from_thread import BlockingPortal

from adapters import AdapterError, Document
from orchestrator import SearchResponse, Service, open_service
from orchestrator.indexing.ndjson import InvalidLine, ParsedLine
from orchestrator.indexing.objects import parse_objects
from orchestrator.planning.errors import BadRequest
from orchestrator.schema.arrays import with_lists
from orchestrator.schema.search_input import filter_of, search_request
from orchestrator.service.document_reports import IndexReport
from orchestrator.service.documents import MAX_LISTED
from orchestrator.service.errors import Ambiguous, NotFound
from orchestrator.settings import Settings
from orchestrator.settings.loading import load

T = TypeVar("T")

_TIMEOUT_MS = 10_000
"""Default time limit of a search: a caller in the same process waits for a cold start, and gets all sources."""
_SHOWN_ERRORS = 3
_WAIT_S = 0.5
"""How long an interrupt waits at most if it does not end the wait for a result."""


class InvalidDocuments(ValueError):
    """Some documents were not stored; all others were.

    :ivar errors: by position in the input, from 1: the field, its value, and what is allowed.
    """

    def __init__(self, errors: Mapping[int, str], indexed: int) -> None:
        shown = "; ".join(f"document {number}: {error}" for number, error in list(errors.items())[:_SHOWN_ERRORS])
        more = len(errors) - _SHOWN_ERRORS
        super().__init__(
            f"{len(errors)} documents were not stored, {indexed} were: {shown}{f'; and {more} more' * (more > 0)}"
        )
        self.errors = errors


def open(folder: str | Path | None = None, **settings: object) -> Index:
    """Open an index in a folder, which is created if it does not exist. Use it as a context manager, or close it.

    The caller sees documents of every sensitivity, unless ``open_clearance`` is given, and of every visibility, unless
    ``user`` or ``teams`` are.

    :param folder: the data folder; ``TRIVIUM_DATA_DIR`` by default.
    :param settings: other settings by name, in lower case and without the prefix ``TRIVIUM_``. They override the
        environment.
    :raises TypeError: if ``folder`` is not a path, or ``data_dir`` names another one.
    :raises SettingsError: if a setting is unknown, or its value not allowed.
    :raises OSError: if the folder cannot be created or read.
    :raises AdapterError: if the index cannot be opened.
    """
    if folder is not None and (not isinstance(folder, (str, Path)) or not str(folder)):
        raise TypeError(f"folder is {folder!r}, allowed is the path of a folder, as text or pathlib.Path")
    if folder is not None and "data_dir" in settings:
        raise TypeError(f"data_dir is {settings['data_dir']!r}, but folder is {str(folder)!r}: give one of them")
    given = {} if folder is None else {"data_dir": Path(folder)}
    # Without a process for upkeep: see Index.tidy.
    defaults = {"upkeep_interval_s": 0, "source_timeout_ms": _TIMEOUT_MS, "open_clearance": "restricted"}
    return Index(load(**{**defaults, **given, **settings}))


class Index:
    """A service with the documents of one data folder.

    Its methods block, and threads may call them at the same time. It is closed when the main thread ends.

    :raises AdapterError: from every method, if what it needs cannot be read or written.
    :raises RuntimeError: from every method, if the index is closed, or was opened in the process that this one was
        forked from.
    """

    def __init__(self, settings: Settings) -> None:
        self._folder = settings.storage.data_dir
        self._process = os.getpid()
        self._is_closing = False
        self._running = 0
        self._all_returned: anyio.Event | None = None
        self._stack = ExitStack()
        with ExitStack() as opening:
            self._portal: BlockingPortal = opening.enter_context(_event_loop_thread())
            self._service: Service = opening.enter_context(
                self._portal.wrap_async_context_manager(self._open(settings))
            )
            self._stack = opening.pop_all()
        # The thread of the event loop does not end by itself, nor do those that it has started.
        threading.Thread(target=self._close_with_main_thread, name="trivium-close", daemon=True).start()

    def __enter__(self) -> Index:
        self._check_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Finish running calls and close the files. A closed index may be closed again."""
        if self._process == os.getpid():  # in a forked process there is no thread that could close it
            self._stack.close()

    def add(self, documents: Iterable[Document | Mapping[str, Any]]) -> int:
        """Index documents in bounded memory, and return the number of documents that were stored.

        A document with an id that exists replaces it. If ``documents`` raises an error, those before it are stored,
        and a note of the error has their number.

        :param documents: objects, or mappings with the same fields as the lines of ``POST /v1/documents``.
        :raises TypeError: if ``documents`` is not an iterable of documents.
        :raises InvalidDocuments: if some could not be stored. All others were.
        :raises AdapterError: also if a server has refused some of them.
        """
        errors: dict[int, str] = {}
        raised: list[Exception] = []

        def on_invalid(line: InvalidLine) -> None:
            errors[line.line] = line.error

        service = self._service
        lines = _until_error(parse_objects(documents), raised)
        try:
            report = self._call(service.documents.index, lines, service.anonymous, on_invalid)
        except BadRequest:  # there is no document at all
            report = IndexReport()
        invalid = InvalidDocuments(errors, report.indexed) if errors else None
        if raised:
            raised[0].add_note(str(invalid) if invalid else f"{report.indexed} documents were stored before this error")
            raise raised[0]
        if report.rejected or report.undecided:
            ids = [key[-1] for key in (*report.rejected, *report.undecided)]
            raise AdapterError(f"{len(ids)} documents are not on every server: run `trivium doctor`", ", ".join(ids))
        if invalid:
            raise invalid
        return report.indexed

    def search(self, query: str, **fields: Any) -> SearchResponse:
        """Search. The fields are those of ``POST /v1/search``.

        :raises ValueError: if a field is unknown or its value is not allowed; the message lists what is.
        """
        try:
            request = search_request({"timeout_ms": _TIMEOUT_MS, **with_lists(fields), "query": query})
            return self._call(self._service.search.search, request, self._service.anonymous, "in-process")
        except BadRequest as error:
            raise ValueError(str(error)) from error

    def get(self, id_: str, collection: str | None = None) -> Document | None:
        """A document as it was stored; ``None`` if there is none of this id.

        :param collection: of the document.
        :raises ValueError: if documents of several collections have the id, and no collection is named.
        """
        try:
            return self._call(self._service.documents.get, _id(id_), self._service.anonymous, collection)
        except Ambiguous as error:
            raise ValueError(str(error)) from error
        except NotFound:
            return None

    def delete(self, id_: str, collection: str | None = None) -> bool:
        """Delete a document; returns whether it existed.

        :param collection: of the document.
        :raises ValueError: if documents of several collections have the id, and no collection is named.
        """
        try:
            response = self._call(self._service.documents.delete, _id(id_), self._service.anonymous, collection)
        except Ambiguous as error:
            raise ValueError(str(error)) from error
        return bool(response.deleted)

    def delete_many(self, *, filter: Any, dry_run: bool = False) -> int:
        """Delete the documents that match a filter, and return their number.

        :param filter: as in a search; ``{"op": "and"}`` matches all.
        :param dry_run: return the number only.
        :raises ValueError: if the filter is not allowed; the message lists what is.
        """
        documents, principal = self._service.documents, self._service.anonymous
        try:
            response = self._call(documents.delete_many, filter_of(filter), principal, dry_run)
        except BadRequest as error:
            raise ValueError(str(error)) from error
        return response.matched if dry_run else response.deleted

    def documents(self, *, filter: Any = None) -> Iterator[Document]:
        """All documents that match a filter, in a fixed order, in bounded memory.

        :param filter: as in a search; all documents by default.
        :raises ValueError: if the filter is not allowed; the message lists what is.
        """
        condition = None if filter is None else filter_of(filter)
        start: str | None = None
        while True:
            try:
                page = self._call(self._service.documents.page, self._service.anonymous, condition, MAX_LISTED, start)
            except BadRequest as error:
                raise ValueError(str(error)) from error
            yield from (record.whole for record in page.records)
            if page.next is None:
                return
            start = page.next

    def tidy(self) -> None:
        """Merge segments, and measure what ``confidence`` and the graph's weight need. Call it after many writes.

        Nothing of deleted documents is left in the folder then.
        """
        self._call(self._service.maintenance.optimize, lambda _: None, True)

    def __len__(self) -> int:
        """Number of documents."""
        return self._call(self._service.count)

    def _call(self, function: Callable[..., Awaitable[T]], *arguments: object) -> T:
        """The result of a coroutine function of the service. An interrupt cancels it."""
        self._check_open()
        # The call may run before the portal returns its future, so an interrupt cancels it by a future made before.
        abandoned: Future[None] = Future()
        try:
            return _result(self._portal.start_task_soon(self._run, lambda: function(*arguments), abandoned))
        except BaseException:
            abandoned.cancel()
            raise

    async def _run(self, call: Callable[[], Awaitable[T]], abandoned: Future[None]) -> T:
        self._check_open()
        self._running += 1
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        abandoned.add_done_callback(lambda _: task and loop.call_soon_threadsafe(task.cancel))
        try:
            return await call()
        finally:
            abandoned.set_running_or_notify_cancel()  # too late to cancel it
            self._running -= 1
            if not self._running and self._all_returned:
                self._all_returned.set()

    def _check_open(self) -> None:
        if self._process != os.getpid():
            raise RuntimeError(
                f"the index in {self._folder} was opened in process {self._process}: open it in this one"
            )
        if self._is_closing:
            raise RuntimeError(f"the index in {self._folder} is closed")

    @asynccontextmanager
    async def _open(self, settings: Settings) -> AsyncIterator[Service]:
        async with open_service(settings) as service, anyio.create_task_group() as group:
            for task in service.background:
                group.start_soon(task)
            yield service
            self._is_closing = True
            if self._running:
                self._all_returned = anyio.Event()
                await self._all_returned.wait()
            group.cancel_scope.cancel()

    def _close_with_main_thread(self) -> None:
        threading.main_thread().join()
        self.close()


@contextmanager
def _event_loop_thread() -> Iterator[BlockingPortal]:
    """An event loop in a thread that the interpreter does not wait for when it ends."""
    started: Future[BlockingPortal] = Future()

    async def run() -> None:
        async with BlockingPortal() as portal:
            started.set_result(portal)
            await portal.sleep_until_stopped()

    thread = threading.Thread(target=anyio.run, args=(run,), name="trivium", daemon=True)
    thread.start()
    portal = started.result()
    try:
        yield portal
    finally:
        portal.call(portal.stop)
        thread.join()


def _result(future: Future[T]) -> T:
    """The result of a future, waiting for a moment at a time.

    An interrupt that another thread receives, or that comes just before this one waits, does not end its wait: Python
    handles it when the main thread runs again.
    """
    while True:
        try:
            return future.result(_WAIT_S)
        except TimeoutError:
            if future.done():  # now, or with this error
                return future.result()


def _until_error(lines: Iterator[ParsedLine], raised: list[Exception]) -> Iterator[ParsedLine]:
    """The lines up to the first error that the caller's iterable raises, which is put into ``raised``."""
    try:
        yield from lines
    except Exception as error:
        raised.append(error)


def _id(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"id is {value!r}, allowed is a text")
    return value
