"""What import contracts cannot express: circles, chains, faces, rooms, lengths of files."""

from __future__ import annotations

import ast
import importlib
import re
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import grimp
import networkx as nx
import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("trivium", "orchestrator", "adapters", "cache", "fusion")
ROOMS = sorted(path.name for path in (ROOT / "orchestrator").iterdir() if (path / "__init__.py").exists())
MAX_ROOMS, MAX_LAYERS, MAX_CHAIN = 20, 10, 25


@pytest.fixture(scope="module")
def modules() -> grimp.ImportGraph:
    return grimp.build_graph(*PACKAGES, cache_dir=None)  # its cache does not notice every change


@pytest.fixture(scope="module")
def imports(modules: grimp.ImportGraph) -> nx.DiGraph:
    return nx.DiGraph(
        (module, imported)
        for module in modules.modules
        for imported in modules.find_modules_directly_imported_by(module)
    )


def test_no_import_circle(imports: nx.DiGraph) -> None:
    assert [sorted(each) for each in nx.strongly_connected_components(imports) if len(each) > 1] == []


def test_the_longest_import_chain_is_short(imports: nx.DiGraph) -> None:
    chain = nx.dag_longest_path(imports)
    assert len(chain) <= MAX_CHAIN, " -> ".join(chain)


def test_there_are_few_rooms_on_few_layers() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (rooms,) = (contract for contract in contracts if contract.get("containers") == ["orchestrator"])
    named = [room.strip() for layer in rooms["layers"] for room in layer.split("|")]
    assert sorted(named) == ROOMS
    assert len(named) <= MAX_ROOMS
    assert len(rooms["layers"]) <= MAX_LAYERS


def test_only_the_face_is_outside_the_rooms() -> None:
    assert {path.name for path in (ROOT / "orchestrator").iterdir() if path.is_file()} == {
        "__init__.py",
        "__main__.py",
        "py.typed",
    }


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_says_what_it_contains_and_what_not(room: str) -> None:
    docstring = importlib.import_module(f"orchestrator.{room}").__doc__ or ""
    assert "Here:" in docstring
    assert "Not here:" in docstring


@pytest.mark.parametrize("room", ROOMS)
def test_the_tests_mirror_the_rooms(room: str) -> None:
    assert list((ROOT / "tests" / "orchestrator" / room).glob("test_*.py"))


def test_no_inner_module_imports_the_face_of_its_package(modules: grimp.ImportGraph) -> None:
    for package in PACKAGES:
        for module in modules.find_descendants(package):
            assert package not in modules.find_modules_directly_imported_by(module), module


@pytest.mark.parametrize("package", ["adapters", "adapters.engine", "adapters.ports", "cache", "trivium"])
def test_a_face_lists_its_names_in_order(package: str) -> None:
    module = importlib.import_module(package)
    assert list(module.__all__) == sorted(module.__all__, key=lambda name: (not name.isupper(), name))
    assert all(hasattr(module, name) for name in module.__all__)


@pytest.mark.parametrize("package", PACKAGES)
def test_the_packages_belong_to_this_distribution_alone(package: str) -> None:
    """An editable installation is not listed, a wheel is; no other distribution may be."""
    assert set(packages_distributions().get(package, ["trivium"])) == {"trivium"}
    assert (ROOT / package / "py.typed").exists()


def test_only_bootstrap_imports_implementations(modules: grimp.ImportGraph) -> None:
    pattern = re.compile(r"adapters\.(vector|keyword|graph|encoders|engine)(\..*)?")
    implementations = {module for module in modules.modules if pattern.fullmatch(module)}
    assert implementations
    for module in modules.find_descendants("orchestrator") - modules.find_descendants("orchestrator.bootstrap"):
        assert not implementations & modules.find_modules_directly_imported_by(module), module


def source_files() -> list[Path]:
    return sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


WIRE_NAMES = {"orchestrator/schema/search.py", "orchestrator/schema/constraints.py"}
"""Names of the contract: modes, and the fields ``vector`` of a request."""
ROLE = "fusion/source.py"
"""``graph`` is a role there, not a name."""


@pytest.mark.parametrize("package", ["fusion", *(f"orchestrator/{room}" for room in ROOMS if room != "bootstrap")])
def test_no_stage_names_a_source(package: str) -> None:
    """A source is described once, in ``adapters/model/sources.py``."""
    names = {
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sorted((ROOT / package).rglob("*.py"))
        if str(path.relative_to(ROOT)) not in {ROLE, *WIRE_NAMES}
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and node.value in {"vector", "graph", "keyword"}
    }
    assert names == set()


def test_no_module_is_named_like_a_function_in_it() -> None:
    """``from fusion import boost`` must not depend on what was imported before."""
    named = [
        str(path.relative_to(ROOT))
        for path in source_files()
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == path.stem
    ]
    assert named == []


def test_nothing_is_validated_with_assert() -> None:
    for path in source_files():
        assert not [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Assert)], path


def test_no_file_is_too_long() -> None:
    assert {path.name: lines for path in source_files() if (lines := path.read_text().count("\n")) > 330} == {}
