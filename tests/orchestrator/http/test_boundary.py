"""The end of a process while requests are running."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from orchestrator.http.endpoint import RequestBoundary

pytestmark = pytest.mark.anyio


async def test_a_request_that_is_cancelled_at_the_end_gets_a_problem_in_json() -> None:
    """uvicorn cancels what runs longer than the grace time, and would answer "Internal Server Error"."""

    async def cancelled(scope: Scope, receive: Receive, send: Send) -> None:
        raise asyncio.CancelledError

    app = SimpleNamespace(state=SimpleNamespace(draining=True, service=None))
    scope: dict[str, Any] = {"type": "http", "method": "GET", "path": "/", "headers": [], "state": {}, "app": app}
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    with pytest.raises(asyncio.CancelledError):
        await RequestBoundary(cancelled)(scope, receive, send)
    assert sent[0]["status"] == 503
    assert json.loads(sent[1]["body"])["detail"] == "the service is stopping: try again"
