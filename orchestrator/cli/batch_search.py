"""``trivium search --batch``: a search for each line of a file, of the own index or of a service."""

from __future__ import annotations

import sys
from codecs import BOM_UTF8
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import IO, TypeAlias

import anyio.to_thread
import msgspec

from orchestrator.cli.progress import duration, progress_bar
from orchestrator.cli.remote import remote_client
from orchestrator.cli.scope_options import searcher
from orchestrator.cli.terminal import err, with_cli_timeout, with_service
from orchestrator.http.batch_lines import encoded_line
from orchestrator.indexing.corpus import count_lines
from orchestrator.indexing.ndjson import bounded_lines
from orchestrator.planning.errors import BadRequest
from orchestrator.schema.batch import BatchLine
from orchestrator.schema.decode import InvalidInput
from orchestrator.service.batch import MAX_LINE_BYTES, Line, Outcome, too_long
from orchestrator.service.service import Service
from orchestrator.settings.loading import load

_REQUEST_ID = "cli"

Write: TypeAlias = Callable[[int, bytes], None]
"""Called with the status and the line of each outcome, in order."""
Run: TypeAlias = Callable[[Iterator[Line], Write], None]
"""Searches for each line."""


def search_batch(source: str, output: Path | None, resume: bool, run: Run) -> bool:
    """Search for each line of a file. Returns whether every line has a response.

    :param source: the file with a request on each line, or ``-`` for standard input.
    :param output: the file for the responses; standard output by default.
    :param resume: whether to go on after the last whole line of that file.
    :raises BadRequest: if the output exists, and is not to be continued.
    """
    start, statuses = monotonic(), Counter[int]()
    if resume and output is None:
        raise BadRequest("--resume is for --output, the file with the responses so far")
    with (
        _source(source) as (file, total),
        _output(output, resume) as (out, answered, is_whole),
        progress_bar(err, "searching", "lines", None if total is None else total - answered) as advance,
    ):

        def write(status: int, line: bytes) -> None:
            statuses[status] += 1
            out.write(line)
            advance(1)

        run((line for line in _lines(file) if line[0] > answered), write)
    failed = {status: number for status, number in sorted(statuses.items()) if status != 200}  # of HTTP
    problems = "".join(f", {number} with status {status}" for status, number in failed.items())
    err.print(f"{statuses[200]} lines answered{problems}; took {duration(monotonic() - start)}", highlight=False)
    return is_whole and not failed


def of_own_index(tenant: str | None, environment: str | None, key: str | None) -> Run:
    """Searches the own index."""

    def run(lines: Iterator[Line], write: Write) -> None:
        async def read() -> AsyncIterator[Line]:
            while (line := await anyio.to_thread.run_sync(next, lines, None)) is not None:
                yield line

        def finish(number: int, outcome: Outcome) -> tuple[int, bytes]:
            return encoded_line(number, outcome, _REQUEST_ID)

        async def write_line(line: tuple[int, bytes]) -> None:
            write(*line)

        async def search(service: Service) -> None:
            caller = searcher(service, tenant, environment, key)
            await service.batch.run(read(), caller, _REQUEST_ID, finish, write_line)

        with_service(with_cli_timeout(load()), search)

    return run


def of_service(url: str, key: str | None, timeout_s: float) -> Run:
    """Searches at a running service."""

    def run(lines: Iterator[Line], write: Write) -> None:
        sent: deque[Line] = deque()

        def read() -> Iterator[bytes]:
            for number, line in lines:
                sent.append((number, line))
                yield b"0" if isinstance(line, InvalidInput) else line

        with remote_client(url, key, timeout_s) as client:
            for outcome in client.search_batch(read()):
                number, line = sent.popleft()
                if isinstance(line, InvalidInput):  # the service has got a placeholder
                    write(*encoded_line(number, line, _REQUEST_ID))
                    continue
                status, problem = (outcome.error.status, outcome.error.problem) if outcome.error else (200, None)
                answered = BatchLine(number, status, outcome.response, problem)
                write(status, msgspec.json.encode(answered) + b"\n")

    return run


def _lines(file: IO[bytes]) -> Iterator[Line]:
    """The lines of a file, but the blank ones."""
    for number, (line, size) in enumerate(bounded_lines(file, MAX_LINE_BYTES + 1), start=1):
        if size > len(line) or len(line.removesuffix(b"\n")) > MAX_LINE_BYTES:
            yield number, too_long()
        elif stripped := (line.removeprefix(BOM_UTF8) if number == 1 else line).strip():
            yield number, stripped


@contextmanager
def _source(name: str) -> Iterator[tuple[IO[bytes], int | None]]:
    """A file, and the number of its lines if it is known."""
    if name == "-":
        yield sys.stdin.buffer, None
        return
    path = Path(name)
    if not path.is_file():
        raise BadRequest(f"--batch: there is no file {name}; - is standard input")
    with path.open("rb") as file:
        yield file, count_lines(path)


@contextmanager
def _output(path: Path | None, resume: bool) -> Iterator[tuple[IO[bytes], int, bool]]:
    """The file for the responses, the number of the last line in it, and whether all in it have a response."""
    if path is None:
        yield sys.stdout.buffer, 0, True
        sys.stdout.buffer.flush()
        return
    if path.is_dir():
        raise BadRequest(f"--output: {path} is a folder, allowed is a file")
    if not resume and path.exists():
        raise BadRequest(f"--output: {path} exists; --resume continues it")
    if not path.parent.is_dir():
        raise BadRequest(f"--output: {path.parent} is not a folder")
    with path.open("r+b" if path.exists() else "w+b") as file:
        yield file, *_seek_end(file, path)


def _seek_end(file: IO[bytes], path: Path) -> tuple[int, bool]:
    """Go to the end of the last whole line, and cut what follows.

    Returns the number of the line that it answers, and whether every line so far has a response.
    """
    end, number, is_whole = 0, 0, True
    for line in file:
        if not line.endswith(b"\n"):
            break
        try:
            answered = msgspec.json.decode(line, type=_Answered)
        except msgspec.DecodeError as error:
            raise BadRequest(f"--output: {path} has other lines than responses to a batch") from error
        end, number = end + len(line), answered.line
        is_whole = is_whole and answered.status == 200  # of HTTP
    file.seek(end)
    file.truncate()
    return number, is_whole


class _Answered(msgspec.Struct):
    line: int
    status: int
