"""Hybrid search finds at least what every single source finds: on questions that only one of the sources can answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from orchestrator.cli.main import main

PARAPHRASED = {
    "doctor gives a sick child medicine": "The physician prescribed a remedy for the youngster's fever.",
    "purchase of an automobile": "She bought a used car from the dealer after a long negotiation.",
    "the dog was frightened by the storm": "Thunder and lightning made the puppy hide under the bed.",
    "baking bread at home": "Knead the dough, let the loaf rise, and put it into a hot oven.",
    "astronauts walking on the moon": "Two men left the lunar module and collected rocks on the surface.",
    "teacher explains mathematics to pupils": "In class the professor showed the students how to solve equations.",
}
"""Question and answer without a common word: for vectors."""
CODES = [f"qzx{number}k" for number in range(7_101, 7_107)]
"""Words that mean nothing: for keywords."""
PEOPLE = ("Aldous Finch", "Berta Quill", "Cosmo Reyes", "Dorit Lamm", "Egon Pryce", "Flora Stanek")
"""Each heads a project; the answer says only what the project does: for the graph."""
_FILLERS = 150


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    corpus: list[dict[str, str]] = []
    queries: list[dict[str, str]] = []
    judged, mentions = [], []

    def add(id_: str, text: str, *entities: str) -> None:
        corpus.append({"_id": id_, "title": "", "text": text})
        mentions.extend({"doc": id_, "entity": entity} for entity in entities)

    def query(text: str, answer: str) -> None:
        queries.append({"_id": f"q{len(queries)}", "text": text})
        judged.append(f"q{len(queries) - 1}\t{answer}\t1")

    for number, (question, text) in enumerate(PARAPHRASED.items()):
        add(f"paraphrase-{number}", text)
        query(question, f"paraphrase-{number}")
    for number, code in enumerate(CODES):
        add(f"code-{number}", f"Status {code} was logged by unit {number} in the night shift.")
        query(f"{code}", f"code-{number}")
    for number, person in enumerate(PEOPLE):
        project = f"Project {chr(65 + number)}urora"
        add(f"person-{number}", f"{person} heads {project}.", person.lower(), project.lower())
        add(f"project-{number}", f"It measures tides with buoy {number * 7} off the coast.", project.lower())
        query(f"what is {person} working on?", f"project-{number}")
    for number in range(_FILLERS):
        add(f"filler-{number}", f"What the committee is working on: note {number} about budget item {number % 13}.")
    folder = tmp_path / "three"
    folder.mkdir()
    for name, lines in (("corpus", corpus), ("queries", queries), ("mentions", mentions)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + "\n".join(judged) + "\n")
    return folder


def test_the_recall_of_both_profiles_is_at_least_that_of_every_source(
    folder: Path, tmp_path: Path, model_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIVIUM_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("TRIVIUM_MODEL_DIR", str(model_dir))
    result = CliRunner().invoke(main, ["evaluate", str(folder), "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    runs = json.loads(result.stdout)["runs"]
    for measure in ("R@10", "R@20", "R@100"):
        best = max(runs[source][measure] for source in ("vector", "graph", "keyword"))
        for profile in ("hybrid", "profile/rrf"):
            assert runs[profile][measure] >= best, (profile, measure)
    # Otherwise the corpus would be too easy for this test to say anything.
    assert max(runs[source]["R@10"] for source in ("vector", "graph", "keyword")) < 0.9
    assert runs["hybrid"]["R@10"] > max(runs[source]["R@10"] for source in ("vector", "graph", "keyword"))
