"""``make bench-backfill``: kill -9 a backfill at random points, search while it runs, and measure what it costs.

Killed: each time another index is built until the process is killed at a random point, then resumed; what the stores
contain is compared with an uninterrupted run: embedded, and with a real OpenSearch and a real Neo4j. Searches: a
service is asked steadily while a generation is built, made live, and rolled back. Throughput: against encoding and
writing the same documents by their own bulk calls, in turns. Memory: what the process of a shard, which encodes, has at
most, for a number of documents and for ten times as many. Exit code 1 if a claim is false.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import anyio.to_thread
import msgspec
import psutil

from adapters.encoders.documents import DocumentVectors
from adapters.encoders.minilm import MiniLM
from adapters.graph.bolt import Bolt
from adapters.keyword import opensearch_client
from adapters.model.batching import batches
from adapters.ports import VectorRecord
from adapters.servers.server import GRAPH_SCHEMES, KEYWORD_SCHEMES, Address, Limits
from benchmarks.claims import out, report
from benchmarks.passages import passages
from benchmarks.servers import started_servers
from benchmarks.service import start_service
from orchestrator.bootstrap import open_service
from orchestrator.bootstrap.other_generations import open_other
from orchestrator.indexing.generations.catalog import Catalog
from orchestrator.indexing.pipeline import MAX_BATCH_DOCUMENTS, MAX_WRITE_DOCUMENTS
from orchestrator.settings import load
from tests.orchestrator.generations.helpers import opened

_INDEX_NAME = "backfill"
_LIMITS = Limits(read_timeout_s=60, write_timeout_s=60)
_CHANGED = {"embedding_text": "title"}
"""What the new generation is built with."""
_ROUNDS, _TIMES = 3, 10
_MIN_THROUGHPUT, _MAX_GROWTH = 0.8, 1.1
_SAMPLED_S = 0.02

Values = Mapping[str, object]


def main() -> None:
    """Check every claim."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=800)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--embedded", action="store_true", help="without servers")
    arguments = parser.parse_args()
    claims = []
    with TemporaryDirectory() as root:
        work = Path(root)
        source = work / "documents.ndjson"
        _write_source(source, arguments.documents)
        claims += _killed(work / "embedded", source, {}, arguments.kills)
        if not arguments.embedded:
            with started_servers(work) as servers:
                urls = {name: server.url for name, server in servers.items()}
                claims += _killed(work / "servers", source, urls, arguments.kills)
                claims += _searched(work / "searched-servers", source, urls)
        claims += _searched(work / "searched", source, {})
        claims += [_throughput(work, source), _memory(work, arguments.documents)]
    sys.exit(not all(claims))


def _write_source(path: Path, documents: int) -> None:
    found = passages(documents)
    path.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in found))


def _killed(folder: Path, source: Path, urls: Mapping[str, str], kills: int) -> list[bool]:
    chosen = random.Random(0)
    folder.mkdir()
    settings: Values = {"data_dir": folder / "data", "index_name": _INDEX_NAME, **urls}
    expected: object = None
    different, took_s = 0, 0.0
    for number in range(kills + 1):
        shutil.rmtree(folder / "data", ignore_errors=True)
        _trivium(settings, "index", str(source))
        start = time.monotonic()
        if not number:
            _trivium(settings | _CHANGED, "backfill", "--batch", "128")
            took_s = time.monotonic() - start
        else:
            process = _started(settings | _CHANGED, "backfill", "--batch", "128")
            with suppress(subprocess.TimeoutExpired):
                process.wait(chosen.uniform(0.3, 1.0) * took_s)
            process.kill()
            process.wait()
            _trivium(settings | _CHANGED, "backfill", "--batch", "128", "--resume")
        found = anyio.run(_contents, settings)
        expected = expected or found
        different += found != expected
        anyio.run(_drop, settings)
    where = "on servers" if urls else "embedded"
    return [report(not different, f"{kills} killed backfills {where}: resumed ones with other stores", str(different))]


