"""The search of HNSW graphs, compiled and by faiss: both find the same rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from adapters.vector import hnsw
from adapters.vector.hnsw import HnswGraph
from tests.conftest import unit

ROWS, DIMENSION = 5_000, 64
COUNT, WIDTH = 50, 150


@pytest.fixture(scope="module")
def vectors() -> np.ndarray:
    return np.stack([unit(seed, DIMENSION) for seed in range(ROWS)])


@pytest.fixture(scope="module")
def graph(vectors: np.ndarray, tmp_path_factory: pytest.TempPathFactory) -> HnswGraph:
    path = tmp_path_factory.mktemp("hnsw") / "graph.faiss"
    hnsw.build(vectors, path)
    return HnswGraph(path)


def test_the_installed_search_finds_what_faiss_finds(graph: HnswGraph) -> None:
    """Almost: where two rows differ by less than the rounding of either, they may change places at the end."""
    same = []
    for seed in range(ROWS, ROWS + 50):
        vector = unit(seed, DIMENSION)
        rows = graph.nearest(vector, COUNT, WIDTH).tolist()
        by_faiss = graph.nearest_by_faiss(vector, COUNT, WIDTH).tolist()
        assert len(set(rows)) == len(rows) == len(by_faiss) == COUNT
        same.append(len(set(rows) & set(by_faiss)) / COUNT)
    assert np.mean(same) >= 0.995
    assert min(same) >= 0.96


def test_without_a_compiler_faiss_searches(graph: HnswGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hnsw, "_IS_COMPILED", False)
    vector = unit(ROWS, DIMENSION)
    assert graph.nearest(vector, COUNT, WIDTH).tolist() == graph.nearest_by_faiss(vector, COUNT, WIDTH).tolist()


def test_most_of_the_nearest_rows_are_found(graph: HnswGraph, vectors: np.ndarray) -> None:
    recalls = []
    for seed in range(ROWS, ROWS + 50):
        vector = unit(seed, DIMENSION)
        exact = np.argsort(-(vectors @ vector))[:COUNT]
        recalls.append(len(set(graph.nearest(vector, COUNT, WIDTH)) & set(exact)) / COUNT)
    assert np.mean(recalls) >= 0.95


@pytest.mark.parametrize("fraction", [0.5, 0.1])
@pytest.mark.parametrize(("kind", "expected"), [("random", 0.95), ("near a row", 0.95), ("far from the query", 0.75)])
def test_a_filter_costs_little_recall(
    graph: HnswGraph, vectors: np.ndarray, fraction: float, kind: str, expected: float
) -> None:
    recalls = []
    for seed in range(ROWS, ROWS + 50):
        vector = unit(seed, DIMENSION)
        closeness = {
            "random": np.random.default_rng(seed).random(ROWS),
            "near a row": vectors @ vectors[seed - ROWS],
            "far from the query": -(vectors @ vector),
        }[kind]
        allowed = closeness > np.quantile(closeness, 1 - fraction)
        exact = np.flatnonzero(allowed)[np.argsort(-(vectors[allowed] @ vector))[:COUNT]]
        rows = graph.nearest(vector, COUNT, WIDTH, allowed)
        assert len(set(rows.tolist())) == COUNT
        assert allowed[rows].all()
        recalls.append(len(set(rows) & set(exact)) / COUNT)
    assert np.mean(recalls) >= expected


def test_only_allowed_rows_are_results(graph: HnswGraph) -> None:
    allowed = np.zeros(ROWS, np.bool_)
    allowed[:3] = True
    for seed in range(20):  # the row that the vector is nearest to, and a row that is not allowed
        rows = graph.nearest(unit(seed, DIMENSION), COUNT, WIDTH, allowed)
        assert set(rows.tolist()) <= {0, 1, 2}
        assert seed not in rows.tolist() or seed < 3
    assert graph.nearest(unit(1, DIMENSION), COUNT, WIDTH, np.zeros(ROWS, np.bool_)).tolist() == []


def test_one_result_is_the_row_itself(graph: HnswGraph) -> None:
    found = [graph.nearest(unit(seed, DIMENSION), 1, 64).tolist() == [seed] for seed in range(100)]
    assert np.mean(found) >= 0.99


def test_a_vector_of_zeros_has_results(graph: HnswGraph) -> None:
    assert len(graph.nearest(np.zeros(DIMENSION, np.float32), COUNT, WIDTH)) == COUNT


@pytest.mark.parametrize("dimension", [1, 64, 384, 4_096])
def test_no_score_overflows(tmp_path: Path, dimension: int) -> None:
    """The largest score there is: all codes are 255, and all numbers of the query the same."""
    ones = np.ones(dimension, np.float32) / np.sqrt(np.float32(dimension))
    rows = np.stack([ones if row == 7 else -ones for row in range(40)])
    hnsw.build(rows, tmp_path / "graph.faiss")
    graph = HnswGraph(tmp_path / "graph.faiss")
    assert graph.nearest(ones, 1, 40).tolist() == [7]
    assert 7 not in graph.nearest(-ones, 39, 40).tolist()


def test_a_graph_of_the_first_rows_is_extended(graph: HnswGraph, vectors: np.ndarray, tmp_path: Path) -> None:
    first, other = tmp_path / "first.faiss", tmp_path / "other.faiss"
    hnsw.build(vectors[:3_000], first)
    hnsw.build(vectors[1_000:4_000], other)
    hnsw.build(vectors, tmp_path / "all.faiss", [other, first])
    extended = HnswGraph(tmp_path / "all.faiss")
    assert extended._codes[: 3_000 * DIMENSION].tobytes() == HnswGraph(first)._codes.tobytes()
    same = [
        len(set(extended.nearest(vector, COUNT, WIDTH)) & set(graph.nearest(vector, COUNT, WIDTH))) / COUNT
        for vector in (unit(seed, DIMENSION) for seed in range(ROWS, ROWS + 50))
    ]
    assert np.mean(same) >= 0.95


def test_a_graph_of_other_rows_is_not_extended(vectors: np.ndarray, tmp_path: Path) -> None:
    earlier = [tmp_path / "shifted.faiss", tmp_path / "few.faiss", tmp_path / "wide.faiss"]
    hnsw.build(vectors[1:3_001], earlier[0])
    hnsw.build(vectors[:2_000], earlier[1])  # less than half
    hnsw.build(np.hstack([vectors[:3_000]] * 2), earlier[2])
    hnsw.build(vectors, tmp_path / "all.faiss", earlier)
    hnsw.build(vectors, tmp_path / "new.faiss")
    assert HnswGraph(tmp_path / "all.faiss")._codes.tobytes() == HnswGraph(tmp_path / "new.faiss")._codes.tobytes()
