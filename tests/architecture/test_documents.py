"""The documents are checked against the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs import architecture_picture, metrics_table
from docs.settings_table import tables
from orchestrator.settings import setting_fields

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
_PATH = re.compile(r"`((?:orchestrator|adapters|cache|fusion|docs|tests|benchmarks|compose|k8s)/[\w./-]*)`")


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda path: str(path.relative_to(ROOT)))
def test_named_files_exist(page: Path) -> None:
    assert [name for name in _PATH.findall(page.read_text("utf-8")) if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text("utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_the_picture_of_the_architecture_is_that_of_the_code() -> None:
    page = architecture_picture.PAGE.read_text("utf-8")
    assert architecture_picture.picture() in page
    assert architecture_picture.with_picture(page) == page


def test_the_architecture_names_every_room_and_package() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    rooms = {path.parent.name for path in (ROOT / "orchestrator").glob("*/__init__.py")}
    assert len(_PATH.findall(text)) > 40
    assert [room for room in rooms if room not in text] == []


def test_the_settings_page_has_every_setting_as_it_is() -> None:
    page = (ROOT / "docs" / "reference" / "settings.md").read_text("utf-8")
    assert tables() in page


def test_the_metrics_page_has_every_metric_as_it_is() -> None:
    assert metrics_table.table() in (ROOT / "docs" / "reference" / "metrics.md").read_text("utf-8")


def test_every_setting_that_a_document_names_exists() -> None:
    known = {f"TRIVIUM_{name.upper()}" for name in setting_fields()} | {"TRIVIUM_SETTINGS_FILE", "TRIVIUM_STRICT"}
    for page in [ROOT / "README.md", *PAGES]:
        names = set(re.findall(r"\bTRIVIUM_[A-Z_]+[A-Z]\b", page.read_text("utf-8")))
        assert {name for name in names - known if not name.startswith("TRIVIUM_TEST_")} == set(), page


def test_every_decision_has_its_parts() -> None:
    for page in (ROOT / "docs" / "decisions").glob("*.md"):
        text = page.read_text("utf-8")
        assert "**Context.**" in text, page
        assert re.search(r"\*\*Decisions?\.\*\*", text), page
        assert len(text.split()) <= 300, page


def test_the_readme_is_short() -> None:
    assert (ROOT / "README.md").read_text("utf-8").count("\n") <= 150
