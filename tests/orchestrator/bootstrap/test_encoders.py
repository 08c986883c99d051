from __future__ import annotations

import threading
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from adapters.encoders.documents import DocumentVectors
from adapters.encoders.minilm import MiniLM
from adapters.encoders.static_encoder_file import StaticEncoderFile
from orchestrator.bootstrap.encoders import Encoding, query_encoders

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    "has_servers",
    [True, False],
)
async def test_the_model_runs_in_a_thread_if_searches_wait_for_servers(
    tmp_path: Path, model: MiniLM, has_servers: bool
) -> None:
    static = StaticEncoderFile(tmp_path / "table", model.tokens.tokenizer, model.identity)
    before = set(threading.enumerate())
    async with AsyncExitStack() as stack:
        encoders = query_encoders(Encoding(model, DocumentVectors(model), model.tokens, static), has_servers, stack)
        await encoders.encode("a query", "model", "one")
        started = set(threading.enumerate()) - before
        assert encoders.waits is has_servers
        assert len(started) == has_servers
    for thread in started:  # ended with the stack
        thread.join(5)
        assert not thread.is_alive()