async def _contents(settings: Values) -> object:
    """Everything that the stores of the new generation contain."""
    opened = load(**{**settings, "source_timeout_ms": 60_000})
    (generation,) = Catalog(opened.storage.data_dir).read().others
    contents: dict[str, object] = {"name": generation.name, "state": generation.state}
    async with open_other(opened, generation) as service:
        embedded = service.health.embedded
        if embedded:
            contents["embedded"] = [
                (each.record, each.vectors.tobytes()) for each in embedded.index.current().records_with_vectors()
            ]
        contents["counts"] = dict(await service.stores.counts())
    if "keyword" in settings:
        opensearch = opensearch_client.connect(Address.parse(str(settings["keyword"]), KEYWORD_SCHEMES), _LIMITS)
        found = await opensearch.search(index=generation.name, body={"query": {"match_all": {}}, "size": 10_000})
        await opensearch.close()
        contents["keyword"] = sorted((hit["_id"], json.dumps(hit["_source"])) for hit in found["hits"]["hits"])
    if "graph" in settings:
        bolt = Bolt(Address.parse(str(settings["graph"]), GRAPH_SCHEMES), _LIMITS)
        nodes = "MATCH (n {index: $index}) RETURN properties(n) AS found"
        edges = "MATCH (a {index: $index})-[r]->(b) RETURN [a.key, type(r), b.key, properties(r)] AS found"
        for kind, statement in {"nodes": nodes, "edges": edges}.items():
            rows = await bolt.read(statement, {"index": generation.name}, maintenance=True)
            contents[kind] = sorted(json.dumps(_without_versions(row["found"]), sort_keys=True) for row in rows)
        await bolt.close()
    return contents


def _without_versions(found: Any) -> Any:
    """What a server stores, without the number of the write, which is a time."""
    if isinstance(found, dict):
        return {name: _without_versions(value) for name, value in found.items() if name not in {"version", "sequence"}}
    return [_without_versions(each) for each in found] if isinstance(found, list) else found


async def _drop(settings: Values) -> None:
    """Delete the indexes of all generations on servers."""
    opened = load(**{**settings, "source_timeout_ms": 60_000})
    for generation in Catalog(opened.storage.data_dir).read().known:
        async with open_other(opened, generation) as service:
            for server in service.health.servers.values():
                await server.drop()


