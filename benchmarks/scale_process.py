"""The process that :mod:`benchmarks.scale` measures: opens an index, searches, prints one line, waits to be ended."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from statistics import median

import anyio
import psutil

from benchmarks.openloop import percentile
from benchmarks.scale import SyntheticTexts
from orchestrator.bootstrap import open_service
from orchestrator.http.interpreter import tuned_for_serving
from orchestrator.schema.search import SearchRequest
from orchestrator.settings import load

_QUERY_WORDS, _WARM_UP = 6, 100


def main() -> None:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="as benchmarks.scale builds it")
    parser.add_argument("documents", type=int)
    parser.add_argument("queries", type=int)
    arguments = parser.parse_args()
    anyio.run(_run, arguments.folder, arguments.documents, arguments.queries, backend_options={"use_uvloop": True})


async def _run(folder: Path, documents: int, queries: int) -> None:
    texts = SyntheticTexts(seed=2, names=documents // 5)
    requests = []
    for _ in range(queries + _WARM_UP):
        words = texts.words(_QUERY_WORDS)
        query = f"{texts.text(words)} {texts.names()[0]}"
        requests.append(
            SearchRequest(query=query, vector=tuple(texts.vector(words).tolist()), mode="hybrid", timeout_ms=60_000)
        )
    async with open_service(load(data_dir=folder, source_timeout_ms=60_000)) as service:
        await service.search.search(requests[0], service.anonymous, "scale")
        start_s = time.time() - psutil.Process().create_time()
        for request in requests[:_WARM_UP]:
            await service.search.search(request, service.anonymous, "scale")
        times_ms = []
        with tuned_for_serving():  # as the service does
            cpu_s = time.process_time()
            for request in requests[_WARM_UP:]:
                start = time.perf_counter()
                response = await service.search.search(request, service.anonymous, "scale")
                times_ms.append((time.perf_counter() - start) * 1_000)
                if response.degraded:
                    raise SystemExit(f"not a complete response: {response.degraded}")
            cpu_s = time.process_time() - cpu_s
        figures = {
            "start_s": start_s,
            "p50_ms": median(times_ms),
            "p95_ms": percentile(times_ms, 0.95),
            "cpu_ms": cpu_s / queries * 1_000,
        }
        sys.stdout.write(json.dumps(figures) + "\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
