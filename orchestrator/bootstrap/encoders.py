"""The encoders of documents and queries."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import dataclass

from adapters.encoders.address import Encoder, encoder
from adapters.encoders.documents import DocumentVectors
from adapters.encoders.function import MAX_CALLS, FunctionEncoder
from adapters.encoders.minilm import MiniLM
from adapters.encoders.static_encoder_file import StaticEncoderFile
from adapters.encoders.tokens import Tokens
from adapters.ports.daemon_threads import DaemonThreads
from orchestrator.retrieval.query_encoder import QueryEncoders
from orchestrator.settings.groups import Settings

STATIC_ENCODER_FILE = "static-encoder.bin"
"""Name of the file in the data folder."""


@dataclass(frozen=True, slots=True)
class Encoding:
    """What makes vectors and measures texts.

    :param model: encodes queries and texts.
    :param static: the static encoder of the data folder, if there is one.
    """

    model: Encoder
    documents: DocumentVectors
    tokens: Tokens
    static: StaticEncoderFile


def open_encoding(settings: Settings) -> Encoding:
    """What the settings name. Blocks: a model is loaded.

    :raises Unavailable: if the model cannot be read, or a function cannot be imported or fails.
    :raises Rejected: if what a function returns are no vectors.
    """
    model = encoder(settings.encoding.embedder)
    tokens = model.tokens if isinstance(model, MiniLM) else Tokens()
    static = StaticEncoderFile(settings.storage.data_dir / STATIC_ENCODER_FILE, tokens.tokenizer, model.identity)
    return Encoding(model, _documents(settings, model), tokens, static)


def open_document_vectors(settings: Settings) -> DocumentVectors:
    """What encodes documents. Blocks, and raises errors, as :func:`open_encoding`."""
    return _documents(settings, encoder(settings.encoding.embedder))


def _documents(settings: Settings, model: Encoder) -> DocumentVectors:
    return DocumentVectors(model, settings.encoding.embedding_text)


def query_encoders(encoding: Encoding, has_servers: bool, stack: AsyncExitStack) -> QueryEncoders:
    """The encoders of a service. The model runs on the event loop, unless searches wait for servers, or it is not ours:
    then it may take any time.

    :param has_servers: whether they do: then the event loop has other work while the model runs in a thread.
    :param stack: ends the thread.
    """
    model = encoding.model
    if isinstance(model, FunctionEncoder):
        return QueryEncoders(model, encoding.static, thread=DaemonThreads(model.identity, MAX_CALLS))
    if not has_servers:
        return QueryEncoders(model, encoding.static)
    thread = ThreadPoolExecutor(1, thread_name_prefix="query-encoder")
    stack.callback(thread.shutdown, wait=False)
    return QueryEncoders(model, encoding.static, thread=thread)
