"""``trivium evaluate`` and ``trivium tune`` as they are run, over a small data set and the real engine."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from orchestrator.cli import main
from orchestrator.evaluation import tune
from orchestrator.evaluation.runs import RUNS
from orchestrator.settings import SettingsError, read

SUBJECTS = ("otter", "falcon", "granite", "violin", "lighthouse", "compass", "saffron", "glacier", "anvil", "harbour")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty passages on ten subjects, and three questions to each."""
    made = tmp_path_factory.mktemp("sets") / "small"
    made.mkdir()
    corpus = [
        {"_id": f"{subject}-{n}", "title": f"{subject.title()} {n}", "text": f"The {subject} number {n} is {kind}."}
        for subject in SUBJECTS
        for n, kind in enumerate(("old", "rare", "heavy", "famous"))
    ]
    queries = [
        {"_id": f"{subject}{kind}", "text": f"which {subject} is {kind}"}
        for subject in SUBJECTS
        for kind in ("old", "rare", "heavy")
    ]
    places = {"old": 0, "rare": 1, "heavy": 2}
    judged = [f"{s}{kind}\t{s}-{n}\t1" for s in SUBJECTS for kind, n in places.items()]
    edges = [{"source": f"{s}-{n}", "target": f"{s}-{n + 1}", "type": "next"} for s in SUBJECTS for n in range(3)]
    (made / "corpus.jsonl").write_text("".join(json.dumps(each) + "\n" for each in corpus))
    (made / "queries.jsonl").write_text("".join(json.dumps(each) + "\n" for each in queries))
    (made / "edges.jsonl").write_text("".join(json.dumps(each) + "\n" for each in edges))
    (made / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + "\n".join(judged) + "\n")
    return made


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all tests here: what is indexed once is not indexed again."""
    return tmp_path_factory.mktemp("data")


@pytest.fixture(autouse=True)
def _env(data_dir: Path, model_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVIUM_DATA_DIR", str(data_dir))
    monkeypatch.setenv("TRIVIUM_MODEL_DIR", str(model_dir))


def run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, [str(each) for each in arguments], catch_exceptions=False)
    return result.exit_code, result.stdout, result.stderr


def evaluated(folder: Path, *more: object) -> dict[str, Any]:
    code, out, err = run("evaluate", folder, "--json", *more)
    assert code == 0, err
    return json.loads(out)


def answers(data_dir: Path) -> list[Path]:
    return sorted(data_dir.glob("evaluations/small-*/answers/*/*.jsonl"))


def test_every_run_is_measured_and_compared(folder: Path) -> None:
    told = evaluated(folder)
    assert (told["dataset"], told["documents"], told["queries"]) == ("small", 40, 30)
    assert set(told["runs"]) == set(RUNS)
    assert all(0 <= value <= 1 for run in told["runs"].values() for value in run.values())
    assert set(told["runs"]["hybrid"]) == {"nDCG@10", "MRR@10", "R@2", "R@5", "R@10", "R@100"}
    assert told["runs"]["hybrid"]["nDCG@10"] > 0.5
    low, high = told["intervals"]["hybrid"]["nDCG@10"]
    assert low <= told["runs"]["hybrid"]["nDCG@10"] <= high
    assert {(each["run"], each["against"]) for each in told["comparisons"]} == {
        ("hybrid", other) for other in RUNS if other != "hybrid"
    }
    assert all(each["wins"] + each["losses"] + each["ties"] == 30 for each in told["comparisons"])
    assert (told["asked"]["vector"], told["asked"]["vector+keyword"], told["asked"]["hybrid/rrf"]) == (1, 2, 3)
    assert told["asked"]["auto"] <= told["asked"]["hybrid"]


def test_again_and_interrupted_and_in_parallel_the_figures_are_the_same(folder: Path, data_dir: Path) -> None:
    first = evaluated(folder)
    assert evaluated(folder) == first
    (file,) = answers(data_dir)
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) * 2 // 3])  # in the middle of a line
    assert evaluated(folder) == first
    assert sorted(file.read_bytes().splitlines()) == sorted(whole.splitlines())
    file.unlink()
    assert run("evaluate", folder, "--shard", "2/3")[0] == 0
    assert [each.name for each in answers(data_dir)] == ["1-of-3.jsonl"]
    assert evaluated(folder, "--workers", 2) == first
    assert [each.name for each in answers(data_dir)] == ["0-of-2.jsonl", "1-of-2.jsonl", "1-of-3.jsonl"]


def test_the_figures_are_those_of_ir_measures_on_the_exported_files(folder: Path, tmp_path: Path) -> None:
    told = evaluated(folder, "--export", tmp_path)
    for name, file in (("hybrid", "hybrid"), ("graph", "graph"), ("hybrid/rrf", "hybrid_rrf")):
        files = (str(tmp_path / "qrels.trec"), str(tmp_path / f"{file}.trec"))
        command = [sys.executable, "-m", "ir_measures", *files, "nDCG@10", "RR@10", "R@5", "R@100"]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        theirs = {row[0]: row[1] for row in csv.reader(io.StringIO(printed), delimiter="\t")}
        ours = {**told["runs"][name], "RR@10": told["runs"][name]["MRR@10"]}
        assert theirs == {measure: f"{ours[measure]:.4f}" for measure in theirs}
        assert len(theirs) == 4


def test_runs_of_others_are_judged_beside_ours_or_compared_with(folder: Path, tmp_path: Path) -> None:
    perfect = tmp_path / "perfect.trec"
    rows = [line.split("\t") for line in (folder / "qrels.tsv").read_text().splitlines()[1:]]
    perfect.write_text("".join(f"{query} Q0 {document} 1 1.0 perfect\n" for query, document, _ in rows))
    assert evaluated(folder, "--run", perfect)["runs"]["perfect"]["nDCG@10"] == 1.0
    against = evaluated(folder, "--against", perfect)["comparisons"]
    assert {(each["run"], each["against"]) for each in against} == {(name, "perfect") for name in RUNS}
    assert all(each["difference"] <= 0 for each in against)


def test_a_run_file_may_not_take_the_name_of_a_run(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "hybrid.trec").write_text("q Q0 d 1 1.0 tag\n")
    code, _, err = run("evaluate", folder, "--against", tmp_path / "hybrid.trec")
    assert code == 2
    assert "there is a run 'hybrid' already" in err


def test_marks_of_editors_and_trec_judgments_are_read(folder: Path, tmp_path: Path) -> None:
    rows = [line.split("\t") for line in (folder / "qrels.tsv").read_text().splitlines()[1:]]
    for name in ("corpus.jsonl", "queries.jsonl", "edges.jsonl"):
        (tmp_path / name).write_text("\ufeff" + (folder / name).read_text().replace("\n", "\r\n") + " \n")
    (tmp_path / "qrels.trec").write_text("".join(f"{query} 0 {document} {score}\n" for query, document, score in rows))
    marked, plain = evaluated(tmp_path), evaluated(folder)
    assert marked["documents"] == 40
    assert marked["runs"] == plain["runs"]


def test_whose_documents_the_service_shows_changes_no_figure(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_the_report_is_one_file_that_loads_nothing(folder: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    evaluated(folder, "--report", report)
    page = report.read_text()
    assert "<h1>small</h1>" in page
    assert page.count("<svg") == 2
    for loads in ("<script", "<link", "<img", "@import", "url("):
        assert loads not in page.replace('clip-path="url(#', "")
    evaluated(folder, "--report", report)
    assert report.read_text() == page


def test_people_get_a_table(folder: Path) -> None:
    code, out, _ = run("evaluate", folder)
    assert code == 0
    assert "hybrid - keyword" in out
    assert "paired randomisation test" in out


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"qrels.tsv": None}, "has no judgments: none of qrels/test.tsv, qrels.tsv, qrels.trec"),
        ({"corpus.jsonl": None}, "is no BEIR data set: it has no corpus.jsonl"),
        ({"queries.jsonl": None}, "queries.jsonl cannot be read"),
        ({"queries.jsonl": "{}"}, "queries.jsonl, line 1: "),
        ({"qrels.tsv": "a b c"}, "qrels.tsv, line 1: 'a b c' is not 3 columns with tabs"),
        ({"qrels.tsv": "nobody\td\t1"}, "has no query 'nobody', which is judged"),
        ({"qrels.tsv": "query-id\tcorpus-id\tscore\n"}, "has no judgments: there is nothing to measure"),
        ({"queries.jsonl": '{"_id":"q","text":" "}'}, "line 1: the query 'q' has no text"),
        (
            {"queries.jsonl": '{"_id":"q","text":"a"}\n\n{"_id":"q","text":"b"}'},
            "line 3: the query 'q' stands there twice",
        ),
        ({"corpus.jsonl": "?"}, "has no document that can be indexed"),
    ],
)
def test_a_data_set_that_cannot_be_read_is_told(
    folder: Path, tmp_path: Path, change: dict[str, str | None], complaint: str
) -> None:
    for file in folder.iterdir():
        if change.get(file.name, "") is not None:
            (tmp_path / file.name).write_text(change.get(file.name) or file.read_text())
    code, _, err = run("evaluate", tmp_path)
    assert code == 2
    assert complaint in err


@pytest.mark.parametrize("shard", ["0/2", "3/2", "1", "a/b", "1/0"])
def test_a_shard_that_there_is_not_is_told(folder: Path, shard: str) -> None:
    code, _, err = run("evaluate", folder, "--shard", shard)
    assert code == 2
    assert f"--shard is '{shard}', write k/n" in err


def test_a_run_file_that_cannot_be_read_is_told(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "run.trec").write_text("q Q0 d 1 high tag\n")
    code, _, err = run("evaluate", folder, "--run", tmp_path / "run.trec")
    assert code == 2
    assert "run.trec, line 1: 'q Q0 d 1 high tag' is not 6 columns" in err


def test_tuning_writes_nothing_that_the_held_out_half_does_not_support(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From settings that are good already there is nothing to gain on queries that nobody looked at."""
    monkeypatch.setattr(tune, "LADDERS", {"weight_graph": (0.5, 1.0, 2.0)})
    output = tmp_path / "tuned.env"
    code, out, _ = run("tune", folder, "--output", output, "--json")
    told = json.loads(out)
    assert code == 0
    assert told["supported"] is (told["held_out"]["difference"] > 0 and told["held_out"]["p"] < tune.CERTAIN)
    assert output.exists() is told["supported"]
    assert told["supported"] is False


