from __future__ import annotations

import logging

import pytest

from adapters import Document, Record, Scope, Sensitivity
from adapters.filter import access
from fusion import Contribution, FusedHit
from orchestrator.contract import SourceShare
from orchestrator.hydrate import hydrate

WANTED = access(Scope("t", "e"), "normal")


def held(id_: str, tenant: str = "t", sensitivity: Sensitivity = "normal") -> Record:
    return Record(tenant, "e", Document(id=id_, text=f"text {id_}", sensitivity=sensitivity))


def fused(*ids: str) -> list[FusedHit]:
    share = Contribution(1, 2.5, 1.0, 1 / 61)
    return [FusedHit(id_, 1 / 61, 0.5, {"keyword": share, "vector": None}) for id_ in ids]


def test_hits_carry_their_document_and_their_provenance() -> None:
    ((hit,), withheld) = hydrate(fused("a"), {"a": held("a")}, WANTED)
    assert (hit.id, hit.text, hit.score, hit.fusion_score, withheld) == ("a", "text a", 0.5, 0.5, 0)
    assert hit.sources == {"keyword": SourceShare(1, 2.5, 1.0, 1 / 61), "vector": None}


def test_what_a_source_should_not_have_returned_does_not_leave(caplog: pytest.LogCaptureFixture) -> None:
    """The second lock: here stands a source that forgot its filter."""
    records = {
        "ours": held("ours"),
        "theirs": held("theirs", tenant="other"),
        "secret": held("secret", sensitivity="restricted"),
    }
    with caplog.at_level(logging.ERROR):
        hits, withheld = hydrate(fused("theirs", "ours", "secret"), records, WANTED)
    assert [hit.id for hit in hits] == ["ours"]
    assert withheld == 2
    assert "forbids" in caplog.text
    assert "text" not in caplog.text.replace("the request's filter", "")


def test_what_was_deleted_meanwhile_is_left_out() -> None:
    assert hydrate(fused("gone"), {}, WANTED) == ((), 0)
