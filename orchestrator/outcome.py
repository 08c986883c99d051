"""What became of one source in one request: always a value, never an exception."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from fusion import Ranking


@dataclass(frozen=True, slots=True)
class Answered:
    """The source answered in time."""

    ranking: Ranking


@dataclass(frozen=True, slots=True)
class Failed:
    """The source was asked and did not answer: late, refused or broken, as ``reason`` says."""

    source: str
    reason: str
    after_ms: float
    ours: bool = False
    """The request asked for what the source refuses: that says nothing of how the source is."""


Outcome: TypeAlias = Answered | Failed


class AllSourcesFailed(Exception):
    """No source that was asked answered; there is nothing to rank."""

    def __init__(self, failures: tuple[Failed, ...]) -> None:
        super().__init__("; ".join(f"{failed.source}: {failed.reason}" for failed in failures))
        self.failures = failures

    def __reduce__(self) -> tuple[type[AllSourcesFailed], tuple[tuple[Failed, ...]]]:
        """As it was made: it may come from another process."""
        return type(self), (self.failures,)
