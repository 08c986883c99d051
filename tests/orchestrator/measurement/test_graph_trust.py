"""Graph trust over the real embedded index: groups of documents that vectors distinguish, and graphs of three kinds."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from adapters import Link, Scope
from adapters.engine import EmbeddedIndex
from adapters.graph.component import GraphComponent
from adapters.graph.embedded import EmbeddedGraph
from adapters.keyword.component import KeywordComponent
from adapters.ports import Vector, VectorRecord
from adapters.storage import checked_file
from adapters.vector.embedded import EmbeddedVector, VectorComponent
from orchestrator.measurement.graph_trust import GraphTrust, ScopeTrust, TrustMeasurements
from orchestrator.measurement.trust_measurement import TrustMeasurement
from tests.conftest import DIMENSION, SCOPE, vector_record

pytestmark = pytest.mark.anyio

GROUPS, MEMBERS = 10, 12


class GroupEncoder:
    """Encodes a text by the group that it names, as the documents below were encoded."""

    dimension = DIMENSION
    encodes_texts = True

    def encode(self, text: str) -> Vector:
        return _vector(int(text.split()[1]), 0)


def _vector(group: int, noise: int) -> Vector:
    vector = np.random.default_rng(noise).normal(0, 0.05, DIMENSION).astype(np.float32)
    vector[group] += 1
    return vector / np.linalg.norm(vector)


def _corpus(partner: dict[int, int], scope: Scope = SCOPE) -> list[VectorRecord]:
    """Documents by number, each linked to another one; a document linked to itself has no link."""
    return [
        VectorRecord(
            vector_record(str(n), f"group {n % GROUPS}", scope=scope, links=(Link(str(partner[n]), "cites"),)).record,
            _vector(n % GROUPS, n)[np.newaxis],
        )
        for n in range(GROUPS * MEMBERS)
    ]


async def _measured(folder: Path, records: list[VectorRecord]) -> GraphTrust:
    index = EmbeddedIndex(folder / "index", (VectorComponent(), KeywordComponent(), GraphComponent()), "test-1")
    await index.write(records, ())
    trust = GraphTrust(folder / "trust.json")
    vectors, graph = EmbeddedVector(index, VectorComponent()), EmbeddedGraph(index, GraphComponent())
    trust.save(await TrustMeasurement(index, GroupEncoder(), vectors, graph).run(index.generation()))
    return trust


async def test_links_between_similar_documents_are_trusted(tmp_path: Path) -> None:
    count = GROUPS * MEMBERS
    trust = await _measured(tmp_path, _corpus({n: (n + GROUPS) % count for n in range(count)}))
    measured = trust.of_scope(SCOPE, "normal")
    assert measured is not None
    assert measured.lift > 5
    assert (trust.weight_factor(SCOPE, "normal"), trust.generation) == (1.0, 1)
    assert GraphTrust(tmp_path / "trust.json").of_scope(SCOPE, "normal") == measured


async def test_random_links_are_not_trusted(tmp_path: Path) -> None:
    shuffled = list(range(GROUPS * MEMBERS))
    random.Random(1).shuffle(shuffled)
    trust = await _measured(tmp_path, _corpus(dict(enumerate(shuffled))))
    measured = trust.of_scope(SCOPE, "normal")
    assert measured is not None
    assert measured.lift < 2
    assert trust.weight_factor(SCOPE, "normal") == 0.0


async def test_the_documents_of_one_tenant_do_not_change_the_trust_of_another(tmp_path: Path) -> None:
    count = GROUPS * MEMBERS
    shuffled = list(range(count))
    random.Random(1).shuffle(shuffled)
    other = Scope("other", "default")
    good = _corpus({n: (n + GROUPS) % count for n in range(count)})
    trust = await _measured(tmp_path, [*good, *_corpus(dict(enumerate(shuffled)), other)])
    assert (trust.weight_factor(SCOPE, "normal"), trust.weight_factor(other, "normal")) == (1.0, 0.0)
    assert trust.of_scope(SCOPE, "normal") == (await _measured(tmp_path / "alone", good)).of_scope(SCOPE, "normal")


async def test_a_graph_over_half_of_the_documents_is_measured_on_that_half(tmp_path: Path) -> None:
    count = GROUPS * MEMBERS
    half = {n: (n + GROUPS) % count if n % 2 and n // GROUPS < MEMBERS // 2 else n for n in range(count)}
    trust = await _measured(tmp_path, _corpus(half))
    assert trust.weight_factor(SCOPE, "normal") == 1.0


async def test_without_any_link_nothing_is_measured_and_the_weight_is_full(tmp_path: Path) -> None:
    trust = await _measured(tmp_path, _corpus({n: n for n in range(GROUPS * MEMBERS)}))
    assert trust.of_scope(SCOPE, "normal") is None
    assert (trust.weight_factor(SCOPE, "normal"), trust.generation) == (1.0, 1)


async def test_too_few_documents_are_not_measured(tmp_path: Path) -> None:
    trust = await _measured(tmp_path, _corpus({n: (n + GROUPS) % 40 for n in range(GROUPS * MEMBERS)})[:40])
    assert trust.of_scope(SCOPE, "normal") is None
    assert trust.weight_factor(SCOPE, "normal") == 1.0


@pytest.mark.parametrize(
    ("lift", "factor"), [(0.0, 0.0), (0.5, 0.0), (1.0, 0.0), (2.0, 0.0), (2**1.5, 0.5), (4.0, 1.0), (32.0, 1.0)]
)
def test_the_weight_factor_rises_from_a_fifth_to_two_fifths_of_the_way_from_chance(lift: float, factor: float) -> None:
    assert ScopeTrust("t", "e", "normal", lift, 1, highest_lift=32.0).graph_weight_factor == pytest.approx(factor)


def test_the_same_lift_is_worth_less_in_a_larger_corpus() -> None:
    small, large = (ScopeTrust("t", "e", "normal", 4.0, 1, highest) for highest in (10.0, 1_000.0))
    assert small.graph_weight_factor == 1.0
    assert large.graph_weight_factor == pytest.approx(0.00343, abs=1e-4)


def test_a_measurement_of_another_process_is_read(tmp_path: Path) -> None:
    file = tmp_path / "trust.json"
    trust = GraphTrust(file)
    GraphTrust(file).save(TrustMeasurements(4, [ScopeTrust("default", "default", "normal", 3.0, 90, 9.0)]))
    trust.refresh()
    assert (
        trust.weight_factor(SCOPE, "normal"),
        trust.weight_factor(Scope("other", "default"), "normal"),
        trust.generation,
    ) == (
        1.0,
        1.0,
        4,
    )


def test_a_damaged_measurement_counts_as_none_and_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "trust.json"
    file.write_bytes(b"?")
    trust = GraphTrust(file)
    trust.refresh()
    assert (trust.weight_factor(SCOPE, "normal"), trust.generation) == (1.0, -1)
    assert [str(file) in each.message and "is made again" in each.message for each in caplog.records] == [True]
    trust.save(TrustMeasurements(4, []))
    assert trust.generation == 4


def test_a_measurement_in_the_format_of_an_older_release_counts_as_none(tmp_path: Path) -> None:
    checked_file.write_json(tmp_path / "trust.json", {"lift": 2.5, "walks": 90})
    trust = GraphTrust(tmp_path / "trust.json")
    assert (trust.weight_factor(SCOPE, "normal"), trust.generation) == (1.0, -1)
