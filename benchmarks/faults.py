"""``make bench-faults``: each server killed, hung, slow, resetting …, one and two of them, under constant load.

Keywords are in a real OpenSearch, the graph is in a real Neo4j (no package contains Memgraph), cached responses are in
a real Redis, each behind a proxy that causes the faults. Vectors and documents are in the embedded index, which is
always available. Every query is sent once, so no response comes from a cache. Exit code 1 if a claim is false.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import combinations, cycle, islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
from rich.console import Console
from rich.table import Table

from benchmarks.corpus import distinct_queries, index_documents
from benchmarks.openloop import Load, Response, Result, offer, percentile
from benchmarks.passages import passages
from benchmarks.proxy import FAULTS, Fault, Proxy, proxy
from benchmarks.service import start_service
from orchestrator.bootstrap import open_service
from orchestrator.cli.progress import progress_steps
from orchestrator.schema.search import SearchRequest
from orchestrator.settings import load as load_settings
from tests.servers import start
from tests.servers.start import free_port

out = Console()

_SOURCES = {"opensearch": "keyword", "bolt": "graph"}
"""The source that is missing if a server fails. Without Redis none is missing."""
_BACKENDS = (*_SOURCES, "redis")
_TIMEOUT_MS = 1_000
_MAX_LATE_MS = 20
_RESET_MS = 1_000
_MAX_OTHERS = 0.2
"""Maximum fraction of responses without a source whose server had no fault. Not 0: if such a server stalls for half a
second, its circuit opens, for one of the eight seconds of a scenario."""
_LOAD = 0.7
_SLOW_FACTOR = 10
_MAX_P95_MS = 300.0
_WARM_UP_QUERIES = 300
_SERVER_ERROR = re.compile(rb'"status":5|"message":"request [^"]* failed')
"""Matches a log line of an internal error."""
_SHOWN_LINES = 10


@dataclass(frozen=True, slots=True)
class Outcome:
    """The responses during a fault, and after it; ``due_s`` of the latter is the time since its end.

    :param healthy: the sources whose servers had no fault.
    """

    during: Sequence[Response]
    after: Sequence[Response]
    healthy: frozenset[str]

    @property
    def errors(self) -> int:
        """Number of statuses of 500 and more, and of lost connections."""
        return sum(each.status >= 500 or each.status == 0 for each in (*self.during, *self.after))

    @property
    def p99_ms(self) -> float:
        """The 99th percentile of the time of all responses during the fault."""
        return percentile([response.ms for response in self.during], 0.99)

    @property
    def degraded(self) -> float:
        """The fraction of responses during the fault that are degraded."""
        degraded = sum(bool(_failed_sources(response)) for response in _successful(self.during))
        return degraded / max(len(self.during), 1)

    @property
    def unreported(self) -> int:
        """Number of responses without a source that do not report its failure."""
        return sum(not _is_complete_or_reported(response) for response in _successful(self.during))

    @property
    def recovery_s(self) -> float:
        """Seconds until the last response of :attr:`unrecovered`."""
        return max((each.due_s for each in self.unrecovered), default=0)

    @property
    def unrecovered(self) -> list[Response]:
        """The responses after the fault that failed, or are degraded by anything but a healthy source."""
        return [each for each in self.after if each.status != 200 or _failed_sources(each) - self.healthy]

    @property
    def others(self) -> float:
        """The fraction of responses, during the fault and after it, without a source whose server had no fault."""
        responses = _successful((*self.during, *self.after))
        return sum(bool(_failed_sources(each) & self.healthy) for each in responses) / max(len(responses), 1)

    @property
    def false_claims(self) -> list[str]:
        """The claims that are false."""
        claims = {
            "5xx": self.errors == 0,
            "late": self.p99_ms <= _TIMEOUT_MS + _MAX_LATE_MS,
            "unreported": self.unreported == 0,
            "slow recovery": self.recovery_s <= 2 * _RESET_MS / 1_000,
            "others": self.others <= _MAX_OTHERS,
        }
        return [name for name, is_true in claims.items() if not is_true]


def main() -> None:
    """Run every scenario, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5.0, help="duration of each fault")
    parser.add_argument("--faults", nargs="+", choices=FAULTS, default=FAULTS)
    parser.add_argument("--rate", type=float, help="requests per second; default: 70 %% of the capacity")
    parser.add_argument("--passages", type=int, default=2_000)
    arguments = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        proxies, settings = _start_backends(stack, folder)
        queries = _index(settings, arguments.passages)
        bodies = cycle(
            [json.dumps({"query": q, "mode": "hybrid", "timeout_ms": _TIMEOUT_MS}).encode() for q in queries]
        )
        server = stack.enter_context(start_service(settings, folder / "serve.log"))

        def load(rate: float, seconds: float) -> Result:
            batch = list(islice(bodies, int(rate * seconds * 1.5) + 50))
            return offer(server.port, "/v1/search", batch, rate, seconds, seed=int(rate), sample_every=1)

        load(5, 5)
        rate = arguments.rate or _LOAD * _capacity(load)
        normal = load(rate, arguments.seconds)
        delays_s = {name: _median_s(normal, source) * (_SLOW_FACTOR - 1) for name, source in _SOURCES.items()}
        delays_s["redis"] = 0.01
        out.print(
            f"{rate:.0f} requests per second; without faults: p99 {normal.percentile(0.99):.0f} ms", highlight=False
        )
        failed = 0
        table = Table(title="faults under constant load")
        columns = ("responses", "p99 ms", "degraded", "unreported", "5xx", "recovery s", "others")
        for column in ("servers", "fault", *columns, ""):
            table.add_column(column, justify="left" if column in {"servers", "fault", ""} else "right")
        for backends, fault in _scenarios(arguments.faults):
            affected = {name: proxies[name] for name in backends}
            outcome = _scenario(load, rate, arguments.seconds, affected, fault, delays_s)
            if outcome.false_claims:
                failed += 1
                for reason in _reasons(outcome.unrecovered):
                    out.print(f"after {' and '.join(backends)} {fault}: {reason}", markup=False, soft_wrap=True)
            table.add_row(*_row(backends, fault, outcome))
        out.print(table)
        log = (folder / "serve.log").read_bytes()
        out.print(f"log: {len(log):,} bytes; a claim is false in {failed} scenarios")
        for line in [each for each in log.splitlines() if _SERVER_ERROR.search(each)][:_SHOWN_LINES]:
            out.print(line.decode(), markup=False, highlight=False, soft_wrap=True)
    raise SystemExit(1 if failed else 0)


