"""``make bench-folder``: ``trivium index FOLDER``, beside reading, encoding and writing by their own bulk calls.

The folder has Markdown files of the documentation of this machine, with links between them. Throughput: the index of
the folder is built by the command's use case and by bulk calls, in turns; embedded, default settings. Memory: what a
process has at most, without mapped files, for a number of files and for ten times as many, less what the larger
embedded index itself needs. Known items: of each of 200 long files some words of one passage are searched for, and the
first hit has to be the chunk with these words. Exit code 1 if a claim is false.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from itertools import islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import anyio
import anyio.to_thread
import msgspec
import numpy as np

from adapters import Document, Record, Scope
from adapters.encoders.documents import DocumentVectors
from adapters.encoders.minilm import MiniLM
from adapters.model.batching import batches
from adapters.ports import VectorRecord
from benchmarks.claims import out, report
from benchmarks.passages import passages
from fusion.doc_ids import DEFAULT_COLLECTION
from orchestrator.bootstrap import open_service
from orchestrator.indexing.chunks import DEFAULT_CHUNK_TOKENS
from orchestrator.indexing.folder.walk import expanded, find
from orchestrator.indexing.ndjson import ValidLine, parse_ndjson
from orchestrator.indexing.pipeline import MAX_WRITE_DOCUMENTS
from orchestrator.schema.search_input import search_request
from orchestrator.service.service import Service
from orchestrator.settings import load
from orchestrator.telemetry.memory import used_bytes

_SECTIONS = 8
"""Passages in a file, each a section."""
_ROUNDS, _TIMES = 3, 10
_MIN_THROUGHPUT, _MAX_GROWTH = 0.8, 1.1
_SAMPLED_S = 0.02
_KNOWN, _LONG_SECTIONS = 200, 20
"""Long files, and the passages in each."""
_WORDS = 15
"""Words of a passage that are searched for."""
_MIN_FOUND = 0.95


def main() -> None:
    """Make the folder, then index it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=300)
    parser.add_argument("--peak", type=Path, help="index this folder, and print the MiB that it took")
    parser.add_argument("--index-alone", type=Path, help="the same for the documents of a file, without encoding")
    arguments = parser.parse_args()
    for path, work in ((arguments.peak, _index), (arguments.index_alone, _write_alone)):
        if path:
            sys.stdout.write(f"{json.dumps(anyio.run(_peak_mib, work, path))}\n")
            return
    with TemporaryDirectory() as root:
        small, large = Path(root, "small"), Path(root, "large")
        _write_files(small, arguments.files)
        _write_files(large, arguments.files * _TIMES)
        found = anyio.run(_found_first, Path(root, "long"))
        ratio = anyio.run(_throughput, small)
        growth = _growth(small, large)
    claims = [
        report(ratio >= _MIN_THROUGHPUT, f"at least {_MIN_THROUGHPUT} of the throughput of bulk calls", f"{ratio:.2f}"),
        report(
            growth <= _MAX_GROWTH,
            f"reading {_TIMES} times the files takes at most {_MAX_GROWTH} of the memory",
            f"{growth:.2f}",
        ),
        report(
            found >= _MIN_FOUND, f"of {_KNOWN} known items in long files at least {_MIN_FOUND} first", f"{found:.3f}"
        ),
    ]
    sys.exit(not all(claims))


def _write_files(folder: Path, count: int, sections_of_each: int = _SECTIONS) -> list[Document]:
    """Write files of some passages each, and return the passages."""
    folder.mkdir()
    texts = passages(count * sections_of_each)
    for number, sections in enumerate(batches(texts, sections_of_each)):
        parts = [
            f"## {each.title}\n\n{each.text}\n\nSee [another]({(number * 7 + 1) % count}.md)." for each in sections
        ]
        (folder / f"{number}.md").write_text("\n\n".join([f"# Page {number}", *parts]))
    return texts


