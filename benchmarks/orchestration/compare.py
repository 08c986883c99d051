"""CPU per query of this service, of its peers, and of asyncio with a dictionary, over the same three sources.

Each source is a stub that returns 100 documents after 5 ms, so that only orchestration is measured: 32
clients, reciprocal rank fusion, the best ten. Time limits are lifted, so that a busy machine fails no request; the rate
is printed, too, but the stubs limit it. The service plans each query, searches within deadlines behind circuit
breakers, checks access, reads the ten documents and reports where each comes from; the peers return what they fused.
Peers are installed in an environment of their own, and their releases are printed. Exit code 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import venv
from itertools import count
from pathlib import Path
from statistics import median

from adapters.ports import SourceQuery
from benchmarks.claims import out, report
from benchmarks.orchestration import peers
from fusion.columns import Ranking
from orchestrator.settings.groups import Settings
from tests.conftest import vector_record
from tests.orchestrator.services import PRINCIPAL, FixedStaticEncoder, empty_index, request_of, search_service

_CONCURRENCY = 32
_DISTRIBUTIONS = ("haystack-ai", "langchain-classic", "llama-index-core")
_MAX_OF_BARE, _MIN_OF_PEERS = 2.5, 5.0
_TIMEOUT_MS = 60_000


class DelayedSource:
    """Returns the same documents for every query, after 5 ms."""

    def __init__(self, name: str, number: int) -> None:
        self._name = name
        self._ids = peers.ids(number)
        self._scores = [1.0 / rank for rank in range(1, peers.DEPTH + 1)]

    async def search(self, query: SourceQuery) -> Ranking:
        """See :class:`adapters.ports.Retriever`."""
        del query
        await asyncio.sleep(peers.DELAY_S)
        return Ranking.of_ids(self._name, self._ids, self._scores)


def main() -> None:
    """Measure all in turn, several times."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    python = _environment()
    figures: dict[str, list[tuple[float, float]]] = {name: [] for name in ("ours", *peers.PEERS)}
    for _ in range(arguments.rounds):
        figures["ours"].append(_own(arguments.seconds))
        for name in peers.PEERS:
            command = [python, peers.__file__, name, str(_CONCURRENCY), str(arguments.seconds)]
            printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            cpu_us, rate = map(float, printed.split())
            figures[name].append((cpu_us, rate))
    for name, rounds in figures.items():
        cpu_us, rate = (median(each) for each in zip(*rounds, strict=True))
        out.print(f"{name}: {cpu_us:.0f} µs of CPU per query, {rate:.0f} queries per second", highlight=False)

    def ratio(name: str) -> float:
        """The CPU of a peer, relative to that of this service in the same round."""
        return median(other / own for (other, _), (own, _) in zip(figures[name], figures["ours"], strict=True))

    of_bare = 1 / ratio("bare")
    best_peer = min((name for name in peers.PEERS if name != "bare"), key=ratio)
    passed = [
        report(of_bare <= _MAX_OF_BARE, f"at most {_MAX_OF_BARE:g} times asyncio with a dictionary", f"{of_bare:.1f}"),
        report(
            ratio(best_peer) >= _MIN_OF_PEERS,
            f"the best peer takes at least {_MIN_OF_PEERS:g} times as much",
            f"{best_peer} {ratio(best_peer):.1f}",
        ),
    ]
    raise SystemExit(0 if all(passed) else 1)


def _own(seconds: float) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder:
        index = empty_index(Path(folder))
        ids = dict.fromkeys(id_ for number in range(peers.SOURCES) for id_ in peers.ids(number))
        index.write_blocking([vector_record(id_, id_, seed=number) for number, id_ in enumerate(ids)])
        sources = {name: DelayedSource(name, number) for number, name in enumerate(("vector", "graph", "keyword"))}
        static = FixedStaticEncoder(1)  # encoding is not measured
        limits = {"source_timeout_ms": _TIMEOUT_MS, "request_timeout_ms": _TIMEOUT_MS}
        service = search_service(
            index, static=static, settings=Settings.of(query_encoder="static", **limits), **sources
        )
        numbers = count()

        async def search() -> None:
            fields = {"mode": "hybrid", "fusion": "rrf(k=60)", "limit": peers.LIMIT, "timeout_ms": _TIMEOUT_MS}
            request = request_of(f"query {next(numbers)}", **fields)
            response = await service.search(request, PRINCIPAL, "benchmark")
            if response.degraded or len(response.hits) != peers.LIMIT:
                raise SystemExit(f"not a complete response: {response.degraded}")

        return asyncio.run(peers.measure(search, _CONCURRENCY, seconds))


def _environment() -> str:
    """The Python of an environment with the peers, which is created if it does not exist."""
    folder = Path(sys.prefix, "peers")
    python = str(folder / "bin" / "python")
    if not folder.exists():
        venv.create(folder, with_pip=True)
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *_DISTRIBUTIONS]
        subprocess.run(install, check=True)
    listed = subprocess.run([python, "-m", "pip", "list", "--format", "json"], check=True, capture_output=True).stdout
    releases = {each["name"].lower(): each["version"] for each in json.loads(listed)}
    out.print(", ".join(f"{name} {releases[name]}" for name in _DISTRIBUTIONS), highlight=False)
    return python


if __name__ == "__main__":
    main()
