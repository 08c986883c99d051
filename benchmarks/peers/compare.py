"""Quality and cost of this service and of other hybrid searches, on the same machine, in turn.

Every product gets the same documents, queries and vectors, and returns ten hits with their texts. Quality is measured
on each BEIR folder; cost on all of them together with three variants of each document. Each product runs in an
environment of its own, and its release is printed. Costs are ratios to this service: 2 is twice as much.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.claims import out
from benchmarks.corpus import ROOT
from benchmarks.peers.data import enlarge, prepare
from orchestrator.evaluation.dataset import read_dataset
from orchestrator.evaluation.measures import MAIN_MEASURE, mean, measure_run

_REPOSITORY = Path(__file__).parents[2]
_OURS = "ours"


@dataclass(frozen=True, slots=True)
class Peer:
    """A product to compare.

    :param packages: what is installed in its environment; none: it runs in that of this process.
    :param shares: the product whose index it uses.
    """

    name: str
    module: str
    packages: Sequence[str] = ()
    shares: str = ""


PEERS = (
    Peer("Trivium", _OURS),
    Peer("Trivium, encodes queries", "ours_with_model", shares=_OURS),
    Peer("FAISS + Tantivy", "bare", ("faiss-cpu", "tantivy")),
    Peer("Qdrant Edge", "qdrant_edge", ("qdrant-edge-py",)),
    Peer("LanceDB", "lance", ("lancedb",)),
    Peer("txtai", "txtai_hybrid", ("txtai",)),
    Peer("OpenSearch hybrid", "opensearch"),
)


def main() -> None:
    """Measure all, and print one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path, help="BEIR folders with judged queries")
    parser.add_argument("--peers", nargs="+", choices=[peer.module for peer in PEERS], help="all by default")
    parser.add_argument("--queries", type=int, default=200, help="queries per round")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    chosen = [peer for peer in PEERS if not arguments.peers or peer.module in (_OURS, *arguments.peers)]
    pythons = {peer.module: _environment(peer) for peer in chosen}
    sets = [ROOT / "peers" / folder.resolve().name for folder in arguments.folders]
    for folder, data in zip(arguments.folders, sets, strict=True):
        prepare(folder, data)
    large = ROOT / "peers" / "+".join(data.name for data in sets)
    enlarge(sets, large)

    rows: dict[str, list[str]] = {peer.module: [] for peer in chosen}
    for folder, data in zip(arguments.folders, sets, strict=True):
        for peer in chosen:
            rows[peer.module].append(f"{_quality(peer, pythons[peer.module], folder, data):.3f}")
    costs = _costs(chosen, pythons, large, arguments.queries, arguments.rounds)
    for module, ratios in costs.items():
        rows[module] += ratios
    head = ["", *(data.name for data in sets), "CPU", "p50", "first answer", "memory", "indexing", "disk", "lines"]
    for cells in (head, ["---"] * len(head), *([peer.name, *rows[peer.module]] for peer in chosen)):
        out.print(f"| {' | '.join(cells)} |", highlight=False, soft_wrap=True)


