"""Fusion strategies by name. A strategy prints itself as it is written: ``rrf(k=60)``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Protocol, runtime_checkable

from fusion.columns import Candidates
from fusion.concatenate import Concatenate
from fusion.joint_walk import JointWalk
from fusion.rank_fields import Ints
from fusion.rrf import RRF
from fusion.scores import dbsf, relative_score, weighted_sum
from fusion.source import Sources
from fusion.sums import Fused


class Strategy(Protocol):
    """Candidates in, one order out. Pure; :func:`parse` reads what ``str()`` of it prints."""

    def __call__(self, candidates: Candidates, weights: Mapping[str, float], sources: Sources) -> Fused:
        """All candidates, best first."""
        ...


@runtime_checkable
class SeededStrategy(Strategy, Protocol):
    """A strategy with two stages: the sources of stage 2 start from the results of the sources of stage 1."""

    def seeds(self, candidates: Candidates, weights: Mapping[str, float], sources: Sources) -> Ints:
        """Rows of the candidates of stage 1 that stage 2 starts from, best first."""
        ...


def _joint_walk(base: int = 4, slope: int = 12, seeds: int = 50) -> JointWalk:
    return JointWalk(base, slope, seeds)


STRATEGIES: Mapping[str, Callable[..., Strategy]] = {
    "concatenate": Concatenate,
    "dbsf": dbsf,
    "joint_walk": _joint_walk,
    "relative_score": relative_score,
    "rrf": RRF,
    "weighted_sum": weighted_sum,
}

_FORM = re.compile(r"\s*([a-z_]+)\s*(?:\(\s*(.*?)\s*\))?\s*")
_ARGUMENT = re.compile(r"([a-z_]+)\s*=\s*(-?\d+)")


def parse(text: str) -> Strategy:
    """Read ``name`` or ``name(key=integer, …)``.

    :raises ValueError: if the name, a key or a value is not allowed; the message lists what is.
    """
    match = _FORM.fullmatch(text)
    name = match.group(1) if match else text
    if match is None or name not in STRATEGIES:
        near = get_close_matches(name[:80].lower(), STRATEGIES, 1)
        hint = f"; the nearest is {near[0]}" if near else ""
        raise ValueError(f"unknown fusion strategy {text[:80]!r}, allowed are {', '.join(_examples())}{hint}")
    arguments: dict[str, int] = {}
    for item in filter(None, (match.group(2) or "").split(",")):
        argument = _ARGUMENT.fullmatch(item.strip())
        if argument is None:
            raise ValueError(f"{name}: {item.strip()[:40]!r} is not of the form key=integer")
        arguments[argument.group(1)] = int(argument.group(2))
    try:
        return STRATEGIES[name](**arguments)
    except TypeError:
        raise ValueError(f"{name}: {text[:80]!r} has an unknown key, write {STRATEGIES[name]()}") from None


def _examples() -> list[str]:
    return [str(strategy()) for strategy in STRATEGIES.values()]
