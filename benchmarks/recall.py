"""``make bench-recall``: how many of the nearest documents the vector search finds, and what that costs.

The passages of all judged data sets in one index, too many to be compared one by one. Searched with the vectors of
their queries, as widely as searches are (``adapters/vector/width.py``) and as narrowly as they can be, in turn.
A document counts as found if its cosine is among the highest, so that equal texts may replace each other.
Then with filters, in one segment and in eight, and in a real Qdrant if one is on the path. Exit code 1 if a search
finds less than 99 % at the depth of a page of ten, a query less than 90 % (80 % in Qdrant), or fewer documents than
pass a filter.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import process_time
from unittest.mock import patch

import anyio
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace
from qdrant_client.models import CollectionStatus
from rich.table import Table

from adapters import Scope
from adapters.encoders.minilm import MiniLM
from adapters.engine.index import EmbeddedIndex
from adapters.model.filter import Filter, In, conjunction
from adapters.model.protection import UNRESTRICTED
from adapters.ports import Retriever, SourceQuery, VectorRecord
from adapters.ports.encoders import Matrix, Vector
from adapters.servers.server import VECTOR_SCHEMES, Address, Limits
from adapters.vector import embedded, qdrant_connection
from adapters.vector.qdrant import QdrantVector
from adapters.vector.width import search_width
from benchmarks.claims import out, report
from benchmarks.corpus import indexed_records
from orchestrator.auth.visibility import access_filter
from orchestrator.evaluation.dataset import read_dataset
from orchestrator.evaluation.workspace import Workspace
from orchestrator.settings import load
from tests.servers.start import Qdrant

_DEPTHS, _PAGE_DEPTH = (50, 100, 200), 100
_SEGMENTS = (1, 8)
_KEPT = (0.5, 0.3, 0.2, 0.1, 0.06, 0.02, 0.005)
_MIN_RECALL, _MIN_WORST, _MIN_WORST_IN_QDRANT = 0.99, 0.9, 0.8
_QUERIES_PER_SET = 50
_ROUNDING = 1e-6


def main() -> None:
    """Index the passages of every folder on the command line together, and search them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="+", help="BEIR folders with queries")
    parser.add_argument("--work", type=Path, default=Path("benchmarks/.data/quality"), help="folder of the indexes")
    arguments = parser.parse_args()
    settings = load(data_dir=arguments.work)
    model = MiniLM()
    records: list[VectorRecord] = []
    vectors: list[Vector] = []
    for folder in arguments.folders:
        dataset = read_dataset(folder)
        records += anyio.run(indexed_records, Workspace.of(settings, dataset))
        vectors += map(model.encode, list(dataset.queries.values())[:_QUERIES_PER_SET])
    numbered = [_numbered(record, number) for number, record in enumerate(records)]
    with tempfile.TemporaryDirectory() as folder:
        raise SystemExit(0 if anyio.run(_measure, Path(folder), numbered, np.stack(vectors)) else 1)


def _numbered(stored: VectorRecord, number: int) -> VectorRecord:
    """The same document with its number as id: two data sets may use the same ids."""
    document = replace(stored.record.document, id=str(number), links=())
    return VectorRecord(replace(stored.record, document=document), stored.vectors)


async def _measure(folder: Path, records: Sequence[VectorRecord], vectors: Matrix) -> bool:
    cosines = _cosines(vectors, records)
    passed = []
    for segments in _SEGMENTS:
        component = embedded.VectorComponent()
        index = EmbeddedIndex(folder / str(segments), [component], "recall", strict=True)
        for part in _parts(records, segments):
            await index.write(part, ())
        source = embedded.EmbeddedVector(index, component)
        sizes = [len(segment) for segment in index.current().segments.segments]
        out.print(f"{len(records):,} passages in segments of {sizes}, {len(vectors)} queries")
        if segments == 1:
            passed.append(await _without_filter(source, records[0], cosines, vectors))
        passed.append(await _with_filters(source, records, cosines, vectors))
    if shutil.which("qdrant"):
        (folder / "qdrant").mkdir()
        with Qdrant(folder / "qdrant") as server:
            passed.append(await _in_qdrant(server.url, records, cosines, vectors))
    return all(passed)


async def _in_qdrant(url: str, records: Sequence[VectorRecord], cosines: Matrix, vectors: Matrix) -> bool:
    limits = Limits(read_timeout_s=60.0, write_timeout_s=120.0)
    client = qdrant_connection.connect(Address.parse(url, VECTOR_SCHEMES), None, limits)
    source = QdrantVector(client, "recall", vectors.shape[1], "recall", limits)
    await source.create()
    await source.apply(1, records, ())
    while (await client.get_collection("recall")).status != CollectionStatus.GREEN:  # noqa: ASYNC110
        await anyio.sleep(0.5)  # nothing reports when the graph of the vectors is built
    out.print(f"{await source.count():,} passages in Qdrant {await source.release()}")
    passed = await _with_filters(source, records, cosines, vectors, _MIN_WORST_IN_QDRANT)
    await source.close()
    return passed


