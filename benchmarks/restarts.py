"""``make bench-faults``, second part: each server killed and started again, with the default limits of the service.

Not behind a proxy: a server that has just started has no compiled code and no plan of a statement. Keywords are in a
real OpenSearch, the graph in a real Neo4j, cached responses in a real Redis, vectors in a real Qdrant if there is one
on the path, else they are embedded. Every query is sent once, so no response comes from a cache. Exit code 1 if a claim
is false.
"""

from __future__ import annotations

import json
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import anyio
import msgspec

from adapters import Document, Link
from benchmarks.claims import report
from benchmarks.corpus import distinct_queries, index_documents
from benchmarks.openloop import Response, offer
from benchmarks.passages import passages
from benchmarks.servers import started_servers
from benchmarks.service import start_service
from orchestrator.bootstrap import open_service
from orchestrator.settings import load
from tests.servers.start import Redis, Server, free_port

_DOCUMENTS, _TOPICS = 400, 40
_RATE = 5.0
"""Searches a second, which a server that has just started can take."""
_BEFORE_S, _AWAY_S, _AFTER_S = 3.0, 3.0, 20.0
_WHOLE_S = 5.0
"""Maximum time from when a server listens again to the first response with every source."""
_MAX_DEGRADED = 0.05
"""Maximum fraction of degraded responses after that: one late response in twenty is no failure of a restart."""
_REQUESTS: dict[str, dict[str, object]] = {
    "hybrid": {"mode": "hybrid"},
    "mode graph": {"mode": "graph"},
    "profile rrf": {"mode": "hybrid", "profile": "rrf"},
}


@dataclass(frozen=True, slots=True)
class Restart:
    """The responses around a restart, and when the server listened again, in seconds from the first request."""

    responses: Sequence[Response]
    listens_s: float

    @property
    def errors(self) -> int:
        """The number of responses with a status of 500 or more, or with none."""
        return sum(each.status >= 500 or each.status == 0 for each in self.responses)

    @property
    def whole_after_s(self) -> float:
        """Seconds until the first response with every source; infinite if there is none."""
        whole = (each.due_s + each.ms / 1_000 for each in self.responses if _is_whole(each))
        return min((at - self.listens_s for at in whole if at > self.listens_s), default=float("inf"))

    @property
    def degraded(self) -> float:
        """The fraction of responses after the first whole one that lack a source."""
        later = [each for each in self.responses if each.due_s > self.listens_s + self.whole_after_s]
        return sum(not _is_whole(each) for each in later) / max(len(later), 1)


def main() -> None:
    """Restart every server; the graph server once for each kind of request that needs it."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        servers = stack.enter_context(started_servers(folder))
        (folder / "redis").mkdir()
        redis = stack.enter_context(Redis(folder / "redis", free_port()))
        settings = {"data_dir": folder / "data", "cache": redis.url}
        settings |= {source: server.url for source, server in servers.items()}
        documents = _documents()
        anyio.run(_index, settings, documents)
        some = distinct_queries(documents, 20_000)
        queries = (f"{query} {number}" for number, query in enumerate(cycle(some)))  # none is sent twice
        port = stack.enter_context(start_service(settings, folder / "serve.log")).port
        with _load(port, queries, _REQUESTS["hybrid"], 20.0):
            pass  # until the servers run compiled code
        scenarios: list[tuple[str, str, Server]] = [
            ("OpenSearch", "hybrid", servers["keyword"]),
            ("Redis", "hybrid", redis),
            *(("Qdrant", "hybrid", server) for source, server in servers.items() if source == "vector"),
            *(("Neo4j", request, servers["graph"]) for request in _REQUESTS),
        ]
        claims = [_restart(port, queries, name, request, server) for name, request, server in scenarios]
    raise SystemExit(0 if all(claims) else 1)


def _restart(port: int, queries: Iterator[str], name: str, request: str, server: Server) -> bool:
    """Restart a server under load, and report whether the claims are true."""
    start = time.perf_counter()
    with _load(port, queries, _REQUESTS[request], _BEFORE_S + _AWAY_S + 60.0) as (responses, stop):
        time.sleep(_BEFORE_S)
        server.kill()
        time.sleep(_AWAY_S)
        server.start()
        listens_s = time.perf_counter() - start
        time.sleep(_AFTER_S)
        stop()
    restart = Restart(responses, listens_s)
    whole = f"first whole response after {restart.whole_after_s:.1f} s, later {restart.degraded:.1%} degraded"
    is_soon = restart.whole_after_s <= _WHOLE_S and restart.degraded <= _MAX_DEGRADED
    soon = report(is_soon, f"{name} restarted, {request}: whole within {_WHOLE_S:g} s", whole)
    if request == "mode graph":  # without its only source it is an error
        return soon
    no_error = report(restart.errors == 0, f"{name} restarted, {request}: no 5xx", f"{restart.errors}")
    return soon and no_error


@contextmanager
def _load(
    port: int, queries: Iterator[str], request: dict[str, object], seconds: float
) -> Iterator[tuple[list[Response], Callable[[], None]]]:
    """Requests at a steady rate, second after second; the responses so far, and what ends them."""
    responses: list[Response] = []
    stopping = threading.Event()

    def run() -> None:
        begin = time.perf_counter()
        while not stopping.is_set() and (passed := time.perf_counter() - begin) < seconds:
            bodies = [
                json.dumps({"query": f"Topic {number} {next(queries)}", **request}).encode() for number in range(10)
            ]
            result = offer(port, "/v1/search", bodies, _RATE, 1.0, seed=int(passed), sample_every=1)
            responses.extend(each._replace(due_s=each.due_s + passed) for each in result.responses)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield responses, stopping.set
    finally:
        thread.join()


def _documents() -> list[Document]:
    """Passages with names of topics and links, so that a walk has something to find."""
    found = passages(_DOCUMENTS)
    return [
        msgspec.structs.replace(
            each,
            entities=(f"Topic {number % _TOPICS}",),
            links=(Link(following.id, "next", target_collection=following.collection),),
        )
        for number, (each, following) in enumerate(zip(found, [*found[1:], found[0]], strict=True))
    ]


async def _index(settings: dict[str, object], documents: Sequence[Document]) -> None:
    async with open_service(load(**{**settings, "source_timeout_ms": 20_000})) as service:
        await index_documents(service, documents)
        await service.maintenance.optimize(lambda _: None)


def _is_whole(response: Response) -> bool:
    return response.status == 200 and not json.loads(response.body or b"{}")["degraded"]


if __name__ == "__main__":
    main()