class _Searches(threading.Thread):
    """Asks a service steadily. ``answers``: the status of each, the generation, and whether it was whole."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self._url = f"http://127.0.0.1:{port}/v1/search"
        self.answers: list[tuple[int, str, str, bool]] = []
        self.stopping = threading.Event()

    def run(self) -> None:
        """Search until ``stopping`` is set."""
        while not self.stopping.wait(0.01):
            body = {"query": f"module function {len(self.answers) % 50}", "explain": True, "cache": "bypass"}
            request = urllib.request.Request(self._url, json.dumps(body).encode())  # noqa: S310  # the service under test
            try:
                with urllib.request.urlopen(request, timeout=60) as response:  # noqa: S310
                    found = json.load(response)
                whole = bool(found["hits"]) and not found["degraded"]
                self.answers.append((200, found["explain"]["generation"], found["index_version"], whole))
            except OSError as error:
                self.answers.append((getattr(error, "code", 0), "", "", False))


def _searched(folder: Path, source: Path, urls: Mapping[str, str]) -> list[bool]:
    folder.mkdir()
    # Two processes encode on two cores here: the limits are lifted, because it is not the time that is measured.
    settings: Values = {
        "data_dir": folder / "data",
        "index_name": _INDEX_NAME,
        "request_timeout_ms": 20_000,
        "source_timeout_ms": 20_000,
        **urls,
    }
    name = f"{_INDEX_NAME}_default_all_2"
    _trivium(settings, "index", str(source))
    with start_service(settings, folder / "log") as service:
        searches = _Searches(service.port)
        before = _answers(service.port)
        searches.start()
        _trivium(settings | _CHANGED, "backfill", "--switch")
        _wait_for(searches, name)
        _trivium(settings, "generations", "switch", _INDEX_NAME)
        _wait_for(searches, _INDEX_NAME)
        searches.stopping.set()
        searches.join()
        after = _answers(service.port)
    anyio.run(_drop, settings)
    where = "on servers" if urls else "embedded"
    answers = searches.answers
    failed = sum(status != 200 for status, *_ in answers)
    part = sum(not whole for *_, whole in answers)
    builds = {name: {build for _, other, build, _ in answers if other == name} for _, name, _, _ in answers}
    mixed = sum(len(each) != 1 for each in builds.values())
    return [
        report(not failed, f"{len(answers)} searches meanwhile, {where}: failed ones", str(failed)),
        report(not part, "empty or degraded ones", str(part)),
        report(not mixed and len(builds) == 2, "generations that were answered by more than one index", str(mixed)),
        report(
            before == after, "the answers after a rollback are those of before, byte for byte", str(before == after)
        ),
    ]


def _wait_for(searches: _Searches, name: str) -> None:
    deadline = time.monotonic() + 120
    while searches.answers[-1][1] != name:
        if time.monotonic() > deadline:
            raise SystemExit(f"no search was answered by {name}: {searches.answers[-1]}")
        time.sleep(0.05)


def _answers(port: int) -> list[bytes]:
    """The hits of some queries, as they are sent."""
    found = []
    for number in range(50):
        body = json.dumps({"query": f"module function {number}", "cache": "bypass"}).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/search", body)
        with urllib.request.urlopen(request, timeout=60) as response:  # noqa: S310
            found.append(response.read().partition(b'"took_ms"')[0])
    return found


def _throughput(work: Path, source: Path) -> bool:
    """The time of the bulk calls, as a fraction of that of the backfill: the median of rounds in turns."""
    ratios = []
    for number in range(_ROUNDS):
        folder = work / f"throughput-{number}"
        _trivium({"data_dir": folder}, "index", str(source))
        by_command = anyio.run(_backfilled_s, folder)
        by_calls = anyio.run(_bulk_s, folder, work / f"bulk-{number}")
        ratios.append(by_calls / by_command)
        out.print(f"backfill {by_command:.1f} s, bulk calls {by_calls:.1f} s", highlight=False)
    ratio = median(ratios)
    return report(
        ratio >= _MIN_THROUGHPUT, f"at least {_MIN_THROUGHPUT} of the throughput of bulk calls", f"{ratio:.2f}"
    )


async def _backfilled_s(folder: Path) -> float:
    async with AsyncExitStack() as stack:
        build = await opened(stack, load(data_dir=folder, **_CHANGED), batch=MAX_WRITE_DOCUMENTS)
        start = time.monotonic()
        await build.encode(0)
        await build.write()
        return time.monotonic() - start


async def _bulk_s(folder: Path, target: Path) -> float:
    """Encode the stored documents, and write them to another index."""
    encoder = DocumentVectors(MiniLM(), ("title",))
    async with open_service(load(data_dir=folder)) as source, open_service(load(data_dir=target, **_CHANGED)) as other:
        view, index = source.health.embedded.index.current(), other.health.embedded.index  # type: ignore[union-attr]
        start = time.monotonic()
        records = [each.record for each in view.records_with_vectors()]
        encoded: list[VectorRecord] = []
        for some in batches(records, MAX_BATCH_DOCUMENTS):
            vectors = await anyio.to_thread.run_sync(encoder.encode_documents, [record.document for record in some])
            encoded += [VectorRecord(record, each) for record, each in zip(some, vectors, strict=True)]
        for part in batches(encoded, MAX_WRITE_DOCUMENTS):
            await index.write(part, ())
        return time.monotonic() - start


def _memory(work: Path, documents: int) -> bool:
    peaks = []
    for count in (documents, documents * _TIMES):
        source = work / f"memory-{count}.ndjson"
        _write_source(source, count)
        folder = work / f"memory-{count}"
        _trivium({"data_dir": folder}, "index", str(source))
        process = _started({"data_dir": folder} | _CHANGED, "backfill", "--shard", "0/2")
        peaks.append(_peak_mib(process))
    out.print(f"encoding {documents} and {documents * _TIMES} documents: {peaks[0]:.0f} and {peaks[1]:.0f} MiB")
    growth = peaks[1] / peaks[0]
    return report(
        growth <= _MAX_GROWTH, f"{_TIMES} times the documents take at most {_MAX_GROWTH} of the memory", f"{growth:.2f}"
    )


def _peak_mib(process: subprocess.Popen[bytes]) -> float:
    """What a process has at most, without mapped files."""
    peak = 0
    watched = psutil.Process(process.pid)
    while process.poll() is None:
        with suppress(psutil.Error):
            info = watched.memory_info()
            peak = max(peak, info.rss - info.shared)
        time.sleep(_SAMPLED_S)
    return peak / 2**20


def _environment(settings: Values) -> dict[str, str]:
    return {**os.environ, **{f"TRIVIUM_{name.upper()}": str(value) for name, value in settings.items()}}


def _started(settings: Values, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "orchestrator", *arguments],
        env=_environment(settings),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _trivium(settings: Values, *arguments: str) -> None:
    """Run a command.

    :raises SystemExit: if it fails.
    """
    done = subprocess.run(
        [sys.executable, "-m", "orchestrator", *arguments], env=_environment(settings), capture_output=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"trivium {' '.join(arguments)}: {done.stderr.decode()[-2_000:]}")


if __name__ == "__main__":
    main()
