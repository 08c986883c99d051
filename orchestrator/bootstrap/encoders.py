"""The encoders of queries."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack

from adapters.embed.minilm import MiniLM
from adapters.embed.static_encoder_file import StaticEncoderFile
from orchestrator.retrieval.query_encoder import QueryEncoders
from orchestrator.settings.groups import Settings


def open_static_encoder(settings: Settings, model: MiniLM) -> StaticEncoderFile:
    """The static encoder of the data folder, if there is one."""
    return StaticEncoderFile(settings.storage.data_dir / "query-table.bin", model.tokenizer, model.identity)


class StaticEncoderReport:
    """See :class:`orchestrator.service.health.StaticEncoderHealth`."""

    def __init__(self, file: StaticEncoderFile) -> None:
        self._file = file

    def agreement(self) -> float | None:
        """See :class:`orchestrator.service.health.StaticEncoderHealth`."""
        return None if self._file.encoder is None else self._file.encoder.agreement


def query_encoders(model: MiniLM, static: StaticEncoderFile, has_servers: bool, stack: AsyncExitStack) -> QueryEncoders:
    """The encoders of a service. The model runs in a thread, except where several processes compute on the same
    processors.

    :param has_servers: whether searches wait for servers: then the event loop has other work while the model runs.
    :param stack: ends the thread.
    """
    if not has_servers and multiprocessing.parent_process():
        return QueryEncoders(model, static)
    thread = ThreadPoolExecutor(1, thread_name_prefix="query-encoder")
    stack.callback(thread.shutdown, wait=False)
    return QueryEncoders(model, static, thread=thread)
