"""``trivium tune --learn``: trees from judged queries, which a service then uses."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.model.errors import Unavailable
from fusion.learned import COVERAGE, UNIT, feature_names
from fusion.trees import Trees
from orchestrator.evaluation.comparison import SIGNIFICANCE
from orchestrator.evaluation.learning import TrainingQuery, fitted, load_lightgbm
from tests.orchestrator.evaluation.command import run

NAMES = feature_names(("text", "walk"))
DECIDES = NAMES.index("walk.rank")


@pytest.fixture(autouse=True)
def lightgbm() -> None:
    try:
        load_lightgbm()
    except Unavailable as error:
        if "not installed" in str(error):
            raise
        pytest.skip(str(error))  # the library of OpenMP is not on this machine


def judged_queries(seed: int = 0, count: int = 40) -> list[TrainingQuery]:
    """Random candidates, of which those are relevant that one source ranks first to third."""
    rng = np.random.default_rng(seed)
    queries = []
    for _ in range(count):
        features = rng.random((len(NAMES), 60))
        features[DECIDES] = 1 / (1 + rng.permutation(60))
        queries.append(TrainingQuery(features, features[0], (features[DECIDES] > 0.3).astype(np.int64)))
    return queries


def test_the_trees_find_what_makes_documents_relevant() -> None:
    trees = Trees.of(fitted(judged_queries(), NAMES), len(NAMES))
    for query in judged_queries(seed=1, count=10):  # others than it was learned from
        sums = trees.sums(query.features)
        relevant = query.grades == 1
        assert sums[relevant].min() > sums[~relevant].max()


def test_the_outcome_is_the_same_on_each_run() -> None:
    assert fitted(judged_queries(), NAMES) == fitted(judged_queries(), NAMES)


def test_the_sums_are_those_of_lightgbm(monkeypatch: pytest.MonkeyPatch) -> None:
    lightgbm, boosters = load_lightgbm(), []
    train = lightgbm.train

    def kept(*arguments: object) -> object:
        boosters.append(train(*arguments))
        return boosters[-1]

    monkeypatch.setattr(lightgbm, "train", kept)
    queries = judged_queries()
    found = fitted(queries, NAMES)
    assert len(found) == 50
    (booster,) = boosters
    for query in queries[:5]:
        sums = UNIT * Trees.of(found, len(NAMES)).sums(query.features)
        assert sums == pytest.approx(booster.predict(query.features.T, raw_score=True), abs=len(found) * UNIT)


_TREES: list[Trees] = []


@settings(max_examples=50)
@given(st.lists(st.floats(0, 1), min_size=len(NAMES), max_size=len(NAMES)), st.data())
def test_more_of_a_feature_never_lowers_a_document(row: list[float], data: st.DataObject) -> None:
    if not _TREES:
        rng = np.random.default_rng(3)
        queries = [
            TrainingQuery(rng.random((len(NAMES), 60)), rng.random(60), rng.integers(0, 3, 60)) for _ in range(30)
        ]
        _TREES.append(Trees.of(fitted(queries, NAMES), len(NAMES)))
    feature = data.draw(st.sampled_from([at for at, name in enumerate(NAMES) if name != COVERAGE]))
    more = row.copy()
    more[feature] = data.draw(st.floats(row[feature], 1))
    less, larger = _TREES[0].sums(np.array([row, more]).T).tolist()
    assert less <= larger


@pytest.mark.parametrize("grade", [0, 2])
def test_nothing_is_learned_from_queries_with_one_grade_only(grade: int) -> None:
    features = np.zeros((len(NAMES), 5))
    assert fitted([TrainingQuery(features, features[0], np.full(5, grade))], NAMES) == []
    assert fitted([], NAMES) == []


def test_a_missing_package_is_named_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(Unavailable, match=r"lightgbm.*pip install 'trivium\[learn\]'"):
        load_lightgbm()


@pytest.fixture
def made_up(tmp_path: Path) -> Path:
    """Documents of words that no language has, so that their vectors mean little; a query names a word of each."""
    dice = random.Random(1)
    words = ["".join(dice.choice("bdfgklmnprst") + dice.choice("aeiou") for _ in range(3)) for _ in range(60)]
    folder = tmp_path / "made-up"
    folder.mkdir()
    lines: dict[str, list[object]] = {"corpus.jsonl": [], "queries.jsonl": []}
    judged = ["query-id\tcorpus-id\tscore"]
    for number, word in enumerate(words):
        others = dice.choices(words, k=9)
        lines["corpus.jsonl"].append({"_id": f"d{number}", "text": " ".join([*others[:3], word, *others[3:]])})
        lines["queries.jsonl"].append(
            {"_id": f"q{number}", "text": f"what do the old books of the town say about {word}"}
        )
        judged.append(f"q{number}\td{number}\t1")
    for name, objects in lines.items():
        (folder / name).write_text("".join(json.dumps(each) + "\n" for each in objects))
    (folder / "qrels.tsv").write_text("\n".join(judged) + "\n")
    return folder


@pytest.mark.usefixtures("evaluation_environment")
def test_a_gain_is_written_and_a_service_ranks_by_it(
    made_up: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The start is a fusion in which keywords hardly count, and only these find the documents."""
    monkeypatch.setenv("TRIVIUM_WEIGHTS", "keyword=0.001")
    output = tmp_path / "learned.json"
    code, out, err = run("tune", made_up, "--learn", "--output", output, "--json")
    assert code == 0, err
    outcome = json.loads(out)
    assert outcome["supported"], outcome
    assert outcome["held_out"]["p"] < SIGNIFICANCE
    assert json.loads(output.read_text())["base"] == outcome["base"]
    monkeypatch.setenv("TRIVIUM_FUSION", f"learned({output})")
    code, _, err = run("tune", made_up, "--learn")
    assert code == 2
    assert "trees correct another strategy" in " ".join(err.split())
    code, out, err = run("evaluate", made_up, "--json")
    assert code == 0, err
    figures = json.loads(out)["runs"]
    halves = [outcome[half]["value"] for half in ("training", "held_out")]  # of 30 queries each
    assert figures["auto"]["nDCG@10"] == pytest.approx(sum(halves) / 2)
    model = json.loads(output.read_text())
    for tree in model["trees"]:  # another content under the same name, with which keywords hardly count again
        tree["values"] = [0] * len(tree["values"])
    output.write_text(json.dumps(model))
    code, out, err = run("evaluate", made_up, "--json")
    assert code == 0, err
    halves = [outcome[half]["baseline"] for half in ("training", "held_out")]
    assert json.loads(out)["runs"]["auto"]["nDCG@10"] == pytest.approx(sum(halves) / 2)


@pytest.mark.usefixtures("evaluation_environment")
def test_what_the_held_out_half_does_not_support_is_not_written(folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "learned.json"
    code, out, _ = run("tune", folder, "--learn", "--output", output)
    assert code == 0
    assert "not kept" in out
    assert "nothing was written" in " ".join(out.split())
    assert not output.exists()
