"""``trivium evaluate`` and ``trivium tune`` on a small data set and the real engine."""

from __future__ import annotations

import html
import json
import re
import subprocess
import time
from importlib.metadata import version
from pathlib import Path
from shutil import copytree
from typing import Any

import ir_measures
import pytest
from ir_measures import RR, R, nDCG

from adapters.encoders import minilm
from orchestrator.evaluation import tuning
from orchestrator.evaluation.comparison import SIGNIFICANCE
from orchestrator.evaluation.runs import RUNS
from orchestrator.settings import load
from tests.orchestrator.evaluation.command import run

pytestmark = pytest.mark.usefixtures("evaluation_environment")


def evaluated(folder: Path, *more: object) -> dict[str, Any]:
    code, out, err = run("evaluate", folder, "--json", *more)
    assert code == 0, err
    return json.loads(out)


def result_files(data_dir: Path) -> list[Path]:
    return sorted(data_dir.glob("evaluations/small-*/responses/*/*.jsonl"))


def test_every_run_is_measured_and_compared(folder: Path) -> None:
    outcome = evaluated(folder)
    assert (outcome["dataset"], outcome["conditions"]["documents"], outcome["queries"]) == ("small", 40, 30)
    assert set(outcome["runs"]) == set(RUNS)
    assert all(0 <= value <= 1 for run in outcome["runs"].values() for value in run.values())
    assert set(outcome["runs"]["hybrid"]) == {"nDCG@10", "MRR@10", "R@2", "R@5", "R@10", "R@20", "R@100"}
    assert outcome["runs"]["hybrid"]["nDCG@10"] > 0.5
    low, high = outcome["intervals"]["hybrid"]["nDCG@10"]
    assert low <= outcome["runs"]["hybrid"]["nDCG@10"] <= high
    assert {(each["run"], each["against"]) for each in outcome["comparisons"]} == {
        ("hybrid", other) for other in RUNS if other != "hybrid"
    }
    assert all(each["wins"] + each["losses"] + each["ties"] == 30 for each in outcome["comparisons"])
    assert (
        outcome["sources_per_query"]["vector"],
        outcome["sources_per_query"]["vector+keyword"],
        outcome["sources_per_query"]["hybrid/rrf"],
    ) == (1, 2, 3)
    assert outcome["sources_per_query"]["auto"] <= outcome["sources_per_query"]["hybrid"]


def test_repeated_interrupted_and_parallel_evaluations_have_the_same_figures(folder: Path, data_dir: Path) -> None:
    first = evaluated(folder)
    assert evaluated(folder) == first
    (file,) = result_files(data_dir)
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) * 2 // 3])  # in the middle of a line
    assert evaluated(folder) == first
    assert sorted(file.read_bytes().splitlines()) == sorted(whole.splitlines())
    file.unlink()
    assert run("evaluate", folder, "--shard", "2/3")[0] == 0
    assert [each.name for each in result_files(data_dir)] == ["1-of-3.jsonl"]
    assert evaluated(folder, "--workers", 2) == first
    assert [each.name for each in result_files(data_dir)] == ["0-of-2.jsonl", "1-of-2.jsonl", "1-of-3.jsonl"]


def test_the_figures_are_those_of_ir_measures_on_the_exported_files(folder: Path, tmp_path: Path) -> None:
    outcome = evaluated(folder, "--export", tmp_path)
    for name, file in (("hybrid", "hybrid"), ("graph", "graph"), ("hybrid/rrf", "hybrid_rrf")):
        judgments = ir_measures.read_trec_qrels(str(tmp_path / "qrels.trec"))
        ranking = ir_measures.read_trec_run(str(tmp_path / f"{file}.trec"))
        # Not its command line, which does not work on CPython 3.14.
        expected = ir_measures.calc_aggregate([nDCG @ 10, RR @ 10, R @ 5, R @ 100], judgments, ranking)
        figures = {**outcome["runs"][name], "RR@10": outcome["runs"][name]["MRR@10"]}
        assert len(expected) == 4
        for measure, value in expected.items():
            assert figures[str(measure)] == pytest.approx(value), measure


