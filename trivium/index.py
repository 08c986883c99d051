"""The synchronous interface: the service runs in a thread of its own, on its own event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import anyio
import msgspec
from anyio.from_thread import BlockingPortal, start_blocking_portal

from adapters import Document
from orchestrator import SearchRequest, SearchResponse, Service, open_service
from orchestrator.indexing.ndjson import InvalidLine, ParsedLine, ValidLine, checked, size_error
from orchestrator.planning.errors import BadRequest
from orchestrator.schema.decode import describe_decode_error
from orchestrator.service.errors import NotFound
from orchestrator.settings import Settings
from orchestrator.settings.loading import load

_TIMEOUT_MS = 10_000
"""Default time limit of a search: a caller in the same process waits for a cold start, and gets all sources."""
_SHOWN_ERRORS = 3


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

    :param folder: the data folder; ``TRIVIUM_DATA_DIR`` by default.
    :param settings: other settings by name, in lower case and without the prefix ``TRIVIUM_``. They override the
        environment.
    :raises SettingsError: if a setting is not allowed.
    :raises AdapterError: if the index cannot be opened.
    """
    given = {} if folder is None else {"data_dir": Path(folder)}
    # Without a process for upkeep: see Index.tidy.
    defaults = {"upkeep_interval_s": 0, "source_timeout_ms": _TIMEOUT_MS}
    return Index(load(**{**defaults, **given, **settings}))


class Index:
    """A service with the documents of one data folder, as the anonymous caller of ``trivium serve`` sees them.

    Its methods block, and threads may call them at the same time.

    :raises AdapterError: from every method, if what it needs cannot be read or written.
    """

    def __init__(self, settings: Settings) -> None:
        self._stack = ExitStack()
        with ExitStack() as opening:
            self._portal: BlockingPortal = opening.enter_context(start_blocking_portal(name="trivium"))
            self._service: Service = opening.enter_context(self._portal.wrap_async_context_manager(_running(settings)))
            self._stack = opening.pop_all()

    def __enter__(self) -> Index:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Finish running calls and close the files. A closed index may be closed again."""
        self._stack.close()

    def add(self, documents: Iterable[Document | Mapping[str, Any]]) -> int:
        """Index documents in bounded memory, and return the number of documents that were stored.

        A document with an id that exists replaces it.

        :param documents: objects, or mappings with the same fields as the lines of ``POST /v1/documents``.
        :raises InvalidDocuments: if some could not be stored. All others were.
        """
        errors: dict[int, str] = {}

        def on_invalid(line: InvalidLine) -> None:
            errors[line.line] = line.error

        service = self._service
        try:
            report = self._portal.call(service.documents.index, _lines(documents), service.anonymous, on_invalid)
        except BadRequest:  # there is no document at all
            return 0
        if errors:
            raise InvalidDocuments(errors, report.indexed)
        return report.indexed

    def search(self, query: str, **fields: Any) -> SearchResponse:
        """Search. The fields are those of ``POST /v1/search``.

        :raises ValueError: if a field is unknown or its value is not allowed; the message lists what is.
        """
        try:
            request = msgspec.convert({"timeout_ms": _TIMEOUT_MS, **fields, "query": query}, SearchRequest)
            return self._portal.call(self._service.search.search, request, self._service.anonymous, "in-process")
        except msgspec.ValidationError as error:
            raise ValueError(describe_decode_error(error)) from error
        except BadRequest as error:
            raise ValueError(str(error)) from error

    def get(self, id_: str) -> Document | None:
        """A document as it was stored; ``None`` if there is none of this id."""
        try:
            return self._portal.call(self._service.documents.get, id_, self._service.anonymous)
        except NotFound:
            return None

    def delete(self, id_: str) -> bool:
        """Delete a document; returns whether it existed."""
        response = self._portal.call(self._service.documents.delete, id_, self._service.anonymous)
        return bool(response.deleted)

    def tidy(self) -> None:
        """Merge segments, and measure what ``confidence`` and the graph's weight need. Call it after many writes."""
        self._portal.call(self._service.maintenance.optimize, lambda _: None)

    def __len__(self) -> int:
        """Number of documents."""
        return self._portal.call(self._service.count)


@asynccontextmanager
async def _running(settings: Settings) -> AsyncIterator[Service]:
    async with open_service(settings) as service, anyio.create_task_group() as group:
        for task in service.background:
            group.start_soon(task)
        yield service
        group.cancel_scope.cancel()


def _lines(documents: Iterable[Document | Mapping[str, Any]]) -> Iterator[ParsedLine]:
    for number, document in enumerate(documents, start=1):
        try:
            converted = document if isinstance(document, Document) else msgspec.convert(document, Document)
            if too_large := size_error(msgspec.json.encode(converted)):
                yield InvalidLine(number, too_large)
            else:
                yield ValidLine(number, checked(converted))
        except msgspec.ValidationError as error:
            yield InvalidLine(number, describe_decode_error(error))
        except ValueError as error:
            yield InvalidLine(number, str(error))
