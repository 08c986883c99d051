"""Vectors of programs, which are arrays of numpy and the like, as the lists that JSON has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


def as_list(value: Any) -> Any:
    """An array as a list, one of its numbers as a number: what msgspec calls for a type that it does not know.

    :raises NotImplementedError: if it is something else.
    """
    if callable(to_list := getattr(value, "tolist", None)):
        return to_list()
    raise NotImplementedError(f"a value is of the type {type(value).__name__}, which JSON does not have")


def with_lists(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields with lists and numbers instead of arrays and their numbers."""
    return {name: _plain(value) for name, value in fields.items()}


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, list | tuple) and any(hasattr(each, "tolist") for each in value):
        return [_plain(each) for each in value]
    return value


ENCODER = msgspec.json.Encoder(enc_hook=as_list)
"""Encodes what a program gives."""
