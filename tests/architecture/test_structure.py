from __future__ import annotations

import ast
import importlib
import re
from importlib.metadata import packages_distributions
from pathlib import Path

import grimp
import networkx as nx
import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("orchestrator", "adapters", "cache", "fusion")


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph(*PACKAGES)


def test_no_import_goes_in_a_circle(graph: grimp.ImportGraph) -> None:
    imports = nx.DiGraph(
        (module, imported) for module in graph.modules for imported in graph.find_modules_directly_imported_by(module)
    )
    assert [sorted(each) for each in nx.strongly_connected_components(imports) if len(each) > 1] == []


def test_no_inner_module_imports_its_own_face(graph: grimp.ImportGraph) -> None:
    for package in PACKAGES:
        for module in graph.find_descendants(package):
            assert package not in graph.find_modules_directly_imported_by(module), module


@pytest.mark.parametrize("package", ["adapters", "adapters.embedded", "cache", "fusion"])
def test_a_face_lists_what_it_shows_in_order(package: str) -> None:
    module = importlib.import_module(package)
    assert list(module.__all__) == sorted(module.__all__, key=lambda name: (not name.isupper(), name))
    assert all(hasattr(module, name) for name in module.__all__)


@pytest.mark.parametrize("package", PACKAGES)
def test_the_packages_are_ours_alone(package: str) -> None:
    """An editable installation is not listed; a wheel is, and nobody else may be."""
    assert set(packages_distributions().get(package, ["trivium"])) == {"trivium"}
    assert (ROOT / package / "py.typed").exists()


def test_only_wiring_names_concrete_adapters(graph: grimp.ImportGraph) -> None:
    rooms = re.compile(r"adapters\.(vector|keyword|graph|embed|embedded)(\..*)?")
    concrete = {module for module in graph.modules if rooms.fullmatch(module)}
    assert concrete
    for module in graph.find_descendants("orchestrator") - graph.find_descendants("orchestrator.wiring"):
        assert not concrete & graph.find_modules_directly_imported_by(module), module


def sources() -> list[Path]:
    return sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def test_nothing_is_validated_with_assert() -> None:
    for path in sources():
        assert not [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Assert)], path


def test_no_file_is_too_long_to_hold_in_mind() -> None:
    assert {path.name: lines for path in sources() if (lines := path.read_text().count("\n")) > 330} == {}


def test_the_architecture_names_files_that_are_there() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    named = re.findall(r"`((?:orchestrator|adapters|cache|fusion|docs|tests|benchmarks)/[\w./]+)`", text)
    assert len(named) > 20
    assert [name for name in named if not (ROOT / name).exists()] == []