def _scenarios(faults: Sequence[Fault]) -> list[tuple[tuple[str, ...], Fault]]:
    return [(names, fault) for count in (1, 2) for names in combinations(_BACKENDS, count) for fault in faults]


def _start_backends(stack: ExitStack, folder: Path) -> tuple[dict[str, Proxy], dict[str, object]]:
    """Real servers, each behind a proxy, and the settings of a service that uses them."""
    proxies, addresses = {}, {}
    for name in _BACKENDS:
        url = os.environ.get(f"TRIVIUM_TEST_{name.upper()}_URL") or stack.enter_context(getattr(start, name)())
        target, port = urlsplit(url), free_port()
        proxies[name] = stack.enter_context(proxy(port, target.port or 0))
        addresses[name] = f"{target.scheme}://127.0.0.1:{port}"
    return proxies, {
        "data_dir": folder / "data",
        "keyword": addresses["opensearch"],
        "graph": addresses["bolt"],
        "cache": addresses["redis"],
        "index_name": f"faults-{os.getpid()}",
        "source_timeout_ms": int(_TIMEOUT_MS * 0.6),
        "circuit_reset_ms": _RESET_MS,
    }


def _index(settings: Mapping[str, object], max_passages: int) -> list[str]:
    """Index passages; returns distinct queries."""
    documents = passages(max_passages)
    queries = distinct_queries(documents, 40_000)

    async def index() -> None:
        async with open_service(load_settings(**{**settings, "source_timeout_ms": 20_000})) as service:
            await index_documents(service, documents)
            with progress_steps(out, f"{len(documents):,} passages") as step:
                await service.maintenance.optimize(step)
                step("searching until the servers run compiled code")
                for query in queries[-_WARM_UP_QUERIES:]:
                    request = SearchRequest(query=query, mode="hybrid", timeout_ms=60_000)
                    await service.search.search(request, service.anonymous, "warm-up")

    anyio.run(index)
    return queries[:-_WARM_UP_QUERIES]


