"""Errors of JSON input in one line: the field, its value, what is allowed, and the nearest of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec
from msgspec import DecodeError, inspect

from adapters.model import dates

_PATH = re.compile(r" - at (`key` in )?`\$([^`]*)`$")
_STEP = re.compile(r"\.(\w+)|\[(\d+|\.\.\.)\]")
_UNKNOWN_FIELD = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_NOT_ALLOWED = re.compile(r"Invalid (?:enum )?value '?(.*?)'?", re.DOTALL)
_MAX_CHARS = 400
"""Maximum length of a message: it quotes the input, which may be long."""
_MAX_VALUE_CHARS = 80
_Path: TypeAlias = tuple[str, ...]


class InvalidInput(ValueError):
    """An input that is not of its type; the message names the field, its value and what is allowed."""


def decoded(content: bytes) -> object:
    """The value of JSON; ``UNSET`` if it has none, such as a number that is out of range."""
    try:
        return msgspec.json.decode(content)
    except (DecodeError, UnicodeDecodeError):
        return msgspec.UNSET


def describe_decode_error(
    error: DecodeError | UnicodeDecodeError, kind: type[msgspec.Struct] | None = None, content: object = msgspec.UNSET
) -> str:
    """The message for the caller that sent the input.

    :param kind: the type of the input, to list what is allowed.
    :param content: the input, decoded, to name the value.
    """
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8: unexpected byte 0x{error.object[error.start]:02x}"
    message = str(error)
    found = _PATH.search(message)
    text, at_key, path = message, False, ()
    if found:
        text, at_key = message[: found.start()], bool(found[1])
        path = tuple(step[0] or step[1] for step in _STEP.findall(found[2]))
    if unknown := _UNKNOWN_FIELD.fullmatch(text):
        advice = allowed_names(unknown[1], _fields(kind, path, content))
    elif refused := _NOT_ALLOWED.fullmatch(text):
        advice = allowed_names(refused[1], _values(kind, path, at_key))
    elif text.startswith("Invalid RFC3339"):
        advice = f"write {dates.ALLOWED}"
    elif not at_key and not text.startswith("Object missing"):
        advice = _named(_value_at(content, path))
    else:
        advice = ""
    return ", ".join(filter(None, (_printable(message), advice)))


def allowed_names(name: str, names: Sequence[str]) -> str:
    """The names that are allowed, and the nearest to ``name``; empty if there are none."""
    if not names:
        return ""
    nearest = get_close_matches(name, names, 1) if len(name) <= _MAX_VALUE_CHARS else ()
    return f"allowed are {', '.join(names)}{f'; the nearest is {nearest[0]}' if nearest else ''}"


@lru_cache(maxsize=16)
def _root(kind: type[msgspec.Struct]) -> inspect.Type:
    return inspect.type_info(kind)


def _types_at(kind: type[msgspec.Struct] | None, path: _Path) -> list[inspect.Type]:
    """The types that a value at a path of the input may have."""
    types = list(_alternatives(_root(kind))) if kind else []
    for step in path:
        types = [alternative for each in types for inner in _inside(each, step) for alternative in _alternatives(inner)]
    return types


def _alternatives(of: inspect.Type) -> Iterator[inspect.Type]:
    match of:
        case inspect.UnionType(types=types):
            for each in types:
                yield from _alternatives(each)
        case inspect.Metadata(type=inner):
            yield from _alternatives(inner)
        case _:
            yield of


def _inside(of: inspect.Type, step: str) -> Iterator[inspect.Type]:
    match of:
        case inspect.StructType(fields=fields):
            yield from (field.type for field in fields if field.encode_name == step)
        case inspect.DictType(value_type=inner) | inspect.VarTupleType(item_type=inner):
            yield inner
        case inspect.ListType(item_type=inner):
            yield inner
        case _:
            return


def _fields(kind: type[msgspec.Struct] | None, path: _Path, content: object) -> list[str]:
    """The fields of the object at a path. If its type is named by a tag, those of the tagged type."""
    found = _value_at(content, path)
    structs = [each for each in _types_at(kind, path) if isinstance(each, inspect.StructType)]
    tagged = [each for each in structs if isinstance(found, dict) and found.get(each.tag_field) == each.tag]
    names = [
        name for each in tagged or structs for name in (each.tag_field, *(field.encode_name for field in each.fields))
    ]
    return list(dict.fromkeys(name for name in names if name))


def _values(kind: type[msgspec.Struct] | None, path: _Path, at_key: bool) -> list[str]:
    """The values that are allowed at a path, where only some are; or the keys of an object."""
    types = _types_at(kind, path)
    if at_key:
        keys = [each.key_type for each in types if isinstance(each, inspect.DictType)]
        types = [alternative for each in keys for alternative in _alternatives(each)]
    literals = [str(value) for each in types if isinstance(each, inspect.LiteralType) for value in each.values]
    tagged = [each for each in _types_at(kind, path[:-1]) if isinstance(each, inspect.StructType)] if path else []
    return literals or [str(each.tag) for each in tagged if each.tag_field == path[-1]]


def _value_at(content: Any, path: _Path) -> object:
    """The value at a path, or the object where a path does not name the key; ``UNSET`` if it is not known."""
    for step in path:
        if step == "...":
            break
        if isinstance(content, dict) and step in content:
            content = content[step]
        elif isinstance(content, list | tuple) and step.isdecimal() and int(step) < len(content):
            content = content[int(step)]
        else:
            return msgspec.UNSET
    return content


def _named(value: object) -> str:
    if value is msgspec.UNSET:
        return ""
    text = msgspec.json.encode(value, enc_hook=str).decode("utf-8", "replace")
    return f"the value is {_printable(text[:_MAX_VALUE_CHARS])}{'…' * (len(text) > _MAX_VALUE_CHARS)}"


def _printable(message: str) -> str:
    """The message on one line, without control characters and without the middle of a long value."""
    if len(message) > _MAX_CHARS:
        message = f"{message[: _MAX_CHARS // 2]}…{message[-_MAX_CHARS // 2 :]}"
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in message)
