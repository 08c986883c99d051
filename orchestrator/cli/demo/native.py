"""Documentation of modules that are written in C: they are imported and inspected, as they have no Python source."""

from __future__ import annotations

import importlib
import inspect
import sys
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from types import ModuleType

from orchestrator.cli.demo.definition import Definition

_NOT_IMPORTED = frozenset({"readline", "antigravity", "this"})
"""Importing these has side effects."""


def native_objects() -> Iterator[Definition]:
    """Public built-in and extension modules of this installation, their classes, methods and functions."""
    for name in sorted(sys.stdlib_module_names):
        if name.startswith("_") or name in _NOT_IMPORTED or not _is_native(name):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # deprecated modules are documented, too
            try:
                module = importlib.import_module(name)
            except ImportError:  # a library that the module needs was missing when this Python was built
                continue
        yield from _module(module)


def _is_native(name: str) -> bool:
    spec = find_spec(name)
    return spec is not None and (spec.origin in {"built-in", "frozen"} or str(spec.origin).endswith((".so", ".pyd")))


def _module(module: ModuleType) -> Iterator[Definition]:
    name = module.__name__
    public = [(each, value) for each, value in vars(module).items() if not each.startswith("_")]
    callables = [(each, value) for each, value in public if callable(value) and _is_defined_in(module, value)]
    links = [("contains", f"{name}.{each}") for each, _ in callables]
    if doc := inspect.getdoc(module):
        yield Definition(name, "module", doc, [name], links)
    for each, value in callables:
        yield from _callable(f"{name}.{each}", value)


def _is_defined_in(module: ModuleType, value: object) -> bool:
    origin = getattr(value, "__module__", None)
    return origin is None or origin in {module.__name__, f"_{module.__name__}", "builtins"}


def _callable(name: str, value: object) -> Iterator[Definition]:
    doc = inspect.getdoc(value)
    names = [name, name.removeprefix("builtins."), name.rpartition(".")[2]]
    if not inspect.isclass(value):
        if doc:
            yield Definition(name, "function", doc, names)
        return
    members = [
        (each, member)
        for each, member in vars(value).items()
        if not each.startswith("_") and callable(getattr(value, each, None)) and getattr(member, "__doc__", None)
    ]
    links = [("contains", f"{name}.{each}") for each, _ in members]
    links += [("inherits", f"{base.__module__}.{base.__qualname__}") for base in value.__bases__]
    if doc:
        yield Definition(name, "class", doc, names, links)
    for each, member in members:
        text = inspect.getdoc(member)
        if text:
            aliases = [f"{name}.{each}", f"{name.removeprefix('builtins.')}.{each}"]
            yield Definition(f"{name}.{each}", "function", text, aliases)
