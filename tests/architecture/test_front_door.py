"""The files in the root that a visitor reads first, and the documentation as a site."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PAGES = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
FILES = ("LICENSE", "NOTICE", "README.md", *PAGES, "mkdocs.yml")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
SITE = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))


@pytest.mark.parametrize("name", FILES)
def test_the_root_and_the_source_distribution_have_the_file(name: str) -> None:
    assert (ROOT / name).is_file()
    assert f"/{name}" in PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]


def test_the_package_names_its_licence_and_the_files_about_it() -> None:
    assert PROJECT["project"]["license"] == "Apache-2.0"
    assert PROJECT["project"]["license-files"] == ["LICENSE", "NOTICE"]


def test_the_licence_is_complete() -> None:
    text = (ROOT / "LICENSE").read_text("utf-8")
    assert "Version 2.0, January 2004" in text
    assert "APPENDIX: How to apply the Apache License to your work." in text
    assert text.rstrip().endswith("limitations under the License.")


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name: str) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", (ROOT / name).read_text("utf-8"))
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_the_changelog_has_a_section_of_unreleased_changes_and_one_of_this_version() -> None:
    sections = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert sections[0] == "Unreleased"
    assert PROJECT["project"]["version"] in sections


def test_the_navigation_has_every_page_once() -> None:
    pages = sorted(str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md"))
    assert sorted(entries(SITE["nav"])) == pages


def test_the_site_loads_no_fonts_and_has_no_python() -> None:
    assert SITE["theme"]["font"] is False
    assert "*.py" in SITE["exclude_docs"].split()


def entries(nav: list[object] | str) -> Iterator[str]:
    """The paths in a part of the navigation: a path, or a list of paths and of titles with a part each."""
    if isinstance(nav, str):
        yield nav
        return
    for item in nav:
        for part in item.values() if isinstance(item, dict) else (item,):
            yield from entries(part)