def _capacity(load: Load) -> float:
    """The highest of rising rates at which responses are in time and from all sources."""
    rate, sustained = 10.0, 10.0
    while True:
        result = load(rate, 3.0)
        complete = sum(not _failed_sources(response) for response in _successful(result.responses))
        is_late = result.percentile(0.95) > _MAX_P95_MS
        if result.failures or is_late or complete < 0.98 * len(result.responses):
            return sustained
        sustained, rate = rate, rate * 1.3


def _scenario(
    load: Load, rate: float, seconds: float, proxies: Mapping[str, Proxy], fault: Fault, delays_s: Mapping[str, float]
) -> Outcome:
    for name, each in proxies.items():
        each.cause(fault, delays_s[name])
    during = load(rate, seconds)
    for each in proxies.values():
        each.cause(None)
    after = load(rate, 2 * _RESET_MS / 1_000 + 1)
    healthy = frozenset(source for name, source in _SOURCES.items() if name not in proxies)
    return Outcome(during.responses, after.responses, healthy)


def _row(backends: Sequence[str], fault: str, outcome: Outcome) -> tuple[str, ...]:
    return (
        " and ".join(backends),
        fault,
        str(len(outcome.during)),
        f"{outcome.p99_ms:.0f}",
        f"{outcome.degraded:.0%}",
        str(outcome.unreported),
        str(outcome.errors),
        f"{outcome.recovery_s:.1f}",
        f"{outcome.others:.1%}",
        f"[red]{', '.join(outcome.false_claims)}[/red]" if outcome.false_claims else "[green]ok[/green]",
    )


def _median_s(result: Result, source: str) -> float:
    """The median time of a source, in seconds."""
    times_ms = [_body(each)["timings_ms"].get(source, 0.0) for each in _successful(result.responses)]
    return percentile(times_ms, 0.5) / 1_000


def _successful(responses: Sequence[Response]) -> list[Response]:
    return [response for response in responses if response.status == 200]


def _body(response: Response) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(response.body or b"{}")
    return body


def _failed_sources(response: Response) -> set[str]:
    """The sources whose failure is reported."""
    return {each["source"] for each in _body(response)["degraded"]}


def _reasons(responses: Sequence[Response]) -> list[str]:
    """Why responses failed or are degraded, each reason with the seconds of the first and the last one."""
    due_s: dict[str, list[float]] = {}
    for response in responses:
        degraded = [f"{each['source']} {each['reason']}" for each in _body(response).get("degraded", ())]
        for reason in degraded or [f"status {response.status}"]:
            due_s.setdefault(reason, []).append(response.due_s)
    return [f"{reason}: {len(at)} responses, {min(at):.2f} to {max(at):.2f} s" for reason, at in due_s.items()]


def _is_complete_or_reported(response: Response) -> bool:
    """Whether each source that was searched contributed to the response, or is reported as failed."""
    body, failed = _body(response), _failed_sources(response)
    if not body["hits"]:  # every query has some
        return bool(failed)
    return all(
        source in hit["sources"] or source in failed for hit in body["hits"] for source in body["route"]["sources"]
    )


if __name__ == "__main__":
    main()
