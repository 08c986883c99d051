"""``python -m docs.architecture_picture`` draws the rooms of ``orchestrator/`` into ``docs/architecture.md``.

Layers come from the import contract, imports from the code, descriptions from the docstrings. A test fails if the page
has another picture.
"""

from __future__ import annotations

import re
import tomllib
from importlib import import_module
from pathlib import Path

import grimp
import networkx as nx

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
_BLOCK = re.compile(r"(?<=<!-- drawn by: python -m docs\.architecture_picture -->\n```\n).*?(?=```\n)", re.DOTALL)
_OTHERS = ("adapters", "cache", "fusion")


def room_imports() -> nx.DiGraph:
    """An edge from each room to each room or package that it imports."""
    modules = grimp.build_graph("orchestrator", *_OTHERS)
    graph = nx.DiGraph()
    for module in modules.modules:
        for imported in modules.find_modules_directly_imported_by(module):
            importer, target = _room(module), _room(imported)
            if importer and target and importer != target:
                graph.add_edge(importer, target)
    return graph


def layers() -> list[list[str]]:
    """Rooms by layer of the import contract, the top one first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    (rooms,) = (contract["layers"] for contract in contracts if contract.get("containers") == ["orchestrator"])
    return [sorted(layer.split(" | ")) for layer in rooms]


def picture() -> str:
    """One line a room: its name, what it does, what it imports."""
    graph = room_imports()
    lines = []
    for number, layer in reversed(list(enumerate(reversed(layers()), start=1))):
        for index, room in enumerate(layer):
            below = sorted(target for target in graph.successors(room) if target not in _OTHERS)
            packages = sorted(target for target in graph.successors(room) if target in _OTHERS)
            lines.append(f"{number if index == 0 else ' '}  {room:<12} {_first_sentence(room)}")
            lines.append(f"   {'':<12} imports {', '.join([*below, *(f'{name}/' for name in packages)]) or 'none'}")
    return "\n".join(lines) + "\n"


def with_picture(page: str) -> str:
    """The page with the current picture."""
    return _BLOCK.sub(lambda _: picture(), page)


def _room(module: str) -> str | None:
    """The room, or the package outside ``orchestrator``; ``None`` for the face and ``__main__``."""
    package, _, rest = module.partition(".")
    if package in _OTHERS:
        return package
    room = rest.split(".")[0]
    return room if room and room != "__main__" else None


def _first_sentence(room: str) -> str:
    docstring = import_module(f"orchestrator.{room}").__doc__ or ""
    return " ".join(docstring.split("\n\n")[0].split())


if __name__ == "__main__":
    PAGE.write_text(with_picture(PAGE.read_text("utf-8")), "utf-8")
