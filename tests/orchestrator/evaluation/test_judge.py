"""``trivium judge``: what every source finds is judged in the terminal, and no judgment is lost."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from orchestrator.evaluation.judged_folder import JudgedFolder
from orchestrator.evaluation.judgments import BadDataset, read_judged_queries
from tests.orchestrator.evaluation.command import run
from tests.orchestrator.served import Serve

pytestmark = pytest.mark.usefixtures("evaluation_environment")

QUERIES = ("which otter is old", "a heavy lighthouse")


@pytest.fixture(scope="module")
def data_dir(folder: Path, model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the documents of the judged queries."""
    path = tmp_path_factory.mktemp("indexed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRIVIUM_DATA_DIR", str(path))
        patch.setenv("TRIVIUM_MODEL_DIR", str(model_dir))
        code, out, err = run("index", folder)
    assert code == 0, out + err
    return path


@pytest.fixture
def queries(tmp_path: Path) -> Path:
    path = tmp_path / "queries.txt"
    path.write_text("".join(f"{each}\n\n" for each in (*QUERIES, QUERIES[0])))
    return path


def asked(out: str) -> list[tuple[str, str]]:
    """The query and the title of each question."""
    return re.findall(r"\n(\S.*) \(query \d+ of \d+, document \d+ of \d+\)\n(.*)", out)


def test_judgments_are_a_set_that_evaluate_reads(queries: Path, tmp_path: Path) -> None:
    output = tmp_path / "judged"
    code, out, err = run("judge", queries, "--output", output, "--depth", 2, stdin="2\n0\n" * 20)
    assert code == 0, err
    judged = read_judged_queries("own", output / "queries.jsonl", output / "qrels.tsv")
    assert tuple(judged.queries.values()) == QUERIES
    assert sum(map(len, judged.judgments.values())) == len(asked(out)) >= 4
    assert {each for by_document in judged.judgments.values() for each in by_document.values()} == {0, 2}
    assert f"judgments in {output}: {len(asked(out))}; queries that have any: 2" in err
    code, out, err = run("evaluate", "--queries", output / "queries.jsonl", "--qrels", output / "qrels.tsv", "--json")
    assert code == 0, err


def test_a_later_session_asks_what_is_not_judged_yet(queries: Path, tmp_path: Path) -> None:
    output = tmp_path / "judged"
    everything = asked(run("judge", queries, "--output", output, stdin="l\n" * 100)[1])
    assert len(everything) > 5
    assert not (output / "qrels.tsv").exists()
    first = asked(run("judge", queries, "--output", output, stdin="1\nl\n0\ne\n")[1])
    assert first == everything[:4]
    again = asked(run("judge", output / "queries.jsonl", "--output", output, stdin="e\n")[1])
    assert again == everything[1:2]
    rest = asked(run("judge", queries, "--output", output, stdin="2\n" * 100)[1])
    assert rest == [everything[1], *everything[3:]]
    assert f": {len(everything)}; queries that have any: 2" in run("judge", queries, "--output", output)[2]


def test_the_end_of_the_input_ends_the_session_and_another_answer_is_asked_again(queries: Path, tmp_path: Path) -> None:
    code, out, err = run("judge", queries, "--output", tmp_path / "judged", stdin="maybe\n3\n1\n")
    assert code == 0
    assert len(asked(out)) == 2
    assert "'maybe' is no answer; allowed are 0 no, 1 in part, 2 yes" in err
    assert ": 1; queries that have any: 1" in err


def test_a_query_is_asked_about_what_each_source_and_all_together_find_first(queries: Path, tmp_path: Path) -> None:
    """In an order that does not depend on how many are asked for."""
    few, more = [
        [title for query, title in asked(out) if query == QUERIES[0]]
        for depth in (2, 4)
        for _, out, _ in [run("judge", queries, "--output", tmp_path / "judged", "--depth", depth, stdin="l\n" * 100)]
    ]
    found = set()
    for mode in ("hybrid", "vector", "keyword", "graph"):
        _, out, _ = run("search", QUERIES[0], "--mode", mode, "--limit", 2, "--json")
        found |= {f"{hit['title']} {hit['id']}" for hit in json.loads(out)["hits"]}
    assert set(few) == found
    assert [each for each in more if each in found] == few
    assert len(more) > len(few)


def test_a_service_asks_the_same(queries: Path, tmp_path: Path, serve: Serve) -> None:
    own = asked(run("judge", queries, "--output", tmp_path / "own", stdin="l\n" * 100)[1])
    patient = {"TRIVIUM_SOURCE_TIMEOUT_MS": "10000", "TRIVIUM_REQUEST_TIMEOUT_MS": "20000"}
    with serve(os.environ | patient) as (_, url):
        there = asked(run("judge", queries, "--output", tmp_path / "there", "--url", url, stdin="l\n" * 100)[1])
    assert there == own


def test_queries_and_documents_are_needed(queries: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = tmp_path / "empty.txt"
    empty.write_text("\n")
    code, _, err = run("judge", empty, "--output", tmp_path / "judged")
    assert (code, f"{empty} has no queries" in err.replace("\n", "")) == (2, True)
    monkeypatch.setenv("TRIVIUM_DATA_DIR", str(tmp_path / "nothing"))
    code, _, err = run("judge", queries, "--output", tmp_path / "judged")
    assert (code, "no document was found for any query" in err) == (2, True)


def test_what_cannot_be_in_the_files_is_an_error_and_what_is_broken_too(tmp_path: Path) -> None:
    folder = JudgedFolder(tmp_path)
    with pytest.raises(BadDataset, match="control characters"):
        folder.add("query", "a\tb", 1)
    folder.add("query", "a b", 1)
    folder.add("other", "c", 0)
    again = JudgedFolder(tmp_path)
    assert (again.count, list(again.judged("query")), list(again.judged("new"))) == (2, ["a b"], [])
    again.judgments_file.write_text("q1\ta b\tmuch\n")
    with pytest.raises(BadDataset, match="line 1"):
        JudgedFolder(tmp_path)
