from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from adapters import Entry, Query, Rejected
from adapters.embedded import Library
from adapters.filter import And, Eq, Filter, access, normal
from adapters.vector.embedded import EmbeddedVector, VectorPart
from tests.conftest import DIMENSION, SCOPE, entry, unit

pytestmark = pytest.mark.anyio
COUNT = 6_000


def query(vector: np.ndarray | None, depth: int = 50, wanted: Filter | None = None) -> Query:
    allowed = normal(access(SCOPE, "normal"))
    return Query("", depth, SCOPE, allowed, normal(And((allowed, wanted))) if wanted else allowed, vector)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> tuple[Library, np.ndarray]:
    """Enough documents for a graph; a tenth is tagged ``tenth``, one in a hundred ``hundredth``."""
    library = Library(tmp_path_factory.mktemp("vectors"), (VectorPart(),), "t")
    vectors = np.stack([unit(seed) for seed in range(COUNT)])
    tags = [("tenth",) * (n % 10 == 0) + ("hundredth",) * (n % 100 == 0) for n in range(COUNT)]
    library.write_now([Entry(entry(str(n), tags=tags[n]).record, vectors[n]) for n in range(COUNT)])
    return library, vectors


@pytest.mark.parametrize(("tag", "every", "least"), [(None, 1, 0.95), ("tenth", 10, 0.95), ("hundredth", 100, 1.0)])
async def test_recall_against_comparing_with_all(large, tag, every, least) -> None:
    library, vectors = large
    retriever = EmbeddedVector(library, VectorPart())
    assert library.current().index(VectorPart()), "too few documents for a graph: this test would prove nothing"
    recalls = []
    for seed in range(40):
        asked = unit(COUNT + seed)
        ranking = await retriever.search(query(asked, 20, Eq("tags", tag) if tag else None))
        allowed = np.arange(0, COUNT, every)
        exact = allowed[np.argsort(-(vectors[allowed] @ asked))[:20]]
        recalls.append(len({str(n) for n in exact} & set(ranking.ids)) / 20)
    assert np.mean(recalls) >= least


async def test_scores_are_the_exact_cosines_although_the_graph_is_8_bit(large) -> None:
    library, vectors = large
    asked = unit(COUNT)
    ranking = await EmbeddedVector(library, VectorPart()).search(query(asked, 20))
    assert ranking.scores == pytest.approx([float(vectors[int(id_)] @ asked) for id_ in ranking.ids], abs=1e-6)


async def test_deleted_documents_are_not_found_through_the_graph(tmp_path) -> None:
    library = Library(tmp_path, (VectorPart(),), "t")
    library.write_now([entry(str(n), seed=n) for n in range(5_000)])
    best = (await EmbeddedVector(library, VectorPart()).search(query(unit(9_999), 10))).ids
    library.write_now([], [("default", "default", id_) for id_ in best])
    assert library.current().index(VectorPart())
    after = (await EmbeddedVector(library, VectorPart()).search(query(unit(9_999), 10))).ids
    assert len(after) == 10
    assert not set(after) & set(best)
    assert library.documents_by_part() == {"vector": 4_990}


async def test_what_ties_at_the_end_of_the_depth_is_decided_by_position(open_library: Callable[[], Library]) -> None:
    library = open_library()
    await library.write([entry(f"{n:03}", seed=1) for n in range(100)], ())
    ranking = await EmbeddedVector(library, VectorPart()).search(query(unit(1), 50))
    assert ranking.ids == tuple(f"{n:03}" for n in range(50))


async def test_a_vector_of_another_length_is_refused(open_library: Callable[[], Library]) -> None:
    library = open_library()
    await library.write([entry("a")], ())
    with pytest.raises(Rejected, match=f"vector has 3 numbers, the index has {DIMENSION}"):
        await EmbeddedVector(library, VectorPart()).search(query(unit(1, 3)))
    with pytest.raises(Rejected, match="without a vector"):
        await EmbeddedVector(library, VectorPart()).search(query(None))
