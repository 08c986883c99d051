"""``trivium judgments``: judged queries from what users used, and from their votes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from adapters import Scope, Viewer
from adapters.model.feedback import Feedback, FeedbackKind, ShownResponse
from adapters.storage.feedback_store import FeedbackStore
from orchestrator.evaluation.feedback_judgments import judgments_of
from orchestrator.evaluation.judgments import read_judged_queries
from orchestrator.service.feedback import query_hash
from tests.orchestrator.evaluation.command import run

SCOPE = Scope("default", "default")
Recorded = tuple[ShownResponse, list[Feedback]]


def recorded(
    number: int, query: str, hits: Sequence[str], *given: tuple[int, FeedbackKind], text: bool = True, first: int = 1
) -> Recorded:
    query_id = f"{number:032x}"
    response = ShownResponse(
        query_id, SCOPE, Viewer("normal"), 1_700_000_000.0 + number, query_hash(query), query if text else None, first,
        tuple(("notes", each, each.partition("#")[0]) for each in hits),
    )  # fmt: skip
    return response, [Feedback(query_id, hit, kind, first + hit, 1_700_000_100.0) for hit, kind in given]


def grades(found: Sequence[Recorded], min_looks: int = 1) -> dict[tuple[str, str], int]:
    judged = judgments_of(found, {}, min_looks).judgments
    return {(each.query, each.document): each.relevance for each in judged}


def test_what_is_used_is_relevant_and_what_is_passed_over_is_not() -> None:
    found = [recorded(number, "stars", ["sun", "moon"], (1, "used")) for number in range(20)]
    found += [recorded(number, "planets", ["mars", "moon"], (0, "used")) for number in range(20, 40)]
    judged = grades(found)
    assert judged["stars", "moon"] == judged["planets", "mars"] == 4
    assert judged["stars", "sun"] == 0


def test_votes_decide_where_there_are_any() -> None:
    found = [
        *(recorded(number, "stars", ["sun", "moon"], (0, "used")) for number in range(20)),
        recorded(20, "stars", ["sun", "moon"], (0, "not_useful")),
        recorded(21, "stars", ["sun", "moon"], (1, "useful")),
        recorded(22, "stars", ["sun", "moon"], (1, "not_useful")),
    ]
    assert grades(found, min_looks=100) == {("stars", "sun"): 0, ("stars", "moon"): 2}


def test_responses_without_feedback_say_nothing() -> None:
    """Of the caller it is not known whether he ever gives any."""
    found = [recorded(0, "stars", ["sun", "moon"], (0, "used"))]
    more = found + [recorded(number, "stars", ["sun", "moon"]) for number in range(1, 50)]
    assert grades(found) == grades(more) != {}
    assert judgments_of(more, {}, 1).responses == 1


def test_a_document_that_was_shown_too_rarely_is_not_judged() -> None:
    found = [recorded(number, "stars", ["sun", f"rare {number}"], (0, "used")) for number in range(6)]
    assert set(grades(found, min_looks=5)) == {("stars", "sun")}


def test_what_was_hardly_looked_at_is_not_judged() -> None:
    """Only the first hit was ever used, and the ranking never changed: of the others nothing is known."""
    found = [
        recorded(100 * number + query, f"query {query}", ["first", "second", "third"], (0, "used"))
        for query in range(20)
        for number in range(10)
    ]
    judged = grades(found, min_looks=5)
    assert {document for _, document in judged} == {"first"}
    assert set(judged.values()) == {4}


def test_chunks_are_judged_as_their_document() -> None:
    found = [recorded(number, "how", ["other.md", f"guide.md#{number % 3}"], (1, "used")) for number in range(12)]
    found += [recorded(number, "what", ["other.md", "guide.md#1"], (0, "used")) for number in range(12, 24)]
    judged = grades(found, min_looks=5)
    assert judged["how", "guide.md"] == 4
    assert judged["how", "other.md"] == 0


def test_the_texts_of_queries_may_come_from_a_file() -> None:
    found = [
        recorded(0, "stars", ["sun"], (0, "useful"), text=False),
        recorded(1, "x", ["sun"], (0, "used"), text=False),
    ]
    judged = judgments_of(found, {query_hash("stars"): "stars"}, 1)
    assert [(each.query, each.document) for each in judged.judgments] == [("stars", "sun")]
    assert (judged.responses, judged.unknown) == (2, 1)


@pytest.fixture
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "data"
    monkeypatch.setenv("TRIVIUM_DATA_DIR", str(folder))
    return folder


def store(data_dir: Path, found: Sequence[Recorded]) -> None:
    opened = FeedbackStore(data_dir / "feedback.sqlite", 10_000_000)
    opened.add([response for response, _ in found])
    for _, given in found:
        for each in given:
            assert opened.record(each)
    opened.close()


def test_the_command_writes_judged_queries(data_dir: Path, tmp_path: Path) -> None:
    store(data_dir, [recorded(number, "bright stars", ["sun", "moon"], (0, "used")) for number in range(6)])
    code, _, err = run("judgments", tmp_path / "judged")
    assert code == 0, err
    assert "of 6 responses with feedback, 0 of them of unknown queries" in " ".join(err.split())
    judged = read_judged_queries("own", tmp_path / "judged" / "queries.jsonl", tmp_path / "judged" / "qrels.tsv")
    assert dict(judged.queries) == {"q1": "bright stars"}
    assert judged.judgments == {"q1": {"sun": 3}}
    code, _, err = run("judgments", tmp_path / "judged")
    assert (code, "exists; name a new folder" in " ".join(err.split())) == (2, True)


def test_hashes_need_a_file_of_queries(data_dir: Path, tmp_path: Path) -> None:
    store(data_dir, [recorded(number, "stars", ["sun"], (0, "used"), text=False) for number in range(6)])
    code, _, err = run("judgments", tmp_path / "judged")
    assert code == 2
    assert "--queries" in err
    queries = tmp_path / "queries.txt"
    queries.write_text("planets\nstars\n")
    code, _, err = run("judgments", tmp_path / "judged", "--queries", queries)
    assert code == 0, err
    assert json.loads((tmp_path / "judged" / "queries.jsonl").read_text()) == {"_id": "q1", "text": "stars"}


def test_nothing_to_judge_is_an_error(data_dir: Path, tmp_path: Path) -> None:
    code, _, err = run("judgments", tmp_path / "judged")
    assert (code, "TRIVIUM_FEEDBACK=texts" in err) == (2, True)
    store(data_dir, [recorded(0, "stars", ["sun"])])
    for arguments, message in (
        ((), "there is no feedback for the tenant 'default' and the environment 'default'"),
        (("--tenant", "other"), "there is no feedback for the tenant 'other'"),
    ):
        code, _, err = run("judgments", tmp_path / "judged", *arguments)
        assert (code, message in " ".join(err.split())) == (2, True), err
    store(data_dir, [recorded(1, "stars", ["sun"], (0, "used"))])
    code, _, err = run("judgments", tmp_path / "judged")
    assert (code, "--min-looks may be less" in " ".join(err.split())) == (2, True)
    assert not (tmp_path / "judged").exists()


def test_the_names_of_user_behavior_insights(data_dir: Path, tmp_path: Path) -> None:
    store(
        data_dir, [recorded(7, "stars", ["sun", "moon"], (1, "used"), first=11), recorded(8, "x", ["sun"], text=False)]
    )
    code, _, err = run("judgments", tmp_path / "ubi", "--ubi")
    assert (code, "queries in" in err) == (0, True), err
    lines = {
        name: [json.loads(line) for line in (tmp_path / "ubi" / f"ubi_{name}.ndjson").read_text().splitlines()]
        for name in ("queries", "events")
    }
    assert [each["user_query"] for each in lines["queries"]] == ["stars", ""]
    assert lines["queries"][0] == {
        "application": "trivium",
        "query_id": f"{7:032x}",
        "user_query": "stars",
        "query_attributes": {
            "tenant": "default", "environment": "default", "query_hash": query_hash("stars"), "first": 11,
        },
        "object_id_field": "id",
        "timestamp": "2023-11-14T22:13:27.000+00:00",
        "query_response_id": f"{7:032x}",
        "query_response_hit_ids": ["sun", "moon"],
    }  # fmt: skip
    shown = [(each["event_attributes"]["object"]["object_id"], each["event_attributes"]["position"]["ordinal"])
             for each in lines["events"] if each["action_name"] == "impression"]  # fmt: skip
    assert shown == [("sun", 11), ("moon", 12), ("sun", 1)]
    assert [each for each in lines["events"] if each["action_name"] != "impression"] == [
        {
            "application": "trivium",
            "action_name": "click",
            "query_id": f"{7:032x}",
            "timestamp": "2023-11-14T22:15:00.000+00:00",
            "event_attributes": {
                "object": {"object_id": "moon", "object_id_field": "id", "collection": "notes"},
                "position": {"ordinal": 12},
            },
        }
    ]
