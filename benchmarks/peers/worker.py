"""Runs one product in its own environment: ``python -m benchmarks.peers.worker PRODUCT DATA FOLDER``.

Reads one command a line from standard input, and writes one JSON object a line: ``index``, ``open``, ``rank``,
``round START COUNT``, ``memory``.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import shutil
import sys
from pathlib import Path
from time import perf_counter

import numpy as np

from benchmarks.peers.products.product import Doc, Product

_TICKS = os.sysconf("SC_CLK_TCK")
_BLOCK = 512


class Worker:
    """A product and the data that all products get."""

    def __init__(self, name: str, data: Path, folder: Path) -> None:
        self.data, self.folder = data, folder
        self.queries = [json.loads(line) for line in (data / "queries.jsonl").read_text().splitlines()]
        self.vectors = np.load(data / "queries.npy")
        module = importlib.import_module(f"benchmarks.peers.products.{name}")
        self.product: Product = module.Product(folder, data / "beir")
        lines = Path(str(module.__file__)).read_text().splitlines()
        self.lines = sum(bool(line.strip()) for line in lines)

    def index(self) -> dict[str, float]:
        """Seconds of CPU and of time, MiB on disk, and lines of code of the product's module."""
        documents: list[Doc] = [json.loads(line) for line in (self.data / "documents.jsonl").read_text().splitlines()]
        vectors = np.load(self.data / "documents.npy")
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        start, cpu = perf_counter(), self._cpu_s()
        self.product.index(documents, vectors)
        figures = {"cpu_s": self._cpu_s() - cpu, "s": perf_counter() - start, "lines": self.lines}
        self.product.close()
        files = (path for path in self.folder.rglob("*") if path.is_file())
        return figures | {"mib": sum(path.stat().st_blocks * _BLOCK for path in files) / 2**20}

    def open(self) -> dict[str, float]:
        """Seconds of CPU and of time from the start of this process to the first answer."""
        self.product.open()
        self._search(0)
        started = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
        uptime = float(Path("/proc/uptime").read_text().split()[0])
        return {"cpu_s": self._cpu_s(), "s": uptime - int(started) / _TICKS}

    def rank(self) -> dict[str, list[str]]:
        """By query, the ids of the hits."""
        return {query["id"]: [hit["id"] for hit in self._search(row)] for row, query in enumerate(self.queries)}

    def round(self, start: str, count: str) -> dict[str, object]:
        """ms of CPU of a search, and ms of each search."""
        times = []
        cpu = self._cpu_s()
        for row in range(int(start), int(start) + int(count)):
            begin = perf_counter()
            self._search(row)
            times.append((perf_counter() - begin) * 1_000)
        return {"cpu_ms": (self._cpu_s() - cpu) * 1_000 / int(count), "ms": times}

    def memory(self) -> dict[str, float]:
        """MiB of resident memory, of this process and of the product's server."""
        server = self.product.server_pid()
        pids = [os.getpid(), *([server] if server else [])]
        lines = (line for pid in pids for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        return {"mib": sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1_024}

    def _search(self, row: int) -> list[Doc]:
        row %= len(self.queries)
        return self.product.search(self.queries[row]["text"], self.vectors[row])

    def _cpu_s(self) -> float:
        usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        seconds = sum(usage.ru_utime + usage.ru_stime for usage in usages)
        if server := self.product.server_pid():
            fields = Path(f"/proc/{server}/stat").read_text().rpartition(")")[2].split()
            seconds += (int(fields[11]) + int(fields[12])) / _TICKS
        return seconds


def main() -> None:
    """Obey commands until standard input ends."""
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what a product prints is no reply
    name, data, folder = sys.argv[1:]
    worker = Worker(name, Path(data), Path(folder))
    for line in sys.stdin:
        command, *arguments = line.split()
        replies.write(json.dumps(getattr(worker, command)(*arguments)) + "\n")
    worker.product.close()


if __name__ == "__main__":
    main()
