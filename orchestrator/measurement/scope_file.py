"""Measurements of each scope, in a file of the data folder that every process follows."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import msgspec

from adapters import Damaged, Scope, Sensitivity
from adapters.model.protection import visible_levels
from adapters.storage import checked_file, files
from adapters.storage.followed_file import FollowedFile

_log = logging.getLogger(__name__)


class OfScope(Protocol):
    """A measurement of what may be seen of one scope at one clearance."""

    @property
    def tenant(self) -> str: ...  # noqa: D102
    @property
    def environment(self) -> str: ...  # noqa: D102
    @property
    def clearance(self) -> Sensitivity: ...  # noqa: D102


T = TypeVar("T", bound=OfScope)


class Measurements(msgspec.Struct, Generic[T], frozen=True):
    """All scopes, and the generation of the index that was measured; -1 if none was."""

    generation: int
    scopes: list[T]


class ScopeFile(Generic[T]):
    """The measurements at ``path``, read again when they change.

    They are separate for each scope and clearance: documents must not change the results of who may not see them.

    :param kind: the type of a measurement. A file of another type, of an older release, counts as no measurement, and
        so does a damaged one when the process starts; later, what was read before stays in use.
    """

    def __init__(self, path: Path, kind: type[T]) -> None:
        self.path = path
        self._kind = kind
        self._by_access: dict[tuple[Scope, Sensitivity], T] = {}
        self._file = FollowedFile(path, self._read, Measurements[T](-1, []))
        self.refresh()

    @property
    def generation(self) -> int:
        """The generation of the index that was measured; -1 if none was."""
        return self._file.value.generation

    @property
    def scopes(self) -> Sequence[T]:
        """The measurements of all scopes."""
        return self._file.value.scopes

    def measured_at(self) -> float:
        """When the file was written, in seconds since the epoch; 0 if there is none."""
        stamp = files.file_stamp(self.path)
        return 0.0 if stamp is None else stamp[0] / 1e9

    def of_scope(self, scope: Scope, clearance: Sensitivity) -> T | None:
        """The measurement of what may be seen of a scope, if there is one."""
        for level in visible_levels(clearance):
            if (found := self._by_access.get((scope, level))) is not None:
                return found
        return None

    def refresh(self) -> None:
        """Read the file if it has changed."""
        if self._file.refresh():
            self._by_access = {
                (Scope(each.tenant, each.environment), each.clearance): each for each in self._file.value.scopes
            }

    def save(self, measurements: Measurements[T]) -> None:
        """Store new measurements."""
        checked_file.write_json(self.path, measurements)
        self.refresh()

    def _read(self, path: Path) -> Measurements[T]:
        try:
            return checked_file.read_json(path, Measurements[self._kind])  # type: ignore[name-defined]
        except msgspec.ValidationError:
            return Measurements[T](-1, [])
        except Damaged as error:
            _log.error("a measurement is damaged, and is made again: %s", error.for_operators)
            return self._file.value