class Running:
    """A product that runs in a process of its own."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self._process, self._log = process, log

    def ask(self, *command: object) -> Any:
        """What the worker replies to a command."""
        assert self._process.stdin  # noqa: S101  # both are pipes
        assert self._process.stdout  # noqa: S101
        self._process.stdin.write(" ".join(map(str, command)) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{self._process.args!r} ended with exit code {self._process.wait()}: see {self._log}")
        return json.loads(line)


@contextmanager
def _running(peer: Peer, python: str, data: Path) -> Iterator[Running]:
    folder = ROOT / "peers" / "indexes" / f"{data.name}-{peer.shares or peer.module}"
    command = [python, "-m", "benchmarks.peers.worker", peer.module, str(data), str(folder)]
    log = ROOT / "peers" / f"{peer.module}.log"
    pipe = subprocess.PIPE
    with (
        log.open("ab") as written,
        subprocess.Popen(command, cwd=_REPOSITORY, stdin=pipe, stdout=pipe, stderr=written, text=True) as process,
    ):
        yield Running(process, log)
        assert process.stdin  # noqa: S101  # it is a pipe
        process.stdin.close()


def _quality(peer: Peer, python: str, folder: Path, data: Path) -> float:
    if not peer.shares:
        with _running(peer, python, data) as product:
            product.ask("index")
    with _running(peer, python, data) as product:
        product.ask("open")
        ranked: Mapping[str, Sequence[str]] = product.ask("rank")
    run = {query: [(id_, -float(at)) for at, id_ in enumerate(ids)] for query, ids in ranked.items()}
    return mean(measure_run(read_dataset(folder).judgments, run)[MAIN_MEASURE])


def _costs(
    peers: Sequence[Peer], pythons: Mapping[str, str], data: Path, queries: int, rounds: int
) -> dict[str, list[str]]:
    """By product, the ratios of its costs to those of this service, and its lines of code."""
    indexed: dict[str, Any] = {}
    for peer in peers:
        if not peer.shares:
            with _running(peer, pythons[peer.module], data) as product:
                indexed[peer.module] = product.ask("index")
    opened: dict[str, list[dict[str, float]]] = {peer.module: [] for peer in peers}
    for _ in range(rounds):
        for peer in peers:
            with _running(peer, pythons[peer.module], data) as product:
                opened[peer.module].append(product.ask("open"))
    searched: dict[str, list[dict[str, Any]]] = {peer.module: [] for peer in peers}
    with ExitStack() as stack:
        products = {peer.module: stack.enter_context(_running(peer, pythons[peer.module], data)) for peer in peers}
        for product in products.values():
            product.ask("open")
            product.ask("round", 0, queries)
        for number in range(1, rounds + 1):
            for module, product in products.items():
                searched[module].append(product.ask("round", number * queries, queries))
        memory = {module: product.ask("memory")["mib"] for module, product in products.items()}

    def ratio(module: str, figures: Mapping[str, Sequence[Mapping[str, Any]]], key: str) -> str:
        pairs = zip(figures[module], figures[_OURS], strict=True)
        return f"{median(each[key] / own[key] for each, own in pairs):.2f}"

    walls = {module: [{"ms": median(each["ms"])} for each in of_module] for module, of_module in searched.items()}
    own = indexed[_OURS]
    out.print(
        f"Trivium: {median(each['cpu_ms'] for each in searched[_OURS]):.2f} ms of CPU per query, first answer after "
        f"{median(each['s'] for each in opened[_OURS]):.2f} s, {memory[_OURS]:.0f} MiB of memory, indexing "
        f"{own['cpu_s']:.1f} s of CPU, {own['mib']:.0f} MiB on disk",
        highlight=False,
    )
    costs = {}
    for peer in peers:
        of_index = indexed[peer.shares or peer.module]
        costs[peer.module] = [
            ratio(peer.module, searched, "cpu_ms"),
            ratio(peer.module, walls, "ms"),
            ratio(peer.module, opened, "cpu_s"),
            f"{memory[peer.module] / memory[_OURS]:.2f}",
            f"{of_index['cpu_s'] / own['cpu_s']:.2f}",
            f"{of_index['mib'] / own['mib']:.2f}",
            str(of_index["lines"]),
        ]
    return costs


def _environment(peer: Peer) -> str:
    """The Python of the product's environment, which is created if it does not exist."""
    if not peer.packages:
        return sys.executable
    folder = Path(sys.prefix, f"peers-{peer.module}")
    python = str(folder / "bin" / "python")
    if not folder.exists():
        venv.create(folder, with_pip=True)
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "numpy", *peer.packages]
        if subprocess.run(install, check=False).returncode:
            shutil.rmtree(folder)
            raise SystemExit(f"{peer.name} cannot be installed: choose others with --peers")
    listed = subprocess.run([python, "-m", "pip", "list", "--format", "json"], check=True, capture_output=True).stdout
    releases = {each["name"].lower(): each["version"] for each in json.loads(listed)}
    out.print(", ".join(f"{name} {releases[name]}" for name in peer.packages), highlight=False)
    return python


if __name__ == "__main__":
    main()
