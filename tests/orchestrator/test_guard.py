"""The guard over the real embedded engine: groups of documents that vectors tell apart, and graphs of three kinds."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from adapters import Entry, Link, Unavailable
from adapters.embedded import Library
from adapters.graph.embedded import EmbeddedGraph
from adapters.graph.part import GraphPart
from adapters.keyword.embedded import KeywordPart
from adapters.port import Vector
from adapters.vector.embedded import EmbeddedVector, VectorPart
from orchestrator.guard import Guard, Trust
from tests.conftest import DIMENSION, entry

pytestmark = pytest.mark.anyio

GROUPS, MEMBERS = 10, 12


class ByGroup:
    """Encodes a text by the group that it names, as the documents below were."""

    dimension = DIMENSION

    async def encode(self, text: str) -> Vector:
        return _vector(int(text.split()[1]), 0)


def _vector(group: int, noise: int) -> Vector:
    made = np.random.default_rng(noise).normal(0, 0.05, DIMENSION).astype(np.float32)
    made[group] += 1
    return made / np.linalg.norm(made)


def _corpus(partner: dict[int, int]) -> list[Entry]:
    """Documents by number, each linked to another."""
    return [
        Entry(
            entry(str(n), f"group {n % GROUPS}", links=(Link(str(partner[n]), "cites"),)).record,
            _vector(n % GROUPS, n),
        )
        for n in range(GROUPS * MEMBERS)
    ]


async def _measured(folder: Path, entries: list[Entry]) -> Guard:
    library = Library(folder / "index", (VectorPart(), KeywordPart(), GraphPart()), "test-1")
    await library.write(entries, ())
    guard = Guard(folder / "trust.json")
    vectors, graph = EmbeddedVector(library, VectorPart()), EmbeddedGraph(library, GraphPart())
    await guard.measure(library, ByGroup(), vectors, graph, library.generation())
    return guard


async def test_links_within_what_is_alike_are_trusted(tmp_path: Path) -> None:
    count = GROUPS * MEMBERS
    guard = await _measured(tmp_path, _corpus({n: (n + GROUPS) % count for n in range(count)}))
    assert guard.trust is not None
    assert guard.trust.lift > 5
    assert (guard.value(), guard.trust.generation) == (1.0, 1)
    assert Guard(tmp_path / "trust.json").trust == guard.trust


async def test_links_by_chance_are_not(tmp_path: Path) -> None:
    """Half of the walks find none of the next nearest, so the median is near 0."""
    shuffled = list(range(GROUPS * MEMBERS))
    random.Random(1).shuffle(shuffled)
    guard = await _measured(tmp_path, _corpus(dict(enumerate(shuffled))))
    assert guard.trust is not None
    assert guard.trust.lift < 2
    assert guard.value() == 0.0


async def test_no_links_at_all_are_worth_no_question(tmp_path: Path) -> None:
    guard = await _measured(tmp_path, _corpus({n: n for n in range(GROUPS * MEMBERS)}))
    assert guard.value() == 0.0


async def test_too_few_documents_tell_nothing(tmp_path: Path) -> None:
    guard = await _measured(tmp_path, _corpus({n: (n + GROUPS) % 40 for n in range(GROUPS * MEMBERS)})[:40])
    assert guard.trust is None
    assert guard.value() == 1.0


@pytest.mark.parametrize(("lift", "guard"), [(0.0, 0.0), (2.0, 0.0), (2.25, 0.25), (3.0, 1.0), (11.0, 1.0)])
def test_the_guard_rises_between_twice_and_three_times_chance(lift: float, guard: float) -> None:
    assert Trust(lift, 1, 1).guard == guard


def test_another_process_may_measure_again(tmp_path: Path) -> None:
    file = tmp_path / "trust.json"
    guard = Guard(file)
    file.write_bytes(b'{"lift": 2.5, "passages": 9, "generation": 4}')
    guard.refresh()
    assert guard.value() == 0.5
    file.unlink()
    file.write_bytes(b"?")
    with pytest.raises(Unavailable, match=r"trust\.json is damaged, remove it"):
        guard.refresh()