def _cosines(vectors: Matrix, records: Sequence[VectorRecord]) -> Matrix:
    """The cosine of each query and the nearest window of each document; shape (queries, documents)."""
    starts = np.cumsum([0, *(len(each.vectors) for each in records[:-1])])
    cosines: Matrix = np.maximum.reduceat(
        vectors @ np.concatenate([each.vectors for each in records]).T, starts, axis=1
    )
    return cosines


def _parts(records: Sequence[VectorRecord], count: int) -> list[Sequence[VectorRecord]]:
    """Parts of which each is a third of the one before: writes of that size do not merge the segments."""
    sizes = np.cumsum([3.0**-number for number in range(count)])
    ends = (sizes / sizes[-1] * len(records)).astype(int).tolist()
    return [records[start:end] for start, end in zip([0, *ends], ends, strict=False)]


async def _without_filter(
    source: embedded.EmbeddedVector, of_scope: VectorRecord, cosines: Matrix, vectors: Matrix
) -> bool:
    cosines = -np.sort(-cosines, axis=1)
    table = _table("depth", "width", "recall", "CPU ms", "narrowest", "recall", "CPU ms")
    recalls = {}
    for depth in _DEPTHS:
        row = [f"{depth}"]
        for width in (search_width, _narrowest):
            with patch.object(embedded, "search_width", width):
                found, cpu_ms = await _search(source, of_scope, _visible(of_scope), vectors, depth)
            recall = float(np.mean(np.stack(found) >= cosines[:, depth - 1 : depth] - _ROUNDING))
            recalls.setdefault(depth, recall)
            row += [f"{width(depth)}", f"{recall:.4f}", f"{cpu_ms:.2f}"]
        table.add_row(*row)
    out.print(table)
    found_at_page = recalls[_PAGE_DEPTH]
    return report(
        found_at_page >= _MIN_RECALL, f"recall at depth {_PAGE_DEPTH} at least {_MIN_RECALL:g}", f"{found_at_page:.4f}"
    )


def _narrowest(depth: int, is_filtered: bool = False) -> int:
    """The narrowest search has as many candidates as results."""
    del is_filtered
    return depth


async def _with_filters(
    source: Retriever,
    records: Sequence[VectorRecord],
    cosines: Matrix,
    vectors: Matrix,
    min_worst: float = _MIN_WORST,
) -> bool:
    """Filters that keep random passages, and those nearest to one passage: most queries are about other topics."""
    rng = np.random.default_rng(0)
    firsts = np.stack([each.vectors[0] for each in records])
    table = _table("kept", "passages", "hits missing", "mean recall", "worst query", "CPU ms", "without filter")
    missing, means, worst = 0, [], []
    _, unfiltered_ms = await _search(source, records[0], _visible(records[0]), vectors, _PAGE_DEPTH)
    for fraction in _KEPT:
        for kind in ("random", "of a topic"):
            count = int(len(records) * fraction)
            closeness = rng.random(len(records)) if kind == "random" else firsts @ firsts[rng.integers(len(records))]
            kept = np.sort(np.argpartition(-closeness, count)[:count])
            condition = conjunction(
                _visible(records[0]), In("id", tuple(records[row].record.document.id for row in kept))
            )
            of_kept = -np.sort(-cosines[:, kept], axis=1)
            found, cpu_ms = await _search(source, records[0], condition, vectors, _PAGE_DEPTH)
            depth = min(_PAGE_DEPTH, count)
            recalls = [
                float(np.sum(each >= of_query[depth - 1] - _ROUNDING)) / depth
                for each, of_query in zip(found, of_kept, strict=True)
            ]
            missing += sum(depth - len(each) for each in found)
            means.append(float(np.mean(recalls)))
            worst.append(min(recalls))
            table.add_row(
                f"{fraction:.1%} {kind}", f"{count:,}", f"{sum(depth - len(each) for each in found)}",
                f"{means[-1]:.4f}", f"{worst[-1]:.2f}", f"{cpu_ms:.2f}", f"{unfiltered_ms:.2f}",
            )  # fmt: skip
    out.print(table)
    return all(
        [
            report(missing == 0, "with a filter as many hits as match", f"{missing} missing"),
            report(min(means) >= _MIN_RECALL, f"mean recall at least {_MIN_RECALL:g}", f"{min(means):.4f}"),
            report(min(worst) >= min_worst, f"recall of every query at least {min_worst:g}", f"{min(worst):.2f}"),
        ]
    )


def _table(*columns: str) -> Table:
    table = Table()
    for column in columns:
        table.add_column(column, justify="right")
    return table


def _visible(of_scope: VectorRecord) -> Filter:
    return access_filter(Scope(of_scope.record.tenant, of_scope.record.environment), UNRESTRICTED)


async def _search(
    source: Retriever, of_scope: VectorRecord, condition: Filter, vectors: Matrix, depth: int
) -> tuple[list[npt.NDArray[np.float64]], float]:
    """The cosines of the documents that each query finds, and the mean CPU time of a search in ms."""
    scope = Scope(of_scope.record.tenant, of_scope.record.environment)
    query = SourceQuery("", depth, scope, _visible(of_scope), condition)
    await source.search(replace(query, vector=vectors[0]))  # the filter is evaluated once
    start = process_time()
    found = [(await source.search(replace(query, vector=vector))).scores for vector in vectors]
    return found, (process_time() - start) / len(vectors) * 1_000


if __name__ == "__main__":
    main()
