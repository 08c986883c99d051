"""Where references lead."""

from __future__ import annotations

import pytest

from adapters.graph.names import normalize
from orchestrator.indexing.folder.links import Resolver
from orchestrator.indexing.markdown import Reference

IDS = [
    "docs/README.md",
    "docs/a.md",
    "docs/guide/index.html",
    "docs/guide/install.md",
    "docs/guide/a.md",
    "docs/api/Client Class.rst",
]
RESOLVER = Resolver(IDS, {"docs/logo.png"}, {"docs/guide/install.md": ("How to install", "Setup guide")}, normalize)


@pytest.mark.parametrize(
    ("source", "address", "target"),
    [
        ("docs/a.md", "guide/install.md", "docs/guide/install.md"),
        ("docs/a.md", "./guide/install.md#linux", "docs/guide/install.md"),
        ("docs/a.md", "guide/install.md?raw=1", "docs/guide/install.md"),
        ("docs/guide/install.md", "../a.md", "docs/a.md"),
        ("docs/guide/install.md", "/a.md", "docs/a.md"),
        ("docs/guide/install.md", "a", "docs/guide/a.md"),
        ("docs/a.md", "guide/install.html", "docs/guide/install.md"),
        ("docs/a.md", "guide/install", "docs/guide/install.md"),
        ("docs/a.md", "guide/", "docs/guide/index.html"),
        ("docs/a.md", "guide", "docs/guide/index.html"),
        ("docs/a.md", "guide/index.html", "docs/guide/index.html"),
        ("docs/a.md", "guide/index.md", "docs/guide/index.html"),
        ("docs/guide/a.md", "..", "docs/README.md"),
        ("docs/a.md", "api/Client Class.html", "docs/api/Client Class.rst"),
        ("docs/a.md", "#part", ""),
        ("docs/a.md", "https://example.org/a.md", ""),
        ("docs/a.md", "//example.org/a.md", ""),
        ("docs/a.md", "mailto:a@example.org", ""),
        ("docs/a.md", "logo.png", ""),
        ("docs/a.md", "../../etc/passwd", ""),
        ("docs/a.md", "missing.md", None),
        ("docs/a.md", "guide/missing", None),
    ],
)
def test_addresses_lead_where_a_browser_would_go(source: str, address: str, target: str | None) -> None:
    assert RESOLVER.target(source, Reference(address, False, 0)) == target


@pytest.mark.parametrize(
    ("source", "name", "target"),
    [
        ("docs/README.md", "install", "docs/guide/install.md"),
        ("docs/README.md", "guide/install", "docs/guide/install.md"),
        ("docs/README.md", "install.md", "docs/guide/install.md"),
        ("docs/README.md", "how to install", "docs/guide/install.md"),
        ("docs/README.md", "Setup Guide", "docs/guide/install.md"),
        ("docs/README.md", "client class", "docs/api/Client Class.rst"),
        ("docs/README.md", "a", "docs/a.md"),
        ("docs/guide/install.md", "a", "docs/guide/a.md"),
        ("docs/README.md", "nothing like it", None),
    ],
)
def test_names_lead_to_the_nearest_file(source: str, name: str, target: str | None) -> None:
    assert RESOLVER.target(source, Reference(name, True, 0)) == target


@pytest.mark.parametrize("text", ["guide/install.md", "[[install]]", "How to install", "[[install|the guide]]"])
def test_related_files_are_named_in_any_way(text: str) -> None:
    assert RESOLVER.related("docs/a.md", text) == "docs/guide/install.md"


@pytest.mark.parametrize(
    ("id_", "folder"),
    [
        ("docs/a.md", "docs/README.md"),
        ("docs/guide/install.md", "docs/guide/index.html"),
        ("docs/guide/index.html", "docs/README.md"),
        ("docs/api/Client Class.rst", "docs/README.md"),
        ("docs/README.md", None),
    ],
)
def test_a_file_is_a_part_of_its_folder(id_: str, folder: str | None) -> None:
    assert RESOLVER.folder_of(id_) == folder
