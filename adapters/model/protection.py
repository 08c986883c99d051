"""Who may see a document: its protection, and the viewer that it is compared with."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

Sensitivity: TypeAlias = Literal["public", "normal", "sensitive", "restricted"]
SENSITIVITIES: tuple[Sensitivity, ...] = ("public", "normal", "sensitive", "restricted")
"""All sensitivities, from the least to the most protected. A caller sees documents up to its own clearance."""
HIGHEST_CLEARANCE: Sensitivity = SENSITIVITIES[-1]
"""The clearance of a caller that sees documents of every sensitivity."""
Visibility: TypeAlias = Literal["tenant", "team", "private"]
VISIBILITIES: tuple[Visibility, ...] = ("tenant", "team", "private")
"""Who may see a document beside its owner: all callers of its tenant, its team, or no others."""

MAX_NAME_BYTES = 512
ALLOWED_NAMES = f"allowed are names of 1 to {MAX_NAME_BYTES} bytes without a comma, and without white space around them"

_VISIBLE: Mapping[Sensitivity, tuple[Sensitivity, ...]] = {
    clearance: SENSITIVITIES[index::-1] for index, clearance in enumerate(SENSITIVITIES)
}


def visible_levels(clearance: Sensitivity) -> tuple[Sensitivity, ...]:
    """The sensitivities that a clearance may see, the highest first."""
    return _VISIBLE[clearance]


def is_visible(sensitivity: Sensitivity, clearance: Sensitivity) -> bool:
    """Whether a caller with this clearance may see documents of this sensitivity."""
    return SENSITIVITIES.index(sensitivity) <= SENSITIVITIES.index(clearance)


class Protection(NamedTuple):
    """What decides who may see a document of a tenant.

    :param owner: the user that it belongs to.
    :param team: the team that sees it if its visibility is ``team``.
    """

    sensitivity: Sensitivity = "normal"
    visibility: Visibility = "tenant"
    owner: str | None = None
    team: str | None = None


@dataclass(frozen=True, slots=True)
class Viewer:
    """What a caller may see in its scope. Without a user and a team it sees documents of every visibility.

    :param teams: distinct and sorted.
    """

    clearance: Sensitivity = HIGHEST_CLEARANCE
    user: str | None = None
    teams: tuple[str, ...] = ()

    @property
    def is_narrowed(self) -> bool:
        """Whether it sees only some of the private documents, and of those of teams."""
        return self.user is not None or bool(self.teams)

    @property
    def sees_everything(self) -> bool:
        """Whether no document of its scope is hidden from it."""
        return self.clearance == HIGHEST_CLEARANCE and not self.is_narrowed

    def sees(self, document: Protection) -> bool:
        """Whether it may see a document of its scope: the meaning of :func:`adapters.model.filter.access`."""
        if not is_visible(document.sensitivity, self.clearance):
            return False
        if document.visibility == "tenant" or not self.is_narrowed:
            return True
        is_own = self.user is not None and document.owner == self.user
        return is_own or (document.visibility == "team" and document.team in self.teams)

    def covers(self, other: Viewer) -> bool:
        """Whether it sees every document that another one sees."""
        if not is_visible(other.clearance, self.clearance):
            return False
        if not self.is_narrowed:
            return True
        return other.is_narrowed and other.user in {None, self.user} and set(other.teams) <= set(self.teams)


def check_name(field: str, name: str) -> str:
    """The name of a user or of a team, as headers can carry it.

    :raises ValueError: if it is empty, has white space around it, a comma or a control character, or is no Unicode or
        longer than 512 bytes of UTF-8; the message names ``field``.
    """
    size = len(name.encode("utf-8", "surrogatepass"))
    is_plain = not any(unicodedata.category(letter) in {"Cc", "Cs"} for letter in name)
    if not 1 <= size <= MAX_NAME_BYTES or name != name.strip() or "," in name or not is_plain:
        raise ValueError(f"{field}: {name[:80]!r}, {ALLOWED_NAMES}")
    return name


UNRESTRICTED = Viewer()
"""Sees every document of its scope."""
