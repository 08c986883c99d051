"""The guard over the real embedded engine: groups of documents that vectors tell apart, and graphs of three kinds."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from adapters import Entry, Link, Scope, Unavailable
from adapters.embedded import Library
from adapters.graph.embedded import EmbeddedGraph
from adapters.graph.part import GraphPart
from adapters.keyword.embedded import KeywordPart
from adapters.port import Vector
from adapters.vector.embedded import EmbeddedVector, VectorPart
from orchestrator.guard import Guard, Trust
from tests.conftest import DIMENSION, SCOPE, entry

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


def _corpus(partner: dict[int, int], scope: Scope = SCOPE) -> list[Entry]:
    """Documents by number, each linked to another; who is linked to itself has no link."""
    return [
        Entry(
            entry(str(n), f"group {n % GROUPS}", scope=scope, links=(Link(str(partner[n]), "cites"),)).record,
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
    trust = guard.trust(SCOPE)
    assert trust is not None
    assert trust.lift > 5
    assert (guard.value(SCOPE), guard.generation) == (1.0, 1)
    assert Guard(tmp_path / "trust.json").trust(SCOPE) == trust


async def test_links_by_chance_are_not(tmp_path: Path) -> None:
    shuffled = list(range(GROUPS * MEMBERS))
    random.Random(1).shuffle(shuffled)
    guard = await _measured(tmp_path, _corpus(dict(enumerate(shuffled))))
    trust = guard.trust(SCOPE)
    assert trust is not None
    assert trust.lift < 2
    assert guard.value(SCOPE) == 0.0


async def test_no_tenant_decides_for_another(tmp_path: Path) -> None:
    count = GROUPS * MEMBERS
    shuffled = list(range(count))
    random.Random(1).shuffle(shuffled)
    other = Scope("other", "default")
    good = _corpus({n: (n + GROUPS) % count for n in range(count)})
    guard = await _measured(tmp_path, [*good, *_corpus(dict(enumerate(shuffled)), other)])
    assert (guard.value(SCOPE), guard.value(other)) == (1.0, 0.0)
    assert guard.trust(SCOPE) == (await _measured(tmp_path / "alone", good)).trust(SCOPE)


async def test_a_graph_over_half_of_the_documents_is_judged_by_that_half(tmp_path: Path) -> None:
    count = GROUPS * MEMBERS
    half = {n: (n + GROUPS) % count if n % 2 and n // GROUPS < MEMBERS // 2 else n for n in range(count)}
    guard = await _measured(tmp_path, _corpus(half))
    assert guard.value(SCOPE) == 1.0


async def test_no_links_at_all_are_held_against_nobody(tmp_path: Path) -> None:
    guard = await _measured(tmp_path, _corpus({n: n for n in range(GROUPS * MEMBERS)}))
    assert guard.trust(SCOPE) is None
    assert (guard.value(SCOPE), guard.generation) == (1.0, 1)


async def test_too_few_documents_tell_nothing(tmp_path: Path) -> None:
    guard = await _measured(tmp_path, _corpus({n: (n + GROUPS) % 40 for n in range(GROUPS * MEMBERS)})[:40])
    assert guard.trust(SCOPE) is None
    assert guard.value(SCOPE) == 1.0


@pytest.mark.parametrize(("lift", "guard"), [(0.0, 0.0), (2.0, 0.0), (2.25, 0.25), (3.0, 1.0), (11.0, 1.0)])
def test_the_guard_rises_between_twice_and_three_times_chance(lift: float, guard: float) -> None:
    assert Trust("t", "e", lift, 1).guard == guard


def test_another_process_may_measure_again(tmp_path: Path) -> None:
    file = tmp_path / "trust.json"
    guard = Guard(file)
    trust = b'{"tenant": "default", "environment": "default", "lift": 2.5, "walks": 90}'
    file.write_bytes(b'{"generation": 4, "scopes": [' + trust + b"]}")
    guard.refresh()
    assert (guard.value(SCOPE), guard.value(Scope("other", "default")), guard.generation) == (0.5, 1.0, 4)
    file.unlink()
    file.write_bytes(b"?")
    with pytest.raises(Unavailable, match=r"trust\.json is damaged, remove it"):
        guard.refresh()


def test_what_an_older_build_has_measured_counts_as_unknown(tmp_path: Path) -> None:
    (tmp_path / "trust.json").write_bytes(b'{"lift": 2.5, "walks": 90}')
    guard = Guard(tmp_path / "trust.json")
    assert (guard.value(SCOPE), guard.generation) == (1.0, -1)
