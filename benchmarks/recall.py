"""``make bench-recall``: how many of the nearest documents the embedded vector search finds, and what that costs.

The passages of all judged data sets in one index, too many to be compared one by one. Searched with the vectors of
their queries, as widely as searches are (``adapters/vector/width.py``) and as narrowly as they can be, in turn.
A document counts as found if its cosine is among the highest, so that equal texts may replace each other.
Exit code 1 if it finds less than 99 % at the depth of a page of ten.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import process_time
from unittest.mock import patch

import anyio
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace
from rich.table import Table

from adapters import Scope, SourceQuery, VectorRecord
from adapters.encoders.minilm import MiniLM
from adapters.engine.index import EmbeddedIndex
from adapters.model.document import HIGHEST_CLEARANCE
from adapters.ports.encoders import Matrix, Vector
from adapters.vector import embedded
from adapters.vector.width import search_width
from benchmarks.claims import out, report
from benchmarks.corpus import indexed_records
from orchestrator.auth.visibility import access_filter
from orchestrator.evaluation.dataset import read_dataset
from orchestrator.evaluation.workspace import Workspace
from orchestrator.settings import load

_DEPTHS, _PAGE_DEPTH = (50, 100, 300), 100
_MIN_RECALL = 0.99
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
    return VectorRecord(replace(stored.record, document=document), stored.vector)


async def _measure(folder: Path, records: Sequence[VectorRecord], vectors: Matrix) -> bool:
    component = embedded.VectorComponent()
    index = EmbeddedIndex(folder, [component], "recall", strict=True)
    await index.write(records, ())
    source = embedded.EmbeddedVector(index, component)
    cosines = -np.sort(-(vectors @ np.stack([each.vector for each in records]).T), axis=1)
    table = Table(title=f"{len(records):,} passages, {len(vectors)} queries", title_justify="left")
    for column in ("depth", "width", "recall", "CPU ms", "narrowest", "recall", "CPU ms"):
        table.add_column(column, justify="right")
    recalls = {}
    for depth in _DEPTHS:
        row = [f"{depth}"]
        for width in (search_width, int):  # the narrowest search has as many candidates as results
            with patch.object(embedded, "search_width", width):
                found, cpu_ms = await _search(source, records[0], vectors, depth)
            recall = float(np.mean(found >= cosines[:, depth - 1 : depth] - _ROUNDING))
            recalls.setdefault(depth, recall)
            row += [f"{width(depth)}", f"{recall:.4f}", f"{cpu_ms:.2f}"]
        table.add_row(*row)
    out.print(table)
    found_at_page = recalls[_PAGE_DEPTH]
    return report(
        found_at_page >= _MIN_RECALL, f"recall at depth {_PAGE_DEPTH} at least {_MIN_RECALL:g}", f"{found_at_page:.4f}"
    )


async def _search(
    source: embedded.EmbeddedVector, of_scope: VectorRecord, vectors: Matrix, depth: int
) -> tuple[npt.NDArray[np.float32], float]:
    """The cosines of the documents that each query finds, (queries, depth), and the mean CPU time of a search in ms."""
    scope = Scope(of_scope.record.tenant, of_scope.record.environment)
    visible = access_filter(scope, HIGHEST_CLEARANCE)
    found = []
    start = process_time()
    for vector in vectors:
        ranking = await source.search(SourceQuery("", depth, scope, visible, visible, vector))
        found.append(ranking)
    cpu_ms = (process_time() - start) / len(vectors) * 1_000
    return np.stack([ranking.scores for ranking in found]), cpu_ms


if __name__ == "__main__":
    main()
