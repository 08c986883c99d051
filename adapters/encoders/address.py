"""The encoder at an address."""

from __future__ import annotations

from typing import TypeAlias

from adapters.encoders.function import FunctionEncoder
from adapters.encoders.given import GivenVectors
from adapters.encoders.minilm import MiniLM
from adapters.ports import plugin
from adapters.ports.embedder_address import FORMS, MINILM, given_dimension

Encoder: TypeAlias = MiniLM | GivenVectors | FunctionEncoder


def encoder(address: str) -> Encoder:
    """The encoder at an address. Blocks: a model is loaded.

    :raises ValueError: if it has none of the forms :data:`FORMS`.
    :raises Unavailable: if the model cannot be read, or a function cannot be imported or fails.
    :raises Rejected: if what a function returns are no vectors.
    """
    if address == MINILM:
        return MiniLM()
    if (dimension := given_dimension(address)) is not None:
        return GivenVectors(dimension)
    return FunctionEncoder(plugin.import_function(address, FORMS), address)
