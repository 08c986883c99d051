"""The encoders of queries."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack

from adapters.encoders.minilm import MiniLM
from adapters.encoders.static_encoder_file import StaticEncoderFile
from orchestrator.retrieval.query_encoder import QueryEncoders
from orchestrator.settings.groups import Settings


def open_static_encoder(settings: Settings, model: MiniLM) -> StaticEncoderFile:
    """The static encoder of the data folder, if there is one."""
    return StaticEncoderFile(settings.storage.data_dir / "static-encoder.bin", model.tokenizer, model.identity)


def query_encoders(model: MiniLM, static: StaticEncoderFile, has_servers: bool, stack: AsyncExitStack) -> QueryEncoders:
    """The encoders of a service. The model runs on the event loop, unless searches wait for servers.

    :param has_servers: whether they do: then the event loop has other work while the model runs in a thread.
    :param stack: ends the thread.
    """
    if not has_servers:
        return QueryEncoders(model, static)
    thread = ThreadPoolExecutor(1, thread_name_prefix="query-encoder")
    stack.callback(thread.shutdown, wait=False)
    return QueryEncoders(model, static, thread=thread)