def test_run_files_are_measured_too_and_compared_with(folder: Path, tmp_path: Path) -> None:
    perfect = tmp_path / "perfect.trec"
    rows = [line.split("\t") for line in (folder / "qrels.tsv").read_text().splitlines()[1:]]
    perfect.write_text("".join(f"{query} Q0 {document} 1 1.0 perfect\n" for query, document, _ in rows))
    assert evaluated(folder, "--run", perfect)["runs"]["perfect"]["nDCG@10"] == 1.0
    against = evaluated(folder, "--against", perfect)["comparisons"]
    assert {(each["run"], each["against"]) for each in against} == {(name, "perfect") for name in RUNS}
    assert all(each["difference"] <= 0 for each in against)


def test_what_a_run_file_lacks_is_reported(folder: Path, tmp_path: Path) -> None:
    rows = [line.split("\t") for line in (folder / "qrels.tsv").read_text().splitlines()[1:]]
    lines = {"short": f"{rows[0][0]} Q0 {rows[0][1]} 1 1.0 x\n", "other": "unknown Q0 nothing 1 1.0 x\n"}
    for name, content in lines.items():
        (tmp_path / f"{name}.trec").write_text(content)
    options = [option for name in lines for option in ("--run", tmp_path / f"{name}.trec")]
    code, _, err = run("evaluate", folder, *options)
    assert code == 0
    queries = len({query for query, *_ in rows})
    assert f"short: {queries - 1} of {queries} judged queries have no document in it; what is missing counts 0" in err
    assert "1 of its queries are not judged (unknown); none of its documents is judged" in err


def test_judgments_in_another_file_are_named(folder: Path, tmp_path: Path) -> None:
    copytree(folder, tmp_path / "set")
    (tmp_path / "set" / "qrels").mkdir()
    (tmp_path / "set" / "qrels.tsv").rename(tmp_path / "set" / "qrels" / "dev.tsv")
    code, _, err = run("evaluate", tmp_path / "set")
    assert (code, "of qrels/dev.tsv copy the one that is meant to qrels.tsv" in err) == (2, True)


def test_documents_with_the_same_id_are_counted(folder: Path, tmp_path: Path) -> None:
    copytree(folder, tmp_path / "set")
    corpus = tmp_path / "set" / "corpus.jsonl"
    corpus.write_text(corpus.read_text() + corpus.read_text().splitlines()[0] + "\n")
    _, _, err = run("evaluate", tmp_path / "set")
    assert "1 documents have the id of a later one, which counts" in err


def test_a_run_file_must_not_have_the_name_of_a_run(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "hybrid.trec").write_text("q Q0 d 1 1.0 tag\n")
    code, _, err = run("evaluate", folder, "--against", tmp_path / "hybrid.trec")
    assert code == 2
    assert "there is already a run 'hybrid'" in err


def test_byte_order_marks_line_ends_of_windows_and_trec_judgments_are_read(folder: Path, tmp_path: Path) -> None:
    rows = [line.split("\t") for line in (folder / "qrels.tsv").read_text().splitlines()[1:]]
    for name in ("corpus.jsonl", "queries.jsonl", "edges.jsonl"):
        (tmp_path / name).write_text("\ufeff" + (folder / name).read_text().replace("\n", "\r\n") + " \n")
    (tmp_path / "qrels.trec").write_text("".join(f"{query} 0 {document} {score}\n" for query, document, score in rows))
    marked, plain = evaluated(tmp_path), evaluated(folder)
    assert marked["conditions"]["documents"] == 40
    assert marked["runs"] == plain["runs"]


