"""What is private to another distribution is used in three files, each for releases that it was tested with."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import sys
import tomllib
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("trivium", "orchestrator", "adapters", "cache", "fusion")
FENCED = {
    "adapters/graph/bounded_bolt.py": "neo4j",
    "cache/bounded_redis.py": "redis",
    "orchestrator/http/protocol.py": "uvicorn",
}
"""The files that use private parts, and the distribution of each."""


OF_FRAMEWORKS = {f"orchestrator.client.{name}" for name in ("haystack", "langchain", "llama_index")}
"""What these import is not installed for development; the methods that they override are made for that."""


def source_files() -> list[Path]:
    return sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def private_imports(path: Path) -> list[str]:
    """Names with an underscore that a file imports from another distribution."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        names = [f"{node.module}.{each.name}" for each in node.names] if isinstance(node, ast.ImportFrom) else []
        names += [each.name for each in node.names] if isinstance(node, ast.Import) else []
        found += [name for name in names if name.partition(".")[0] not in {*PACKAGES, "__future__"}]
    return [name for name in found if any(part.startswith("_") for part in name.split("."))]


def test_private_names_are_imported_in_fenced_files_only() -> None:
    importing = {str(path.relative_to(ROOT)) for path in source_files() if private_imports(path)}
    assert importing <= FENCED.keys()


def modules() -> list[ModuleType]:
    names = [
        module.name
        for package in PACKAGES
        for module in pkgutil.walk_packages([str(ROOT / package)], f"{package}.")
        if not module.name.endswith("__main__") and module.name not in OF_FRAMEWORKS
    ]
    return [importlib.import_module(name) for name in names]


def test_private_methods_are_overridden_in_fenced_files_only() -> None:
    overriding = {
        Path(inspect.getfile(kind)).relative_to(ROOT).as_posix()
        for module in modules()
        for kind in vars(module).values()
        if inspect.isclass(kind) and kind.__module__ == module.__name__
        for base in kind.__mro__[1:]
        if base.__module__.partition(".")[0] not in {*PACKAGES, *sys.stdlib_module_names}
        for name in vars(kind)
        if re.match(r"_(?!_|abc_impl)", name) and name in vars(base)
    }
    assert overriding <= FENCED.keys()


@pytest.mark.parametrize("distribution", sorted(FENCED.values()))
def test_the_next_release_of_a_distribution_is_excluded_until_it_is_tested(distribution: str) -> None:
    """Before the upper bound is raised, the fenced file is read again, and its tests pass on the new release."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    required = [*project["dependencies"], *chain.from_iterable(project["optional-dependencies"].values())]
    (requirement,) = {each for each in required if re.match(rf"{distribution}[=<>~]", each)}
    major, minor = (int(part) for part in version(distribution).split(".")[:2])
    assert f"<{major}.{minor + 1}" in requirement or f"=={major}.{minor}.*" in requirement
