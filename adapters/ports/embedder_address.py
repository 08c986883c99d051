"""The addresses of what encodes documents and queries."""

from __future__ import annotations

import re

from adapters.model.vectors import MAX_DIMENSION
from adapters.ports import plugin

MINILM, NONE = "minilm://", "none://"
FORMS = f"{MINILM}, {NONE}DIMENSION (1 to {MAX_DIMENSION}), {plugin.FORM}"


def check(address: str) -> None:
    """Validate the address of an encoder.

    :raises ValueError: if it has none of the forms :data:`FORMS`.
    """
    if address != MINILM and given_dimension(address) is None and not re.fullmatch(plugin.PATTERN, address):
        raise ValueError(f"{address!r} is not an encoder, allowed are {FORMS}")


def given_dimension(address: str) -> int | None:
    """The length of the vectors that users bring; ``None`` if texts are encoded."""
    found = re.fullmatch(rf"{NONE}([1-9][0-9]{{0,3}})", address)
    return int(found[1]) if found and int(found[1]) <= MAX_DIMENSION else None
