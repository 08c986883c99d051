from __future__ import annotations

import logging

import pytest

from adapters import Document, Record, Scope
from adapters.filter import access
from fusion import Boosted, Contribution, FusedHit
from orchestrator.hydrate import hydrate

WANTED = access(Scope("t", "e"), "normal")


def held(id_: str, tenant: str = "t", **fields: object) -> Record:
    return Record(tenant, "e", Document(id=id_, text=f"text {id_}", **fields))  # type: ignore[arg-type]


def ranked(*ids: str) -> tuple[list[FusedHit], Boosted]:
    share = Contribution(1, 2.5, 1.0, 1 / 61)
    fused = [FusedHit(id_, 1 / 61, 0.5, {"keyword": share, "vector": None}) for id_ in ids]
    return fused, Boosted(ids, {"centrality": dict.fromkeys(ids, 1.1), "recency": {}}, dict.fromkeys(ids, 1.1))


def test_hits_carry_their_document_and_their_provenance() -> None:
    record = held("a", parent_id="p", chunk_index=3, url="u")
    done = hydrate(*ranked("a"), {"a": record}, WANTED, radius=2)
    (hit,) = done.hits
    assert (hit.id, hit.text, hit.score, hit.fusion_score) == ("a", "text a", 0.5 * 1.1, 0.5)
    assert hit.boosts == {"centrality": 1.1, "recency": 1.0}
    assert hit.sources == {"keyword": Contribution(1, 2.5, 1.0, 1 / 61), "vector": None}
    assert (hit.url, hit.parent_id, hit.chunk_index, hit.window_id, hit.span) == ("u", "p", 3, "p:1-5", (0, 6))
    assert (done.sensitivities, done.deleted, done.withheld) == (("normal",), 0, 0)


def test_what_a_source_should_not_have_returned_does_not_leave(caplog: pytest.LogCaptureFixture) -> None:
    """The second lock: here stands a source that forgot its filter."""
    records = {
        "ours": held("ours"),
        "theirs": held("theirs", tenant="other"),
        "secret": held("secret", sensitivity="restricted"),
    }
    with caplog.at_level(logging.ERROR):
        done = hydrate(*ranked("theirs", "ours", "secret"), records, WANTED, radius=1)
    assert [hit.id for hit in done.hits] == ["ours"]
    assert (done.withheld, done.deleted) == (2, 0)
    assert "forbids" in caplog.text
    assert "text" not in caplog.text.replace("the request's filter", "")


def test_what_was_deleted_meanwhile_is_left_out() -> None:
    done = hydrate(*ranked("gone"), {}, WANTED, radius=1)
    assert (done.hits, done.deleted, done.withheld) == ((), 1, 0)
