"""From settings to a service. Nothing outside this room names a concrete adapter."""

from orchestrator.wiring.backends import opened
from orchestrator.wiring.service import Service

__all__ = ["Service", "opened"]
