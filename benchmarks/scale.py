"""``make bench-scale``: the embedded engine with 10,000, 100,000 and 1,000,000 documents.

For each size: documents indexed per second, without encoding; seconds from the start of a process to its first
response; memory per document, of one process alone and of each further one; time and CPU of a hybrid query without
encoding and without the cache. Two processes are started, as two workers would be. The documents are made up: words by
Zipf's law without stop words, three out of five from the topic of the document; three names each, by Zipf's law, too; a
vector is the sum of those of its words. Exit code 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import numpy.typing as npt
from rich.table import Table

from adapters import Document, Record
from adapters.ports import VectorRecord
from benchmarks.claims import out, report
from benchmarks.corpus import ROOT
from orchestrator.bootstrap import open_service
from orchestrator.settings import load

SIZES = (10_000, 100_000, 1_000_000)
_STOP_WORDS = 100
"""The most common words of a language, which no query searches for: the made-up texts have none."""
_WORDS, _TOPICS, _TOPIC_WORDS, _TEXT_WORDS, _NAMES = 50_000, 2_000, 100, 45, 3
_DIMENSION = 384
_MAX_START_S, _MAX_P50_RATIO, _MAX_CPU_MS = 10.0, 3.0, 5.0


class SyntheticTexts:
    """Texts and their vectors, the same for the same seed."""

    def __init__(self, seed: int, names: int) -> None:
        self._rng = np.random.default_rng(seed)
        fixed = np.random.default_rng(0)
        self._vectors = fixed.standard_normal((_WORDS, _DIMENSION)).astype(np.float32)
        self._topics = fixed.integers(1_000, _WORDS, (_TOPICS, _TOPIC_WORDS))
        frequency = 1 / (np.arange(_WORDS) + _STOP_WORDS)
        self._cumulated = np.cumsum(frequency / frequency.sum())
        self._names = names

    def words(self, count: int) -> npt.NDArray[np.int64]:
        """Numbers of words of one topic and of the whole vocabulary."""
        topic = self._topics[self._rng.integers(_TOPICS)]
        common = np.minimum(np.searchsorted(self._cumulated, self._rng.random(count)), _WORDS - 1)
        return np.where(self._rng.random(count) < 0.6, topic[self._rng.integers(_TOPIC_WORDS, size=count)], common)

    def text(self, words: npt.NDArray[np.int64]) -> str:
        """The words as text."""
        return " ".join(f"word{number}" for number in words.tolist())

    def vector(self, words: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """A unit vector. The most common words count little, as in a trained model."""
        total: npt.NDArray[np.float32] = (self._vectors[words] * np.minimum(words / 1_000, 1.0)[:, np.newaxis]).sum(0)
        total = total + self._vectors[words[0]] * np.float32(0.01)
        return (total / np.linalg.norm(total)).astype(np.float32)

    def names(self) -> tuple[str, ...]:
        """Distinct names of entities."""
        numbers = np.minimum(self._rng.zipf(1.2, _NAMES), self._names)
        return tuple(sorted({f"Person{number} Family{number}" for number in numbers.tolist()}))


def main() -> None:
    """Build the indexes that do not exist, then measure each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--queries", type=int, default=500)
    arguments = parser.parse_args()
    table = Table(title="embedded, hybrid, without encoding and cache", title_justify="left")
    for column in (
        "documents",
        "indexed/s",
        "start s",
        "bytes/document",
        "of a further process",
        "p50 ms",
        "p95 ms",
        "CPU ms",
    ):
        table.add_column(column, justify="right")
    measured = {}
    for size in arguments.sizes:
        folder = ROOT / f"scale-{size}"
        rate = _build(folder, size)
        measured[size] = found = _measure(folder, size, arguments.queries)
        table.add_row(
            f"{size:,}",
            f"{rate:,.0f}",
            f"{found['start_s']:.1f}",
            f"{found['bytes']:,.0f}",
            f"{found['further_bytes']:,.0f}",
            *(f"{found[name]:.2f}" for name in ("p50_ms", "p95_ms", "cpu_ms")),
        )
    out.print(table)
    smallest, largest = measured[min(measured)], measured[max(measured)]
    ratio = largest["p50_ms"] / smallest["p50_ms"]
    slowest_s = max(each["start_s"] for each in measured.values())
    passed = [
        report(largest["cpu_ms"] <= _MAX_CPU_MS, f"CPU at most {_MAX_CPU_MS:g} ms", f"{largest['cpu_ms']:.2f} ms"),
        report(ratio < _MAX_P50_RATIO, f"p50 less than {_MAX_P50_RATIO:g} times that of the smallest", f"{ratio:.2f}"),
        report(slowest_s < _MAX_START_S, f"a process starts in less than {_MAX_START_S:g} s", f"{slowest_s:.1f} s"),
    ]
    raise SystemExit(0 if all(passed) else 1)


def _build(folder: Path, size: int) -> float:
    """Write the index, unless it exists; returns documents per second."""
    rate_file = folder / "indexed-per-second"
    if not rate_file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        texts = SyntheticTexts(seed=1, names=size // 5)
        records = []
        for number in range(size):
            words, names = texts.words(_TEXT_WORDS), texts.names()
            text = f"{texts.text(words)} {' '.join(names)}"
            document = Document(id=f"document-{number}", title=texts.text(words[:4]), text=text, entities=names)
            records.append(VectorRecord(Record("default", "default", document, names), texts.vector(words)[np.newaxis]))
        seconds = anyio.run(_write, folder, records)
        rate_file.write_text(str(size / seconds))
    return float(rate_file.read_text())


async def _write(folder: Path, records: list[VectorRecord]) -> float:
    async with open_service(load(data_dir=folder)) as service:
        assert service.health.embedded  # noqa: S101  # the settings of this benchmark
        start = time.monotonic()
        await service.health.embedded.index.write(records, ())  # type: ignore[attr-defined]
        return time.monotonic() - start


def _measure(folder: Path, size: int, queries: int) -> dict[str, float]:
    """Start two processes; returns the figures of the first, and the memory that the second adds."""
    command = [sys.executable, "-m", "benchmarks.scale_process", str(folder), str(size), str(queries)]
    with ExitStack() as stack:
        results: list[dict[str, Any]] = []
        processes = []
        for _ in range(2):
            process = stack.enter_context(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
            assert process.stdout  # noqa: S101  # it is a pipe
            results.append(json.loads(process.stdout.readline() or "{}"))
            processes.append(process)
        if not all(results):
            raise SystemExit(f"a process for {size:,} documents ended without a result")
        memory = [_memory_bytes(process.pid) for process in processes]
        for process in processes:
            process.terminate()
    return results[0] | {"bytes": memory[0][0] / size, "further_bytes": memory[1][1] / size}


def _memory_bytes(pid: int) -> tuple[int, int]:
    """Resident memory of a process, and the part that no other process shares."""
    lines = [line.split() for line in Path(f"/proc/{pid}/smaps_rollup").read_text("utf-8").splitlines()[1:]]
    kib = {name: int(value) for name, value, *_ in lines}
    return kib["Rss:"] * 1_024, (kib["Private_Clean:"] + kib["Private_Dirty:"]) * 1_024


if __name__ == "__main__":
    main()
