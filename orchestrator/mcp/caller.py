"""Who calls a tool."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from orchestrator.auth.principal import Principal
from orchestrator.service.response_cache import EncodedResponse
from orchestrator.service.service import Service


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a tool, and the service that it calls.

    :param begin: called with the name of each tool that is called, for the log of the edge.
    :param record: called with the response to each search, for the log and the metrics of the edge.
    """

    service: Service
    principal: Principal
    request_id: str
    begin: Callable[[str], None] = lambda _: None
    record: Callable[[EncodedResponse], None] = lambda _: None
