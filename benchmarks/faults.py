"""``make bench-faults``: each backend killed, hung, slowed, resetting …, alone and in pairs, under constant load.

Keywords are in a real OpenSearch, the graph in a real Neo4j (Memgraph cannot be had from a package), answers in a real
Redis, each behind a proxy that misbehaves; vectors and the documents are in the embedded engine, which is always
there. Every query is asked once, so that no answer comes from a cache. Ends with 1 if a promise was broken.
"""

from __future__ import annotations

import argparse
import json
import os
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

from adapters.embed.fit import pseudo_queries
from benchmarks.openloop import Answer, Load, Result, offer, percentile
from benchmarks.passages import passages
from benchmarks.proxy import FAULTS, Fault, Proxy, proxy
from benchmarks.service import service
from orchestrator.contract import SearchRequest
from orchestrator.progress import steps
from orchestrator.settings import read
from orchestrator.wiring import opened
from tests.servers import start
from tests.servers.start import free_port

out = Console()

_SOURCE = {"opensearch": "keyword", "bolt": "graph"}
"""What is missing from an answer when a backend does not answer. Redis is missed by nobody."""
_TIMEOUT_MS = 1_000
_OVER_MS = 20
_PROBE_MS = 1_000
_LOAD = 0.7
_SLOWER = 10
_P95_MS = 300.0
_PASSAGES = 2_000
_WARM = 300


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one scenario: answers while it lasted, and after it was over, due in seconds since then."""

    during: Sequence[Answer]
    after: Sequence[Answer]
    faulty: frozenset[str]

    @property
    def errors(self) -> int:
        """Answers with a status of 500 and more, or none."""
        return sum(answer.status >= 500 or answer.status == 0 for answer in (*self.during, *self.after))

    @property
    def p99_ms(self) -> float:
        """Of all answers while it lasted."""
        return percentile([answer.ms for answer in self.during], 0.99)

    @property
    def degraded(self) -> float:
        """The share of answers that said that something was missing."""
        return sum(bool(_read(answer)["degraded"]) for answer in _good(self.during)) / max(len(self.during), 1)

    @property
    def unflagged(self) -> int:
        """Answers that a source had no part in, and that did not say so."""
        return sum(not _told(_read(answer)) for answer in _good(self.during))

    @property
    def recovered_s(self) -> float:
        """Seconds until the last answer that was not whole."""
        return max(
            (answer.due_s for answer in self.after if answer.status != 200 or _read(answer)["degraded"]), default=0
        )

    @property
    def broken(self) -> list[str]:
        """The promises that were not kept."""
        promises = {
            "5xx": self.errors == 0,
            "late": self.p99_ms <= _TIMEOUT_MS + _OVER_MS,
            "unflagged": self.unflagged == 0,
            "slow to recover": self.recovered_s <= 2 * _PROBE_MS / 1_000,
        }
        return [name for name, kept in promises.items() if not kept]


def main() -> None:
    """Every scenario in turn."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--seconds", type=float, default=5.0, help="of each fault")
    arguments.add_argument("--faults", nargs="+", choices=FAULTS, default=FAULTS)
    arguments.add_argument("--rate", type=float, help="requests a second; by default 70 % of what it can do")
    chosen = arguments.parse_args()
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory()))
        proxies, settings = _backends(running, folder)
        queries = _index(settings)
        bodies = cycle(
            [json.dumps({"query": q, "mode": "hybrid", "timeout_ms": _TIMEOUT_MS}).encode() for q in queries]
        )
        served = running.enter_context(service(settings, folder / "serve.log"))

        def load(rate: float, seconds: float) -> Result:
            taken = list(islice(bodies, int(rate * seconds * 1.5) + 50))
            return offer(served.port, "/v1/search", taken, rate, seconds, seed=int(rate), sampled=1)

        load(5, 5)
        rate = chosen.rate or _LOAD * _capacity(load)
        usual = load(rate, chosen.seconds)
        delays = {name: _usual_s(usual, source) * (_SLOWER - 1) for name, source in _SOURCE.items()} | {"redis": 0.01}
        out.print(f"{rate:.0f} requests a second; untouched: p99 {usual.percentile(0.99):.0f} ms", highlight=False)
        broken = 0
        table = Table(title="faults under constant load")
        for column in ("backends", "fault", "answers", "p99 ms", "degraded", "unflagged", "5xx", "back after s", ""):
            table.add_column(column, justify="left" if column in {"backends", "fault", ""} else "right")
        for backends, fault in _scenarios(chosen.faults):
            outcome = _scenario(load, rate, chosen.seconds, {name: proxies[name] for name in backends}, fault, delays)
            broken += bool(outcome.broken)
            table.add_row(*_row(backends, fault, outcome))
        out.print(table)
        out.print(f"log: {(folder / 'serve.log').stat().st_size:,} bytes; promises broken in {broken} scenarios")
    raise SystemExit(1 if broken else 0)