def test_settings_of_access_change_no_figure(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = evaluated(folder)
    monkeypatch.setenv("TRIVIUM_TENANT", "other")
    monkeypatch.setenv("TRIVIUM_OPEN_CLEARANCE", "public")
    monkeypatch.setenv("TRIVIUM_DEFAULT_COLLECTIONS", "memory")
    assert evaluated(folder) == first


def test_another_measure_of_centrality_is_computed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = evaluated(folder)["runs"]["hybrid/centrality"]
    monkeypatch.setenv("TRIVIUM_CENTRALITY", "degree")
    monkeypatch.setenv("TRIVIUM_CENTRALITY_WEIGHT", "0.5")
    again = evaluated(folder)["runs"]
    assert again["hybrid/centrality"] != again["hybrid"] or first != again["hybrid/centrality"]


def test_the_report_is_one_file_without_external_resources(folder: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    evaluated(folder, "--report", report)
    page = report.read_text()
    assert "<h1>small</h1>" in page
    assert "<strong>hybrid" in page
    assert "has the highest nDCG@10" in page
    assert all(html.escape(plan.description) in page for plan in RUNS.values())
    assert version("trivium") in page
    assert "All settings that concern the ranking are the defaults." in page
    assert page.count("<svg") == 2
    for external in ("<script", "<link", "<img", "@import", "url("):
        assert external not in page.replace('clip-path="url(#', "")
    evaluated(folder, "--report", report)
    assert report.read_text() == page


def test_without_json_the_figures_are_a_table(folder: Path) -> None:
    code, out, _ = run("evaluate", folder)
    assert code == 0
    assert "hybrid - keyword" in out
    assert "has the highest nDCG@10" in out.splitlines()[0]
    assert re.search(r"corrected for \d+ comparisons", " ".join(out.split()))
    assert all(plan.description.split()[0] in out for plan in RUNS.values())
    assert "paired randomisation test" in out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"qrels.tsv": None}, "has no judgments: none of qrels/test.tsv, qrels.tsv, qrels.trec"),
        ({"corpus.jsonl": None}, "is not a data set: it has neither documents.ndjson nor corpus.jsonl"),
        ({"queries.jsonl": None}, "queries.jsonl cannot be read"),
        ({"queries.jsonl": "{}"}, "queries.jsonl, line 1: "),
        ({"qrels.tsv": "a b c"}, "qrels.tsv, line 1: 'a b c' is not 3 columns with tabs"),
        ({"qrels.tsv": "unknown\td\t1"}, "has no query 'unknown': 1 of 1 that"),
        ({"qrels.tsv": "otter-0\totterold\t1"}, "its columns are the query, then the document"),
        ({"queries.jsonl": ""}, "queries.jsonl has no queries: there is nothing to search"),
        ({"qrels.tsv": "otterold\totter-0\t99999999999999999999"}, "allowed are -1000000 to 1000000"),
        ({"qrels.tsv": "otterold\totter-0\t1\notterold\totter-0\t0"}, "line 2: 'otterold' and 'otter-0' have the"),
        ({"qrels.tsv": "otterold otter-0 1"}, "the last a whole number: it has spaces instead"),
        ({"qrels.tsv": "otterold,otter-0,1"}, "the last a whole number: it has ',' instead"),
        ({"qrels.tsv": "otterold 0 otter-0 1"}, "if it is of TREC, name the file *.trec"),
        ({"queries.jsonl": '{"_id":"q"'}, "queries.jsonl, line 1: not JSON: it is empty or incomplete"),
        ({"qrels.tsv": "query-id\tcorpus-id\tscore\n"}, "has no judgments: there is nothing to measure"),
        ({"queries.jsonl": '{"_id":"q","text":" "}'}, "line 1: the query 'q' has no text"),
        (
            {"queries.jsonl": '{"_id":"q","text":"a"}\n\n{"_id":"q","text":"b"}'},
            "line 3: the query 'q' occurs twice",
        ),
        ({"corpus.jsonl": "?"}, "has no document that can be indexed"),
        ({"documents.ndjson": "{}"}, "has documents.ndjson and corpus.jsonl: keep one of them"),
    ],
)
def test_a_data_set_that_cannot_be_read_is_reported(
    folder: Path, tmp_path: Path, change: dict[str, str | None], message: str
) -> None:
    contents = {file.name: file.read_text() for file in folder.iterdir()} | change
    for name, content in contents.items():
        if content is not None:
            (tmp_path / name).write_text(content)
    code, _, err = run("evaluate", tmp_path)
    assert code == 2
    assert message in err


def test_the_corpus_may_be_ndjson_with_every_field_of_a_document(tmp_path: Path) -> None:
    """The second of two equal texts is newer: the run with dates prefers it."""
    now = int(time.time())
    documents = [
        {"id": f"{kind}-{days}", "text": f"The {kind} harbour.", "created_at": now - 86_400 * days, "collection": kind}
        for kind in ("old", "deep", "wide")
        for days in (90, 0)
    ]
    (tmp_path / "documents.ndjson").write_text("".join(json.dumps(each) + "\n" for each in documents))
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "the deep harbour"}\n')
    (tmp_path / "qrels.tsv").write_text("q\tdeep-0\t1\n")
    code, out, _ = run("evaluate", tmp_path, "--json")
    report = json.loads(out)
    assert (code, report["conditions"]["documents"]) == (0, 6)
    assert report["runs"]["hybrid/dates"]["MRR@10"] == 1.0
    assert report["runs"]["hybrid"]["MRR@10"] == 0.5


