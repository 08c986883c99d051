"""Who asks: whose documents it may see, and up to which sensitivity."""

from __future__ import annotations

from dataclasses import dataclass

from adapters import Scope, Sensitivity


@dataclass(frozen=True, slots=True)
class Caller:
    """A scope and a clearance."""

    scope: Scope
    clearance: Sensitivity