async def _found_first(folder: Path) -> float:
    """The fraction of known items that are found first: words from the middle of one passage of each file."""
    texts = _write_files(folder, _KNOWN, _LONG_SECTIONS)
    chosen = random.Random(0)
    found = 0
    with TemporaryDirectory() as data:
        async with open_service(load(data_dir=data)) as service:
            await _index(service, folder)
            for of_file in batches(texts, _LONG_SECTIONS):
                words = chosen.choice(of_file).text.split()
                start = max(0, (len(words) - _WORDS) // 2)
                asked = words[start : start + _WORDS]
                request = search_request({"query": " ".join(asked), "limit": 1, "timeout_ms": 60_000})
                response = await service.search.search(request, service.anonymous, "known-item")
                found += any(" ".join(asked) in " ".join(hit.text.split()) for hit in response.hits)
    return found / _KNOWN


async def _throughput(folder: Path) -> float:
    """Time of the bulk calls, as a fraction of that of the command: the median of rounds in turns."""
    ratios = []
    for _ in range(_ROUNDS):
        with TemporaryDirectory() as data:
            async with open_service(load(data_dir=data)) as service:
                start = time.monotonic()
                await _index(service, folder)
                by_command = time.monotonic() - start
                records = [document async for document in service.documents.all(service.anonymous)]
        with TemporaryDirectory() as data:
            async with open_service(load(data_dir=data)) as service:
                bulk = await _bulk(service, folder, records)
        ratios.append(sum(bulk) / by_command)
        read, encoded, written = bulk
        out.print(
            f"{len(records):,} documents in {by_command:.1f} s; reading {read:.2f}, encoding {encoded:.1f}, writing "
            f"{written:.1f} s: {ratios[-1]:.2f}",
            highlight=False,
        )
    return median(ratios)


async def _index(service: Service, folder: Path) -> None:
    files = await service.folders.read(find(expanded([str(folder)])))
    await service.folders.index(files, service.anonymous, DEFAULT_COLLECTION, DEFAULT_CHUNK_TOKENS)


async def _bulk(service: Service, folder: Path, documents: list[Document]) -> tuple[float, float, float]:
    """Seconds to read the files, to encode the documents, to write them: all of one kind at once."""
    start = time.monotonic()
    for file in find(expanded([str(folder)])).files:
        file.path.read_bytes()
    read = time.monotonic()
    model = MiniLM()
    loaded = time.monotonic()
    vectors = await anyio.to_thread.run_sync(DocumentVectors(model).encode_documents, documents)
    encoded = time.monotonic()
    scope = Scope()
    records = [
        VectorRecord(Record(scope.tenant, scope.environment, document, document.entities or ()), each)
        for document, each in zip(documents, vectors, strict=True)
    ]
    ready = time.monotonic()
    for batch in batches(records, MAX_WRITE_DOCUMENTS):
        await service.documents.lines.writer.write(batch, ())
    return read - start, encoded - loaded, time.monotonic() - ready


def _growth(small: Path, large: Path) -> float:
    """Memory for ten times the files, divided by that for the files, without what the larger index itself needs."""
    peaks = [_peak_of("--peak", folder) for folder in (small, large)]
    alone = [_peak_of("--index-alone", folder.with_suffix(".ndjson")) for folder in (small, large)]
    out.print(
        f"MiB at most: {peaks[0]:.0f}, with {_TIMES} times the files {peaks[1]:.0f}; the index alone, of the same "
        f"documents without reading files and encoding: {alone[0]:.0f} and {alone[1]:.0f}",
        soft_wrap=True,
        highlight=False,
    )
    return (peaks[1] - (alone[1] - alone[0])) / peaks[0]


def _peak_of(option: str, path: Path) -> float:
    command = [sys.executable, "-m", "benchmarks.folder", option, str(path)]
    peak: float = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return peak


async def _peak_mib(work: Callable[[Service, Path], Awaitable[None]], path: Path) -> float:
    """The most memory that this process has while it works with a new index; its documents are left beside a folder."""
    peak = 0
    ended = threading.Event()

    def sample() -> None:
        nonlocal peak
        while not ended.wait(_SAMPLED_S):
            peak = max(peak, used_bytes())

    sampler = threading.Thread(target=sample)
    sampler.start()
    with TemporaryDirectory() as data:
        async with open_service(load(data_dir=data)) as service:
            await work(service, path)
            ended.set()
            sampler.join()
            if not path.suffix:
                await _export(service, path.with_suffix(".ndjson"))
    return peak / 2**20


async def _export(service: Service, path: Path) -> None:
    with path.open("wb") as file:
        async for document in service.documents.all(service.anonymous):
            file.write(msgspec.json.encode(document) + b"\n")


async def _write_alone(service: Service, path: Path) -> None:
    """Write documents with vectors that are not encoded."""
    generator = np.random.default_rng(0)
    scope = Scope()
    with path.open("rb") as file:
        lines = (line for line in parse_ndjson(file) if isinstance(line, ValidLine))
        while batch := list(islice(lines, MAX_WRITE_DOCUMENTS)):
            vectors = generator.normal(size=(len(batch), 1, MiniLM.dimension)).astype(np.float32)
            vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
            records = [
                VectorRecord(
                    Record(scope.tenant, scope.environment, line.document, line.document.entities or ()), vector
                )
                for line, vector in zip(batch, vectors, strict=True)
            ]
            await service.documents.lines.writer.write(records, ())


if __name__ == "__main__":
    main()
