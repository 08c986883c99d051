"""The process that ``benchmarks.cpu`` measures; its protocol is described there."""

from __future__ import annotations

import argparse
import gc
import json
import sys
from collections.abc import Sequence
from itertools import cycle, islice
from pathlib import Path
from time import process_time

import anyio

from orchestrator.bootstrap import open_service
from orchestrator.http.interpreter import tuned_for_serving
from orchestrator.schema.search import SearchRequest
from orchestrator.service.service import Service
from orchestrator.settings import load

_CACHED_QUERIES = 5
_TIMEOUT_MS = 60_000


def main() -> None:
    """Open the service, then measure one round for each line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="as benchmarks.corpus builds it")
    anyio.run(_run, parser.parse_args().folder)


async def _run(folder: Path) -> None:
    async with open_service(load(data_dir=folder, source_timeout_ms=_TIMEOUT_MS)) as service:
        _write_line({"documents": await service.count()})
        with tuned_for_serving():  # as the service does
            while line := sys.stdin.readline():
                command = json.loads(line)
                _write_line(await _measure(service, command["queries"], command["hits"]))


async def _measure(service: Service, queries: Sequence[str], hits: int) -> dict[str, object]:
    requests = [SearchRequest(query=query, mode="hybrid", limit=10, timeout_ms=_TIMEOUT_MS) for query in queries]
    gc.collect()
    start = process_time()
    responses = [await service.search.search(request, service.anonymous, "cpu") for request in requests]
    search_s = process_time() - start
    for query in queries[:_CACHED_QUERIES]:
        refresh = SearchRequest(query=query, mode="hybrid", limit=10, timeout_ms=_TIMEOUT_MS, cache="refresh")
        await service.search.respond(refresh, service.anonymous, "cpu")
    gc.collect()
    start = process_time()
    for request in islice(cycle(requests[:_CACHED_QUERIES]), hits):
        response = await service.search.respond(request, service.anonymous, "cpu")
        if response.cache != "l1":
            raise SystemExit(f"this was no L1 hit but {response.cache!r}")
    hit_s = process_time() - start
    return {
        "search_us": search_s / len(requests) * 1e6,
        "hit_us": hit_s / hits * 1e6,
        "ids": [[hit.id for hit in response.hits] for response in responses],
    }


def _write_line(content: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(content) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
