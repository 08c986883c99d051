"""A small judged data set, and the environment of commands that evaluate it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.orchestrator.evaluation.command import run

SUBJECTS = ("otter", "falcon", "granite", "violin", "lighthouse", "compass", "saffron", "glacier", "anvil", "harbour")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty passages on ten subjects, and three queries about each."""
    folder = tmp_path_factory.mktemp("sets") / "small"
    folder.mkdir()
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
    numbers = {"old": 0, "rare": 1, "heavy": 2}
    judged = [f"{s}{kind}\t{s}-{n}\t1" for s in SUBJECTS for kind, n in numbers.items()]
    edges = [{"source": f"{s}-{n}", "target": f"{s}-{n + 1}", "type": "next"} for s in SUBJECTS for n in range(3)]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(each) + "\n" for each in corpus))
    (folder / "queries.jsonl").write_text("".join(json.dumps(each) + "\n" for each in queries))
    (folder / "edges.jsonl").write_text("".join(json.dumps(each) + "\n" for each in edges))
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + "\n".join(judged) + "\n")
    return folder


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all tests here, so that a data set is indexed once."""
    return tmp_path_factory.mktemp("data")


@pytest.fixture
def evaluation_environment(data_dir: Path, model_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVIUM_DATA_DIR", str(data_dir))
    monkeypatch.setenv("TRIVIUM_MODEL_DIR", str(model_dir))


@pytest.fixture(scope="module")
def indexed_dir(folder: Path, model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the documents of the judged queries."""
    path = tmp_path_factory.mktemp("indexed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRIVIUM_DATA_DIR", str(path))
        patch.setenv("TRIVIUM_MODEL_DIR", str(model_dir))
        code, out, err = run("index", folder)
    assert code == 0, out + err
    return path
