"""``trivium evaluate --queries --qrels``: the documents that are indexed here, or those of a running service."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from orchestrator.evaluation.judged_runs import Evaluation, judged_ids
from orchestrator.evaluation.runs import RUNS_OF_ANY_INDEX
from orchestrator.evaluation.searched_index import RankedHit
from orchestrator.evaluation.sentences import conclusion
from tests.orchestrator.evaluation.command import run
from tests.orchestrator.served import Serve

pytestmark = pytest.mark.usefixtures("evaluation_environment")


@pytest.fixture(scope="module")
def data_dir(indexed_dir: Path) -> Path:
    return indexed_dir


def judged(folder: Path) -> tuple[object, ...]:
    return "--queries", folder / "queries.jsonl", "--qrels", folder / "qrels.tsv"


def evaluated(*arguments: object) -> dict[str, Any]:
    code, out, err = run("evaluate", *arguments, "--json")
    assert code == 0, err
    outcome: dict[str, Any] = json.loads(out)
    return outcome


def test_the_running_index_has_the_figures_of_its_data_set(folder: Path, data_dir: Path) -> None:
    own = evaluated(*judged(folder))
    assert own["runs"] == {name: evaluated(folder)["runs"][name] for name in RUNS_OF_ANY_INDEX}
    assert own["conditions"]["documents"] == 40
    assert own["conditions"]["index"] == f"the index in {data_dir}"


def test_a_service_has_the_figures_of_its_index(folder: Path, serve: Serve, tmp_path: Path) -> None:
    own = evaluated(*judged(folder))
    patient = {"TRIVIUM_SOURCE_TIMEOUT_MS": "10000", "TRIVIUM_REQUEST_TIMEOUT_MS": "20000"}
    with serve(os.environ | patient) as (_, url):
        report = tmp_path / "report.html"
        there = evaluated(*judged(folder), "--url", url, "--report", report)
    assert (there["runs"], there["comparisons"]) == (own["runs"], own["comparisons"])
    assert there["conditions"] | {"index": "", "documents": 40} == own["conditions"] | {
        "index": "",
        "graph_trust": None,
        "settings": None,
    }
    assert "Its settings are not known here." in report.read_text()


def test_judgments_without_documents_and_queries_without_judgments_are_named(folder: Path, tmp_path: Path) -> None:
    queries, qrels = tmp_path / "queries.jsonl", tmp_path / "qrels.trec"
    more = [{"_id": id_, "text": "which otter"} for id_ in ("unjudged", "irrelevant", "elsewhere")]
    queries.write_text((folder / "queries.jsonl").read_text() + "".join(json.dumps(each) + "\n" for each in more))
    rows = [line.split("\t") for line in (folder / "qrels.tsv").read_text().splitlines()[1:]]
    rows += [["irrelevant", "otter-0", "0"], ["elsewhere", "lost", "1"], ["elsewhere", "otter-0", "1"]]
    qrels.write_text("".join(f"{query} 0 {document} {relevance}\n" for query, document, relevance in rows))
    outcome = evaluated("--queries", queries, "--qrels", qrels)
    assert outcome["unknown_documents"] == ["lost"]
    assert outcome["without_relevant"] == ["irrelevant"]
    assert outcome["unjudged"] == ["unjudged"]
    assert outcome["queries"] == 32
    out = " ".join(run("evaluate", "--queries", queries, "--qrels", qrels)[1].split())
    assert "1 judged id that no document has: lost; counted as not found" in out
    assert "1 query without a relevant document: irrelevant; all figures are 0" in out
    assert "1 query without judgments: unjudged; left out" in out


def test_settings_other_than_the_defaults_are_reported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVIUM_FUSION", "rrf(k=30)")
    monkeypatch.setenv("TRIVIUM_MAX_LIMIT", "20")
    assert evaluated(*judged(folder))["conditions"]["settings"] == {"TRIVIUM_FUSION": "rrf(k=30)"}


def test_a_judgment_may_name_a_chunk_or_the_document_that_it_belongs_to() -> None:
    hits = [RankedHit(id_, 1.0, {}, parent) for id_, parent in (("a#1", "a"), ("a#2", "a"), ("b#1", "b"), ("c", None))]
    assert judged_ids(hits, {"a": 1, "b#1": 1}) == ["a", "b#1", "c"]
    assert judged_ids(hits, {"b": 1, "b#1": 1}) == ["a#1", "a#2", "b#1", "c"]


def test_the_conclusion_names_the_winner_its_gains_and_the_number_of_comparisons(folder: Path) -> None:
    evaluation = msgspec.convert(evaluated(*judged(folder)), Evaluation)
    better = msgspec.structs.replace(
        evaluation, runs={**evaluation.runs, "auto": {**evaluation.runs["auto"], "nDCG@10": 2.0}}
    )
    assert conclusion(evaluation).startswith("hybrid has the highest nDCG@10, ")
    assert conclusion(better).startswith("auto has the highest nDCG@10, 2.0000; hybrid has ")
    different = sum(each.wins + each.losses > 0 for each in better.comparisons)
    assert conclusion(better).endswith(f"corrected for {different} comparisons; below 0.05 is significant.")


def test_without_a_relevant_document_no_run_wins(folder: Path, tmp_path: Path) -> None:
    qrels = tmp_path / "qrels.tsv"
    qrels.write_text("otterold\tlost\t1\n")
    out = run("evaluate", "--queries", folder / "queries.jsonl", "--qrels", qrels)[1]
    assert out.startswith("No run found a relevant document among its first ten")


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
def test_another_encoding_is_named_with_what_to_do(folder: Path, tmp_path: Path, encoding: str) -> None:
    qrels = tmp_path / "qrels.tsv"
    qrels.write_bytes("otterold\tdéjà\t1\n".encode(encoding))
    code, _, err = run("evaluate", "--queries", folder / "queries.jsonl", "--qrels", qrels)
    assert code == 2
    assert "is not UTF-8 but" in err
    assert "iconv" in err
    assert "codec" not in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "nothing to evaluate: give a FOLDER, or both --queries and --qrels"),
        (("--queries", "q.jsonl"), "nothing to evaluate"),
        (("--queries", "q.jsonl", "--qrels", "q.tsv", "--shard", "1/2"), "--shard and --workers are for a FOLDER"),
        (("--queries", "q.jsonl", "--qrels", "q.tsv"), "q.tsv cannot be read: No such file or directory"),
        (("folder", "--url", "http://127.0.0.1:1"), "give a FOLDER with documents, or --queries"),
        (("--url", "http://127.0.0.1:1", "--tenant", "a"), "a key has a tenant already"),
    ],
)
def test_what_cannot_be_evaluated_is_reported(arguments: tuple[str, ...], message: str) -> None:
    code, _, err = run("evaluate", *arguments)
    assert code == 2
    assert message in err


def test_an_index_without_documents_is_reported(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVIUM_DATA_DIR", str(tmp_path))
    code, _, err = run("evaluate", *judged(folder))
    assert code == 2
    assert "has no documents for this caller: `trivium index PATH` adds some" in err


def test_a_mistyped_data_folder_is_not_created(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVIUM_DATA_DIR", str(tmp_path / "mistyped"))
    code, _, err = run("evaluate", *judged(folder))
    assert code == 2
    assert f"the index in {tmp_path / 'mistyped'} has no documents" in err
    assert list(tmp_path.iterdir()) == []


def test_a_service_that_cannot_be_reached_is_reported(folder: Path) -> None:
    code, _, err = run("evaluate", *judged(folder), "--url", "http://127.0.0.1:1")
    assert code == 1
    assert "http://127.0.0.1:1 cannot be reached" in err
