"""How far the graph of each scope can be trusted: the measurements, as they are stored and used."""

from __future__ import annotations

from pathlib import Path

import msgspec

from adapters import Scope, Unavailable, files
from adapters.followed_file import FollowedFile

TRUST_FILE = "graph-trust.json"
"""Its name in the data folder."""


class ScopeTrust(msgspec.Struct, frozen=True):
    """The measurement of one scope.

    :param lift: how many times more often than by chance a walk finds documents that vectors find, too; the median.
    :param walks: number of walks that were measured.
    """

    tenant: str
    environment: str
    lift: float
    walks: int

    @property
    def graph_weight_factor(self) -> float:
        """The factor on the weight of the graph: 0 up to twice chance, 1 from three times on."""
        return min(max(self.lift - 2.0, 0.0), 1.0)


class TrustMeasurements(msgspec.Struct, frozen=True):
    """All scopes, and the generation of the index that was measured; -1 if none was."""

    generation: int
    scopes: list[ScopeTrust]


_NONE = TrustMeasurements(-1, [])


class GraphTrust:
    """The measurements at ``path``, read again when they change.

    They are separate for each scope: the documents of one tenant must not change the results of another.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._by_scope: dict[Scope, ScopeTrust] = {}
        self._file = FollowedFile(path, _read, _NONE)
        self.refresh()

    @property
    def generation(self) -> int:
        """Of the index that was measured; -1 if none was."""
        return self._file.value.generation

    def of_scope(self, scope: Scope) -> ScopeTrust | None:
        """The measurement of a scope, if there is one."""
        return self._by_scope.get(scope)

    def weight_factor(self, scope: Scope) -> float:
        """The factor on the default weight of the graph; 1 for a scope that was not measured."""
        trust = self.of_scope(scope)
        return 1.0 if trust is None else trust.graph_weight_factor

    def refresh(self) -> None:
        """Read the file if it has changed.

        :raises Unavailable: if it is damaged.
        """
        if self._file.refresh():
            self._by_scope = {Scope(each.tenant, each.environment): each for each in self._file.value.scopes}

    def save(self, measurements: TrustMeasurements) -> None:
        """Store new measurements."""
        files.replace(self._path, msgspec.json.encode(measurements))
        self.refresh()


def _read(path: Path) -> TrustMeasurements:
    """The file's content; one that an older release wrote in another format counts as no measurement."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=TrustMeasurements)
    except msgspec.ValidationError:
        return _NONE
    except msgspec.DecodeError as error:
        raise Unavailable(f"{path} is damaged, remove it: {error}") from error
