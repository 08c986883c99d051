"""Checks the indexes on the servers when a service starts, and creates missing ones."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from adapters import AdapterError, VersionMismatch
from adapters.ports.server import ServerSource
from orchestrator.retrieval.build_check import BuildCheckedRetriever

_log = logging.getLogger(__name__)

_TIMEOUT_S = 2.0
"""Time limit of a server: an unavailable one must not delay the start. Its index is created with the first write."""


async def prepare_servers(
    servers: Mapping[str, ServerSource], checks: Mapping[str, BuildCheckedRetriever], strict: bool
) -> None:
    """Check the index of every server, concurrently, and create those that do not exist.

    :param checks: by source, as ``servers``.
    :param strict: whether an index of another build is an error.
    :raises VersionMismatch: if ``strict``, and an index is of another build. An unavailable server is only logged.
    """
    preparing = (_prepare(source, servers[source], check, strict) for source, check in checks.items())
    for error in await asyncio.gather(*preparing, return_exceptions=True):
        if error is not None:
            raise error


async def _prepare(source: str, server: ServerSource, check: BuildCheckedRetriever, strict: bool) -> None:
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            await check.check()
            if not check.mismatch or strict:  # if strict, this raises the mismatch
                await server.create()
    except VersionMismatch:
        raise
    except TimeoutError:
        _log.warning("the %s source is unavailable: no response within %g s", source, _TIMEOUT_S)
    except AdapterError as error:
        _log.warning("the %s source is unavailable: %s", source, error.for_operators)
    except Exception:
        # A defect in one adapter must not stop the start; the log has the trace.
        _log.exception("preparing the %s source failed", source)
