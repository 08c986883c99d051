from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from adapters import Rejected, Viewer
from adapters.engine import EmbeddedIndex
from adapters.model.filter import And, Eq, Filter, access, normal
from adapters.ports import SourceQuery, VectorRecord
from adapters.vector.embedded import EmbeddedVector, VectorComponent
from tests.conftest import DIMENSION, SCOPE, unit, vector_record

pytestmark = pytest.mark.anyio
COUNT = 6_000


def query(vector: np.ndarray | None, depth: int = 50, condition: Filter | None = None) -> SourceQuery:
    allowed = normal(access(SCOPE, Viewer("normal")))
    return SourceQuery("", depth, SCOPE, allowed, normal(And((allowed, condition))) if condition else allowed, vector)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> tuple[EmbeddedIndex, np.ndarray]:
    """Enough documents for a graph; a tenth is tagged ``tenth``, one in a hundred ``hundredth``."""
    index = EmbeddedIndex(tmp_path_factory.mktemp("vectors"), (VectorComponent(),), "t")
    vectors = np.stack([unit(seed) for seed in range(COUNT)])
    tags = [("tenth",) * (n % 10 == 0) + ("hundredth",) * (n % 100 == 0) for n in range(COUNT)]
    index.write_blocking(
        [VectorRecord(vector_record(str(n), tags=tags[n]).record, vectors[n : n + 1]) for n in range(COUNT)]
    )
    return index, vectors


@pytest.mark.parametrize(
    ("tag", "every", "min_recall"), [(None, 1, 0.95), ("tenth", 10, 0.95), ("hundredth", 100, 1.0)]
)
async def test_recall_compared_with_exact_search(large, tag, every, min_recall) -> None:
    index, vectors = large
    retriever = EmbeddedVector(index, VectorComponent())
    assert index.current().component(VectorComponent()), "too few documents for a graph: this test would not test it"
    recalls = []
    for seed in range(40):
        vector = unit(COUNT + seed)
        ranking = await retriever.search(query(vector, 20, Eq("tags", tag) if tag else None))
        allowed = np.arange(0, COUNT, every)
        exact = allowed[np.argsort(-(vectors[allowed] @ vector))[:20]]
        recalls.append(len({str(n) for n in exact} & set(ranking.ids)) / 20)
    assert np.mean(recalls) >= min_recall


async def test_scores_are_the_exact_cosines_although_the_graph_is_8_bit(large) -> None:
    index, vectors = large
    vector = unit(COUNT)
    ranking = await EmbeddedVector(index, VectorComponent()).search(query(vector, 20))
    assert ranking.scores == pytest.approx([float(vectors[int(id_)] @ vector) for id_ in ranking.ids], abs=1e-6)


@pytest.fixture(scope="module")
def of_windows(tmp_path_factory: pytest.TempPathFactory) -> tuple[EmbeddedIndex, list[np.ndarray]]:
    """Documents of 1 to 32 windows, those of a document near each other; every third is tagged ``third``."""
    index = EmbeddedIndex(tmp_path_factory.mktemp("windows"), (VectorComponent(),), "t")
    rng = np.random.default_rng(5)
    vectors = []
    for n in range(1_200):
        windows = unit(n) + 0.05 * rng.normal(size=(rng.integers(1, 33), DIMENSION)).astype(np.float32)
        vectors.append(windows / np.linalg.norm(windows, axis=1, keepdims=True))
    tags = [("third",) * (n % 3 == 0) for n in range(len(vectors))]
    records = [VectorRecord(vector_record(str(n), tags=tags[n]).record, each) for n, each in enumerate(vectors)]
    index.write_blocking(records[:1_000])
    index.write_blocking(records[1_000:])
    return index, vectors


@pytest.mark.parametrize("tag", [None, "third"])
@pytest.mark.parametrize("depth", [10, 300, 2_000])
async def test_documents_of_several_windows_are_found_by_the_nearest(of_windows, tag, depth) -> None:
    index, vectors = of_windows
    retriever = EmbeddedVector(index, VectorComponent())
    assert index.current().component(VectorComponent()), "too few vectors for a graph: this test would not test it"
    assert index.documents_by_component() == {"vector": len(vectors)}
    allowed = range(0, len(vectors), 3 if tag else 1)
    recalls = []
    for seed in range(20):
        vector = unit(10_000 + seed)
        cosines = {str(n): float((vectors[n] @ vector).max()) for n in allowed}
        exact = sorted(cosines, key=cosines.__getitem__, reverse=True)[:depth]
        ranking = await retriever.search(query(vector, depth, Eq("tags", tag) if tag else None))
        assert len(set(ranking.ids)) == len(ranking.ids) == len(exact)
        assert ranking.scores == pytest.approx([cosines[id_] for id_ in ranking.ids], abs=1e-6)
        recalls.append(len(set(exact) & set(ranking.ids)) / len(exact))
    assert np.mean(recalls) >= 0.97


async def test_deleted_documents_are_not_found_through_the_graph(tmp_path) -> None:
    index = EmbeddedIndex(tmp_path, (VectorComponent(),), "t")
    index.write_blocking([vector_record(str(n), seed=n) for n in range(5_000)])
    best = (await EmbeddedVector(index, VectorComponent()).search(query(unit(9_999), 10))).ids
    index.write_blocking([], [("default", "default", id_) for id_ in best])
    assert index.current().component(VectorComponent())
    after = (await EmbeddedVector(index, VectorComponent()).search(query(unit(9_999), 10))).ids
    assert len(after) == 10
    assert not set(after) & set(best)
    assert index.documents_by_component() == {"vector": 4_990}


async def test_ties_at_the_end_of_the_ranking_are_decided_by_position(
    open_index: Callable[[], EmbeddedIndex],
) -> None:
    index = open_index()
    await index.write([vector_record(f"{n:03}", seed=1) for n in range(100)], ())
    ranking = await EmbeddedVector(index, VectorComponent()).search(query(unit(1), 50))
    assert ranking.ids == tuple(f"{n:03}" for n in range(50))


async def test_a_vector_of_another_length_is_rejected(open_index: Callable[[], EmbeddedIndex]) -> None:
    index = open_index()
    await index.write([vector_record("a")], ())
    with pytest.raises(Rejected, match=f"vector has 3 numbers, the index has {DIMENSION}"):
        await EmbeddedVector(index, VectorComponent()).search(query(unit(1, 3)))
    with pytest.raises(Rejected, match="needs a vector"):
        await EmbeddedVector(index, VectorComponent()).search(query(None))