def test_tuning_mends_settings_that_are_bad_and_serve_takes_what_it_writes(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the graph alone, which knows the subject and nothing else of a question."""
    monkeypatch.setenv("TRIVIUM_WEIGHT_KEYWORD", "0")
    monkeypatch.setenv("TRIVIUM_WEIGHT_VECTOR", "0")
    monkeypatch.setattr(tune, "LADDERS", {"weight_keyword": (0.0, 1.0)})
    output = tmp_path / "tuned.env"
    code, out, _ = run("tune", folder, "--output", output)
    assert code == 0
    assert "a gain that the held-out half supports" in out
    assert "TRIVIUM_WEIGHT_KEYWORD=1.0" in output.read_text()
    monkeypatch.delenv("TRIVIUM_WEIGHT_KEYWORD")
    monkeypatch.setenv("TRIVIUM_SETTINGS_FILE", str(output))
    assert read().weight_keyword == 1.0


def test_too_few_queries_cannot_be_tuned_on(folder: Path, tmp_path: Path) -> None:
    few = (folder / "qrels.tsv").read_text().splitlines()[:11]
    for file in folder.iterdir():
        (tmp_path / file.name).write_text(file.read_text())
    (tmp_path / "qrels.tsv").write_text("\n".join(few) + "\n")
    code, _, err = run("tune", tmp_path)
    assert code == 2
    assert "10 judged queries, tuning takes 20 at least" in err


def test_halves_are_the_same_whatever_the_order() -> None:
    ids = [str(n) for n in range(21)]
    one, other = tune.halves(ids)
    assert (one, other) == tune.halves(reversed(ids))
    assert sorted(one + other) == sorted(ids)
    assert abs(len(one) - len(other)) == 1


def test_a_settings_file_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "some.env"
    monkeypatch.setenv("TRIVIUM_SETTINGS_FILE", str(file))
    with pytest.raises(SettingsError, match="which cannot be read"):
        read()
    file.write_text("TRIVIUM_DEPHT=100\n")
    with pytest.raises(SettingsError, match="there is no setting 'TRIVIUM_DEPHT'"):
        read()
    file.write_text("TRIVIUM_DEPTH=77\nTRIVIUM_BOOSTS=centrality\n")
    assert (read().depth, read().boosts) == (77, ("centrality",))
    monkeypatch.setenv("TRIVIUM_DEPTH", "88")
    assert read().depth == 88
    file.write_text("TRIVIUM_DEPTH=1\n")
    monkeypatch.delenv("TRIVIUM_DEPTH")
    with pytest.raises(SettingsError, match="TRIVIUM_DEPTH is '1'"):
        read()


def test_what_is_missing_is_named(folder: Path) -> None:
    without = "import sys; sys.modules['ir_measures'] = None; from orchestrator.cli import main; main()"
    command = [sys.executable, "-c", without, "evaluate", str(folder)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "ir_measures is not installed: pip install 'trivium[evaluate]'" in ended.stderr
