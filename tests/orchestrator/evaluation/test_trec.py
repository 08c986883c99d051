"""Run and qrels files, written and read by ``trec_eval``'s rules."""

from __future__ import annotations

from pathlib import Path

import ir_measures
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.evaluation.judgments import BadDataset
from orchestrator.evaluation.trec import read_run, write_judgments, write_run

RUN = {"q": [("c", 3.0), ("a", 2.0), ("z", 1.5), ("b", 1.0)]}

ids = st.text(st.characters(exclude_categories=("Cs", "Cc", "Z"), exclude_characters="\ufeff"), min_size=1, max_size=8)
scores = st.floats(allow_nan=False, allow_infinity=False)
runs = st.dictionaries(ids, st.dictionaries(ids, scores, min_size=1, max_size=4), max_size=4)


def test_a_run_that_is_written_is_read_back(tmp_path: Path) -> None:
    write_run(tmp_path / "run", RUN, "tag")
    assert read_run(tmp_path / "run") == RUN
    assert (tmp_path / "run").read_text().splitlines()[1] == "q Q0 a 2 2.0 tag"


@given(runs)
def test_any_run_is_read_back_with_exact_scores_best_first(
    tmp_path_factory: pytest.TempPathFactory, run: dict[str, dict[str, float]]
) -> None:
    path = tmp_path_factory.mktemp("runs") / "run"
    ordered = {query: sorted(hits.items(), key=lambda hit: -hit[1]) for query, hits in run.items()}
    write_run(path, ordered, "tag")
    assert read_run(path) == ordered


def test_hits_are_ordered_by_score_whatever_the_order_and_ranks_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("q Q0 low 1 1.0 t\nr Q0 x 1 5 t\nq Q0 high 9 2.5 t\n")
    assert read_run(tmp_path / "run") == {"q": [("high", 2.5), ("low", 1.0)], "r": [("x", 5.0)]}


@pytest.mark.parametrize(
    "line", ["q Q0 d 1 nan t", "q Q0 d 1 inf t", "q Q0 d 1 t", "q Q0 d 1 1.0 t more", "q Q0 d 1 high t"]
)
def test_an_invalid_line_is_refused_with_its_number(tmp_path: Path, line: str) -> None:
    (tmp_path / "run").write_text(f"\n{line}\n")
    with pytest.raises(BadDataset, match=f"line 2: '{line}' is not 6 columns"):
        read_run(tmp_path / "run")


def test_a_run_file_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadDataset, match=r"missing.trec cannot be read"):
        read_run(tmp_path / "missing.trec")


def test_judgments_are_as_ir_measures_reads_them(tmp_path: Path) -> None:
    write_judgments(tmp_path / "qrels", {"q": {"a": 2, "b": 0}, "r": {"x": 1}})
    assert (tmp_path / "qrels").read_text() == "q 0 a 2\nq 0 b 0\nr 0 x 1\n"
    read = ir_measures.read_trec_qrels(str(tmp_path / "qrels"))
    assert [(each.query_id, each.doc_id, each.relevance) for each in read] == [
        ("q", "a", 2),
        ("q", "b", 0),
        ("r", "x", 1),
    ]


@pytest.mark.parametrize("id_", ["two words", "", " a", "tab\tbed"])
def test_an_id_that_the_format_cannot_express_is_refused(tmp_path: Path, id_: str) -> None:
    with pytest.raises(BadDataset, match="white space"):
        write_run(tmp_path / "run", {"q": [(id_, 1.0)]}, "tag")
    with pytest.raises(BadDataset, match="white space"):
        write_run(tmp_path / "run", {id_: [("a", 1.0)]}, "tag")
    with pytest.raises(BadDataset, match="white space"):
        write_judgments(tmp_path / "qrels", {"q": {id_: 1}})
