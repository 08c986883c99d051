"""Fusion strategies by name: the one table. A strategy prints itself as it is written: ``rrf(k=60)``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from fusion.concatenate import Concatenate
from fusion.fused import Fused
from fusion.joint import JointWalk
from fusion.ranking import DocId, Ranking
from fusion.rrf import RRF
from fusion.scores import dbsf, relative_score, weighted_sum


class Strategy(Protocol):
    """Rankings in, one ranking out. Pure; ``str()`` of it is what :func:`parse` reads."""

    def __call__(self, rankings: Sequence[Ranking], weights: Mapping[str, float]) -> Fused:
        """All documents of all rankings, best first; the order of ``rankings`` must not matter."""
        ...


@runtime_checkable
class TwoRounds(Strategy, Protocol):
    """A strategy that has one source asked after the others, to start from what they found."""

    @property
    def follows(self) -> str:
        """That source."""
        ...

    def start(self, rankings: Sequence[Ranking], weights: Mapping[str, float]) -> tuple[DocId, ...]:
        """What it is to start from, the best first, given the answers of the others."""
        ...


STRATEGIES: Mapping[str, Callable[..., Strategy]] = {
    "concatenate": Concatenate,
    "dbsf": dbsf,
    "joint_walk": JointWalk,
    "relative_score": relative_score,
    "rrf": RRF,
    "weighted_sum": weighted_sum,
}

_WRITTEN = re.compile(r"\s*([a-z_]+)\s*(?:\(\s*(.*?)\s*\))?\s*")
_ARGUMENT = re.compile(r"([a-z_]+)\s*=\s*(-?\d+)")


def parse(written: str) -> Strategy:
    """Read ``name`` or ``name(key=integer, …)``.

    :raises ValueError: if the name, a key or a value is not allowed; the message says what is.
    """
    match = _WRITTEN.fullmatch(written)
    name = match.group(1) if match else written
    if match is None or name not in STRATEGIES:
        raise ValueError(f"unknown fusion strategy {written[:80]!r}, allowed are {', '.join(_examples())}")
    arguments: dict[str, int] = {}
    for part in filter(None, (match.group(2) or "").split(",")):
        argument = _ARGUMENT.fullmatch(part.strip())
        if argument is None:
            raise ValueError(f"{name}: {part.strip()[:40]!r} is not of the form key=integer")
        arguments[argument.group(1)] = int(argument.group(2))
    try:
        return STRATEGIES[name](**arguments)
    except TypeError:
        raise ValueError(f"{name}: {written[:80]!r} has an unknown key, write {STRATEGIES[name]()}") from None


def _examples() -> list[str]:
    return [str(strategy()) for strategy in STRATEGIES.values()]
