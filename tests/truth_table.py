"""The truth table of docs/reference/visibility.md."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from adapters import Document, Viewer
from adapters.model.protection import Protection

_PAGE = Path(__file__).parents[1] / "docs" / "reference" / "visibility.md"
_ROW = re.compile(r"^\| (tenant|team|private) \|(.+)\| (yes|no) \|$", re.MULTILINE)


class Row(NamedTuple):
    """One row: a document, a caller, and whether the caller sees it."""

    protection: Protection
    user: str | None
    teams: tuple[str, ...]
    is_seen: bool

    @property
    def viewer(self) -> Viewer:
        return Viewer("normal", self.user, self.teams)

    @property
    def document(self) -> Document:
        """A document with this protection; its id says which one it has."""
        fields = self.protection._asdict()
        id_ = "-".join(str(value or "none") for value in fields.values())
        return Document(id=id_, text="Alpha Centauri", entities=("Alpha Centauri",), **fields)


def _read(found: re.Match[str]) -> Row:
    owner, team, user, teams, sensitivity = (None if (v := each.strip()) == "-" else v for each in found[2].split("|"))
    protection = Protection(sensitivity, found[1], owner, team)  # type: ignore[arg-type]
    return Row(protection, user, tuple(sorted(teams.split(", "))) if teams else (), found[3] == "yes")


ROWS = [_read(found) for found in _ROW.finditer(_PAGE.read_text())]
DOCUMENTS = {row.document.id: row.document for row in ROWS}
VIEWERS = sorted({row.viewer for row in ROWS}, key=str)


def visible(viewer: Viewer) -> dict[str, bool]:
    """By id, whether the table says that a viewer sees a document; those that it does not say are left out."""
    return {row.document.id: row.is_seen for row in ROWS if row.viewer == viewer}
