"""Sources on servers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from adapters.ports.replica import IndexAdmin, Replica
from adapters.ports.retriever import Retriever


class ServerProbe(Protocol):
    """Requests that show whether a server is available. They raise only :class:`adapters.model.errors.AdapterError`."""

    async def release(self) -> str:
        """The software release that the server reports: its cheapest request."""
        ...

    async def clock(self) -> float | None:
        """The server's time in seconds since the epoch; ``None`` if it reports none."""
        ...

    @property
    def is_warming(self) -> bool:
        """Whether the server is preparing itself for searches, which raise :class:`adapters.Warming` until then."""
        ...


@dataclass(frozen=True, slots=True)
class Difference:
    """How an existing index differs from what the settings would create, and what changes it."""

    observation: str
    advice: str


class ServerSource(Retriever, Replica, IndexAdmin, ServerProbe, Protocol):
    """A source on a server: searched, written to, created and probed through one client."""

    async def differences(self) -> Sequence[Difference]:
        """How the existing index differs from the settings of its partitioning and storage.

        :raises AdapterError: and nothing else.
        """
        ...

    async def drop(self) -> None:
        """Delete the index with its documents, if it exists.

        :raises AdapterError: and nothing else; then some of it may be left.
        """
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...
