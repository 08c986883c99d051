from __future__ import annotations

import multiprocessing
import threading
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from adapters.encoders.minilm import MiniLM
from adapters.encoders.static_encoder_file import StaticEncoderFile
from orchestrator.bootstrap.encoders import query_encoders

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("is_worker", "has_servers", "in_thread"),
    [(False, False, True), (False, True, True), (True, True, True), (True, False, False)],
)
async def test_the_model_runs_in_a_thread_unless_several_processes_compute(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    model: MiniLM,
    is_worker: bool,
    has_servers: bool,
    in_thread: bool,
) -> None:
    monkeypatch.setattr(
        multiprocessing, "parent_process", lambda: multiprocessing.current_process() if is_worker else None
    )
    static = StaticEncoderFile(tmp_path / "table", model.tokenizer, model.identity)
    before = set(threading.enumerate())
    async with AsyncExitStack() as stack:
        encoders = query_encoders(model, static, has_servers, stack)
        await encoders.encode("a query", "model", "one")
        started = set(threading.enumerate()) - before
        assert encoders.waits is in_thread
        assert len(started) == in_thread
    for thread in started:  # ended with the stack
        thread.join(5)
        assert not thread.is_alive()
