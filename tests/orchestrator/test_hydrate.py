from __future__ import annotations

import logging

import pytest

from adapters import Document, Record, Scope, Sensitivity
from adapters.filter import access
from fusion import BoostedHit, Contribution, FusedHit
from orchestrator.hydrate import hydrate

WANTED = access(Scope("t", "e"), "normal")


def held(id_: str, tenant: str = "t", sensitivity: Sensitivity = "normal") -> Record:
    return Record(tenant, "e", Document(id=id_, text=f"text {id_}", sensitivity=sensitivity))


def ranked(*ids: str) -> list[BoostedHit]:
    share = Contribution(1, 2.5, 1.0, 1 / 61)
    fused = [FusedHit(id_, 1 / 61, 0.5, {"keyword": share, "vector": None}) for id_ in ids]
    return [BoostedHit(hit, {"centrality": 1.1}, 0.55) for hit in fused]


def test_hits_carry_their_document_and_their_provenance() -> None:
    ((hit,), withheld) = hydrate(ranked("a"), {"a": held("a")}, WANTED)
    assert (hit.id, hit.text, hit.score, hit.fusion_score, withheld) == ("a", "text a", 0.55, 0.5, 0)
    assert hit.boosts == {"centrality": 1.1}
    assert hit.sources == {"keyword": Contribution(1, 2.5, 1.0, 1 / 61), "vector": None}


def test_what_a_source_should_not_have_returned_does_not_leave(caplog: pytest.LogCaptureFixture) -> None:
    """The second lock: here stands a source that forgot its filter."""
    records = {
        "ours": held("ours"),
        "theirs": held("theirs", tenant="other"),
        "secret": held("secret", sensitivity="restricted"),
    }
    with caplog.at_level(logging.ERROR):
        hits, withheld = hydrate(ranked("theirs", "ours", "secret"), records, WANTED)
    assert [hit.id for hit in hits] == ["ours"]
    assert withheld == 2
    assert "forbids" in caplog.text
    assert "text" not in caplog.text.replace("the request's filter", "")


def test_what_was_deleted_meanwhile_is_left_out() -> None:
    assert hydrate(ranked("gone"), {}, WANTED) == ((), 0)
