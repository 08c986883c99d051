"""``POST /v1/search/batch``: lines in, lines out, in order and at the same time."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress

from fastapi import APIRouter
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from orchestrator.execution.stage_results import AllSourcesFailed
from orchestrator.http.batch_lines import encoded_line
from orchestrator.http.byte_budget import HeldBytes
from orchestrator.http.endpoint import serves
from orchestrator.http.errors import HttpError
from orchestrator.http.request_context import HttpContext
from orchestrator.http.routes import NDJSON, SEARCH_BATCH
from orchestrator.service.batch import Outcome, split_lines
from orchestrator.service.response_cache import EncodedResponse

router = APIRouter()


@serves(router, SEARCH_BATCH)
async def search_batch(context: HttpContext) -> Response:
    """Search for each line."""
    return _Lines(context)


class _Lines(Response):
    """The response while the request is received. A client that reads slowly slows it down, one that leaves ends it."""

    def __init__(self, context: HttpContext) -> None:
        super().__init__(media_type=NDJSON)
        del self.headers["content-length"]
        self._context = context
        self._counts: Counter[int] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        del scope, receive  # the context has them
        context = self._context
        context.streams = True
        context.cancel_on_disconnect()
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})

        async def write(line: tuple[bytes, HeldBytes]) -> None:
            content, held = line
            try:
                await send({"type": "http.response.body", "body": content, "more_body": True})
            finally:
                held.give_back()

        lines = split_lines(context.request.stream())
        try:
            with suppress(ClientDisconnect):
                await context.service.batch.run(lines, context.principal, context.request_id, self._finished, write)
        finally:
            context.log_fields.update(lines=self._counts.total(), statuses=dict(sorted(self._counts.items())))
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _finished(self, number: int, outcome: Outcome) -> tuple[bytes, HeldBytes]:
        """A line of the response, whose bytes are held until it is written."""
        context = self._context
        held = HeldBytes(context.byte_budgets.responses, context.principal.scope.tenant)
        if isinstance(outcome, EncodedResponse):
            context.request.app.state.metrics.record_search(outcome)
            try:
                held.grow_to(len(outcome.content))
            except HttpError as error:
                outcome = error
        elif isinstance(outcome, AllSourcesFailed):
            context.request.app.state.metrics.record_failed_search(outcome)
        status, line = encoded_line(number, outcome, context.request_id)
        self._counts[status] += 1
        return line, held
