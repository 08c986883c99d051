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
def data_dir(indexed_dir: Path) -> Path:
    return indexed_dir


@pytest.fixture
def queries(tmp_path: Path) -> Path:
    path = tmp_path / "queries.txt"
    path.write_text("".join(f"{each}\n\n" for each in (*QUERIES, QUERIES[0])))
    return path


def asked(out: str) -> list[tuple[str, str]]:
    """The query and the title of each question."""
    return re.findall(r"\n(\S.*) \(query \d+ of \d+, document \d+ of \d+\)\n(.*) in documents\n", out)


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


def test_equal_ids_in_two_collections_are_asked_about_once(
    queries: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A judgment has an id only: the question names the collections."""
    monkeypatch.setenv("TRIVIUM_DATA_DIR", str(tmp_path / "data"))
    documents = tmp_path / "documents.ndjson"
    texts = {"documents": "The otter is old.", "other": "A heavy lighthouse."}
    lines = [{"id": "same", "text": text, "collection": name} for name, text in texts.items()]
    documents.write_text("".join(json.dumps(each) + "\n" for each in lines))
    assert run("index", documents)[0] == 0
    _, out, _ = run("judge", queries, "--output", tmp_path / "judged", stdin="l\n" * 100)
    assert out.count("same in documents and other\n") == len(QUERIES)


def test_a_service_asks_the_same(queries: Path, tmp_path: Path, serve: Serve) -> None:
    own = asked(run("judge", queries, "--output", tmp_path / "own", stdin="l\n" * 100)[1])
    patient = {"TRIVIUM_SOURCE_TIMEOUT_MS": "10000", "TRIVIUM_REQUEST_TIMEOUT_MS": "20000"}
    with serve(os.environ | patient | {"TRIVIUM_MAX_LIMIT": "5", "TRIVIUM_DEFAULT_LIMIT": "5"}) as (_, url):
        code, _, err = run("judge", queries, "--output", tmp_path / "there", "--url", url, "--depth", 6)
        assert code == 2
        assert f"--depth 6, query {QUERIES[0]!r}: limit: 6, allowed are 1 to 5" in err
        there = asked(run("judge", queries, "--output", tmp_path / "there", "--url", url, stdin="l\n" * 100)[1])
    assert there == own


def test_queries_and_documents_are_needed(queries: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = tmp_path / "empty.txt"
    empty.write_text("\n")
    code, _, err = run("judge", empty, "--output", tmp_path / "judged")
    assert (code, f"{empty} has no queries" in err.replace("\n", "")) == (2, True)
    monkeypatch.setenv("TRIVIUM_DATA_DIR", str(tmp_path / "nothing"))
    code, _, err = run("judge", queries, "--output", tmp_path / "judged")
    assert (code, f"{tmp_path / 'nothing'} has no document for any of the queries" in err) == (2, True)
    assert not (tmp_path / "judged").exists()
    code, _, err = run("judge", queries, "--output", empty)
    assert (code, f"{empty} is a file" in err) == (2, True)
    blank = tmp_path / "blank.jsonl"
    blank.write_text('{"_id": "mine", "text": " "}\n')
    code, _, err = run("judge", blank)
    assert (code, f"{blank}, line 1: the query 'mine' has no text" in err) == (2, True)


def test_files_of_an_earlier_session_are_continued(tmp_path: Path) -> None:
    """Also if an editor, or a crash, has removed the end of the last line."""
    folder = JudgedFolder(tmp_path)
    folder.add("query", "a\u00a0b", 1)
    folder.add("other", "c", 0)
    for path in (folder.queries_file, folder.judgments_file):
        path.write_bytes(path.read_bytes()[:-1])
    again = JudgedFolder(tmp_path)
    assert (again.count, list(again.judged("query")), list(again.judged("new"))) == (2, ["a\u00a0b"], [])
    again.add("new", "d", 2)
    assert folder.judgments_file.read_text() == "query-id\tcorpus-id\tscore\nq1\ta\u00a0b\t1\nq2\tc\t0\nq3\td\t2\n"
    assert JudgedFolder(tmp_path).judged_queries == 3


def test_a_query_keeps_its_own_id_if_no_other_has_it(tmp_path: Path) -> None:
    folder = JudgedFolder(tmp_path, {"query": "mine", "other": "q1", "more": ""})
    for query in ("more", "query", "other"):
        folder.add(query, "a", 1)
    judged = read_judged_queries("own", folder.queries_file, folder.judgments_file)
    assert judged.queries == {"q1": "more", "mine": "query", "q2": "other"}


def test_files_that_do_not_fit_together_are_refused(tmp_path: Path) -> None:
    folder = JudgedFolder(tmp_path)
    folder.add("query", "a", 1)
    text = folder.queries_file.read_text()
    folder.queries_file.write_text(text.replace("q1", "q7"))
    with pytest.raises(BadDataset, match=r"judges the query 'q1', which .* does not have"):
        JudgedFolder(tmp_path)
    folder.queries_file.write_text(text)
    folder.judgments_file.write_text("q1\ta\tmuch\n")
    with pytest.raises(BadDataset, match="line 1"):
        JudgedFolder(tmp_path)