def _scenarios(faults: Sequence[Fault]) -> list[tuple[tuple[str, ...], Fault]]:
    names = ("opensearch", "bolt", "redis")
    return [(chosen, fault) for count in (1, 2) for chosen in combinations(names, count) for fault in faults]


def _backends(running: ExitStack, folder: Path) -> tuple[dict[str, Proxy], dict[str, object]]:
    """Real servers, each behind a proxy; and the settings of who uses them so."""
    proxies, addresses = {}, {}
    for name in ("opensearch", "bolt", "redis"):
        url = os.environ.get(f"TRIVIUM_TEST_{name.upper()}_URL") or running.enter_context(getattr(start, name)())
        target, port = urlsplit(url), free_port()
        proxies[name] = running.enter_context(proxy(port, target.port or 0))
        addresses[name] = f"{target.scheme}://127.0.0.1:{port}"
    return proxies, {
        "data_dir": folder / "data",
        "keyword": addresses["opensearch"],
        "graph": addresses["bolt"],
        "cache": addresses["redis"],
        "index_name": f"faults-{os.getpid()}",
        "source_timeout_ms": int(_TIMEOUT_MS * 0.6),
        "breaker_pause_ms": _PROBE_MS,
    }


def _index(settings: Mapping[str, object]) -> list[str]:
    """Fill the stores; the queries."""
    documents = passages(_PASSAGES)

    found = pseudo_queries([each.title for each in documents], [each.text for each in documents], limit=40_000)
    queries = list(dict.fromkeys(query for query in found if 2 <= len(query.split()) <= 12))

    async def fill() -> None:
        async with opened(read(**{**settings, "source_timeout_ms": 20_000})) as made:
            with steps(out, f"{len(documents):,} passages") as step:
                step("indexing")
                await made.writer.index(documents, made.caller.scope)
                await made.tidy(step)
                step("asking until the servers run compiled code")
                for query in queries[-_WARM:]:
                    asked = SearchRequest(query=query, mode="hybrid", timeout_ms=60_000)
                    await made.engine.search(asked, made.caller, "warm-up")

    anyio.run(fill)
    return queries[:-_WARM]


def _capacity(load: Load) -> float:
    """The highest of rising rates that is answered whole and in time."""
    rate, held = 10.0, 10.0
    while True:
        result = load(rate, 3.0)
        whole = [not _read(answer)["degraded"] for answer in _good(result.answers)]
        if result.failures or result.percentile(0.95) > _P95_MS or sum(whole) < 0.98 * len(result.answers):
            return held
        held, rate = rate, rate * 1.3


def _scenario(
    load: Load,
    rate: float,
    seconds: float,
    proxies: Mapping[str, Proxy],
    fault: Fault,
    delays: Mapping[str, float],
) -> Outcome:
    for name, each in proxies.items():
        each.be(fault, delays[name])
    during = load(rate, seconds)
    for each in proxies.values():
        each.be(None)
    after = load(rate, 2 * _PROBE_MS / 1_000 + 1)
    return Outcome(during.answers, after.answers, frozenset(proxies))


def _row(backends: Sequence[str], fault: str, outcome: Outcome) -> tuple[str, ...]:
    return (
        " and ".join(backends),
        fault,
        str(len(outcome.during)),
        f"{outcome.p99_ms:.0f}",
        f"{outcome.degraded:.0%}",
        str(outcome.unflagged),
        str(outcome.errors),
        f"{outcome.recovered_s:.1f}",
        f"[red]{', '.join(outcome.broken)}[/red]" if outcome.broken else "[green]held[/green]",
    )


def _usual_s(result: Result, source: str) -> float:
    """How long a source usually takes, in seconds."""
    return percentile([_read(answer)["timings_ms"].get(source, 0.0) for answer in _good(result.answers)], 0.5) / 1_000


def _good(answers: Sequence[Answer]) -> list[Answer]:
    return [answer for answer in answers if answer.status == 200]


def _read(answer: Answer) -> dict[str, Any]:
    return json.loads(answer.body or b"{}")


def _told(answer: dict[str, Any]) -> bool:
    """Whether every source that was asked either had its part in the answer, or is said to have failed."""
    failed = {each["source"] for each in answer["degraded"]}
    if not answer["hits"]:  # every query has some
        return bool(failed)
    return all(
        source in hit["sources"] or source in failed for hit in answer["hits"] for source in answer["route"]["sources"]
    )


if __name__ == "__main__":
    main()
