"""The example of ``docs/reference/judged-sets.md`` can be evaluated as it is written there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.orchestrator.evaluation.command import run

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "judged-sets.md"

pytestmark = pytest.mark.usefixtures("evaluation_environment")


def test_the_example_of_the_page_is_evaluated(tmp_path: Path) -> None:
    files = re.findall(r"^`([\w.]+)`:\n\n```\w*\n(.*?)```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert [name for name, _ in files] == ["queries.jsonl", "qrels.tsv", "documents.ndjson"]
    for name, content in files:
        (tmp_path / name).write_text(content)
    code, out, err = run("evaluate", tmp_path, "--json")
    assert code == 0, err
    outcome = json.loads(out)
    assert (outcome["queries"], outcome["conditions"]["documents"]) == (2, 3)
    assert outcome["unknown_documents"] == outcome["unjudged"] == outcome["without_relevant"] == []
    assert outcome["runs"]["hybrid"]["MRR@10"] == 1.0