def test_an_index_of_another_build_is_made_again(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVIUM_DATA_DIR", str(tmp_path))
    assert run("evaluate", folder)[0] == 0
    (marker,) = tmp_path.glob("evaluations/small-*/indexed.json")
    before = json.loads(marker.read_text())
    monkeypatch.setattr(minilm, "_WINDOWS", "other")
    assert run("evaluate", folder)[0] == 0
    after = json.loads(marker.read_text())
    assert after["documents"] == before["documents"]
    assert after["build_id"] == before["build_id"].replace("-r2h-", "-r2other-")


@pytest.mark.parametrize("shard", ["0/2", "3/2", "1", "a/b", "1/0"])
def test_an_invalid_shard_is_reported(folder: Path, shard: str) -> None:
    code, _, err = run("evaluate", folder, "--shard", shard)
    assert code == 2
    assert f"--shard is '{shard}', write k/n" in err


def test_an_invalid_run_file_is_reported(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "run.trec").write_text("q Q0 d 1 high tag\n")
    code, _, err = run("evaluate", folder, "--run", tmp_path / "run.trec")
    assert code == 2
    assert "run.trec, line 1: 'q Q0 d 1 high tag' is not 6 columns" in err


def test_tuning_writes_no_settings_that_the_held_out_half_does_not_support(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The start is good already, so there is no gain on queries that were not used for the choice."""
    monkeypatch.setattr(tuning, "SEARCH_SPACE", {"weights": ({"graph": 0.5}, {"graph": 1.0}, {"graph": 2.0})})
    output = tmp_path / "tuned.env"
    code, out, _ = run("tune", folder, "--output", output, "--json")
    outcome = json.loads(out)
    assert code == 0
    assert outcome["supported"] is (outcome["held_out"]["difference"] > 0 and outcome["held_out"]["p"] < SIGNIFICANCE)
    assert output.exists() is outcome["supported"]
    assert outcome["supported"] is False
    assert outcome["objection"]
    code, out, _ = run("tune", folder, "--output", output)
    assert f"not kept: {outcome['objection']}" in " ".join(out.split())


def test_tuning_improves_bad_settings_and_its_file_can_be_loaded(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The start is the graph alone, which finds the subject of a query and no more."""
    monkeypatch.setenv("TRIVIUM_WEIGHTS", "keyword=0, vector=0")
    monkeypatch.setattr(tuning, "SEARCH_SPACE", {"weights": ({"keyword": 0.0}, {"keyword": 1.0})})
    output = tmp_path / "tuned.env"
    code, out, _ = run("tune", folder, "--output", output)
    assert code == 0
    assert "a significant gain on the held-out half" in out
    assert "candidates:\nTRIVIUM_WEIGHTS=keyword=1.0,vector=0.0\n" in out
    assert output.read_text() == "TRIVIUM_WEIGHTS=keyword=1.0,vector=0.0\n"
    monkeypatch.delenv("TRIVIUM_WEIGHTS")
    monkeypatch.setenv("TRIVIUM_SETTINGS_FILE", str(output))
    assert load().ranking.weights == {"keyword": 1.0, "vector": 0.0}


def test_too_few_queries_for_tuning_are_reported(folder: Path, tmp_path: Path) -> None:
    few = (folder / "qrels.tsv").read_text().splitlines()[:11]
    for file in folder.iterdir():
        (tmp_path / file.name).write_text(file.read_text())
    (tmp_path / "qrels.tsv").write_text("\n".join(few) + "\n")
    code, _, err = run("tune", tmp_path)
    assert code == 2
    assert "10 judged queries, tuning needs at least 20" in err


def test_the_split_does_not_depend_on_the_order() -> None:
    ids = [str(n) for n in range(21)]
    training, held_out = tuning.train_test_split(ids)
    assert (training, held_out) == tuning.train_test_split(reversed(ids))
    assert sorted(training + held_out) == sorted(ids)
    assert abs(len(training) - len(held_out)) == 1


def test_a_missing_package_is_named_with_the_extra_to_install(python: str, folder: Path) -> None:
    without = "import sys; sys.modules['ir_measures'] = None; from orchestrator.cli.main import main; main()"
    command = [python, "-c", without, "evaluate", str(folder)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "ir_measures is not installed: pip install 'trivium[evaluate]'" in ended.stderr
