"""Errors of JSON input in one line: the field, its value, what is allowed, and the nearest of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from math import isfinite
from typing import Any, TypeAlias

import msgspec
from msgspec import DecodeError, inspect

from adapters.model import dates
from adapters.model.spelling import allowed_names

_PATH = re.compile(r" - at (`key` in )?`\$([^`]*)`$")
_STEP = re.compile(r"\.(\w+)|\[(\d+|\.\.\.)\]")
_ANY_KEY = "..."
"""The step of a path that msgspec writes for a key of an object that is no field."""
_UNKNOWN_FIELD = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_MISSING_FIELD = re.compile(r"Object missing required field `(.*)`")
_NOT_ALLOWED = re.compile(r"Invalid (?:enum )?value '?(.*?)'?", re.DOTALL)
_MALFORMED = re.compile(r"JSON is malformed: .* \(byte (\d+)\)")
_MAX_EXACT = 2**53
"""Larger numbers with a fraction are not exact."""
_MAX_CHARS = 1_000
"""Maximum length of a message: it quotes the input, which may be long."""
_MAX_VALUE_CHARS = 80
_MAX_KEYS = 1_024
"""Keys of an object that are looked at to find the one with the wrong value."""
_Path: TypeAlias = tuple[str, ...]


class InvalidInput(ValueError):
    """An input that is not of its type; the message names the field, its value and what is allowed."""


def decoded(content: bytes) -> object:
    """The value of JSON; ``UNSET`` if it has none, such as a number that is out of range."""
    try:
        return msgspec.json.decode(content)
    except (DecodeError, UnicodeDecodeError):
        return msgspec.UNSET


def with_whole_numbers(fields: object) -> object:
    """The fields of an object with ``10`` for ``10.0``: JSON has one kind of number (RFC 8259, section 6)."""
    if not isinstance(fields, Mapping):
        return fields
    return {
        name: int(value) if isinstance(value, float) and value.is_integer() and abs(value) <= _MAX_EXACT else value
        for name, value in fields.items()
    }


def syntax_error(content: bytes) -> DecodeError | None:
    """Why a text is not JSON; ``None`` if it is, or if it has a number that is out of range.

    The error of a type comes before it, where the text ends in what is no JSON.
    """
    try:
        msgspec.json.decode(content, type=msgspec.Raw)
    except DecodeError as error:
        return error
    return None


def describe_decode_error(
    error: DecodeError | UnicodeDecodeError, kind: type[msgspec.Struct] | None = None, content: object = msgspec.UNSET
) -> str:
    """The message for the caller that sent the input: the field, its value, what is allowed and the nearest of it.

    :param kind: the type of the input, to list what is allowed.
    :param content: the input, decoded, to name the value.
    """
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8: unexpected byte 0x{error.object[error.start]:02x}"
    message = str(error)
    if not isinstance(error, msgspec.ValidationError):
        return _describe_malformed(message)
    text, at_key = message, False
    path: _Path = ()
    if found := _PATH.search(message):
        text, at_key = message[: found.start()], bool(found[1])
        path = tuple(step[0] or step[1] for step in _STEP.findall(found[2]))
        path = _with_keys(path, message, kind, content)
    if unknown := _UNKNOWN_FIELD.fullmatch(text):
        fields = _fields(kind, path, content)
        return _described(path, f"unknown field {_quoted(unknown[1])}", allowed_names(unknown[1], fields))
    if missing := _MISSING_FIELD.fullmatch(text):
        return _described((*path, missing[1]), "missing, it is required")
    refused = _NOT_ALLOWED.fullmatch(text)
    if refused and (names := _values(kind, path, at_key)):
        name = f"unknown key {_quoted(refused[1])}" if at_key else _quoted(refused[1])
        return _described(path, name, allowed_names(refused[1], names))
    value = _value_at(content, path)
    if allowed := _allowed(_types_at(kind, path), value):
        return _described(path, _quoted(value) or f"{text[:1].lower()}{text[1:]}", f"allowed are {allowed}")
    return _described(path, text) if path else _printable(text)


def _describe_malformed(message: str) -> str:
    """Why a text is not JSON, from the message of msgspec."""
    if "truncated" in message:
        return "not JSON: it is empty or incomplete"
    if found := _MALFORMED.search(message):
        start = f"not JSON from byte {int(found[1]) + 1} on"
        return f"{start}, where the object has ended: is a line end missing?" if "trailing" in message else start
    return f"not JSON: {_printable(message)}"


def _described(path: _Path, what: str, allowed: str = "") -> str:
    name = "".join(f"[{step}]" if step.isdecimal() else f".{step}" for step in path).removeprefix(".")
    return _printable(": ".join(filter(None, (name, what))) + (f", {allowed}" if allowed else ""))


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
        if step == _ANY_KEY:
            break
        if isinstance(content, dict) and step in content:
            content = content[step]
        elif isinstance(content, list | tuple) and step.isdecimal() and int(step) < len(content):
            content = content[int(step)]
        else:
            return msgspec.UNSET
    return content


def _with_keys(path: _Path, message: str, kind: type[msgspec.Struct] | None, content: object) -> _Path:
    """The path with the key of an object that msgspec does not name: the first one whose value alone is refused so."""
    if _ANY_KEY not in path or kind is None:
        return path
    before = path[: path.index(_ANY_KEY)]
    objects = _value_at(content, before)
    for key in islice(objects, _MAX_KEYS) if isinstance(objects, dict) else ():
        try:
            msgspec.convert(_with_only(content, before, key), kind)
        except msgspec.ValidationError as error:
            if str(error) == message:
                return (*before, str(key), *path[len(before) + 1 :])
    return path


def _with_only(content: Any, path: _Path, key: str) -> Any:
    """The content with one key only in the object at a path of fields."""
    if not path:
        return {key: content[key]}
    if isinstance(content, dict):
        return {**content, path[0]: _with_only(content[path[0]], path[1:], key)}
    return [*content[: int(path[0])], _with_only(content[int(path[0])], path[1:], key)]


def _allowed(types: Sequence[inspect.Type], value: object) -> str:
    """What is allowed, in words; for a number that is too large or too small only the bounds."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    described: dict[str, None] = {}
    for each in types:
        match each:
            case inspect.IntType():
                described[_numbers(each, "" if is_number and value == int(value) else "whole numbers")] = None  # type: ignore[call-overload]
            case inspect.FloatType():
                described[_numbers(each, "" if is_number else "numbers")] = None
            case inspect.StrType():
                described[_sized("texts", each.min_length, each.max_length, "characters")] = None
            case inspect.ListType() | inspect.VarTupleType():
                described[_sized("lists", each.min_length, each.max_length, "values")] = None
            case inspect.LiteralType():
                described[", ".join(map(str, each.values))] = None
            case inspect.BoolType():
                described["true or false"] = None
            case inspect.DateTimeType():
                described[dates.ALLOWED] = None
            case inspect.StructType() | inspect.DictType():
                described["objects"] = None
    if "numbers" in described:
        described.pop("whole numbers", None)
    return " or ".join(described)


def _numbers(of: inspect.IntType | inspect.FloatType, noun: str) -> str:
    if of.ge is not None and of.le is not None:
        bounds = f"{_number(of.ge)} to {_number(of.le)}"
        return f"{noun} from {bounds}" if noun else bounds
    noun = noun or "numbers"
    low = f" from {_number(of.ge)}" if of.ge is not None else f" above {_number(of.gt)}" if of.gt is not None else ""
    return f"{noun}{low}{f' up to {_number(of.le)}' if of.le is not None else ''}"


def _number(value: float) -> str:
    """A bound as callers write it: without an exponent if it is whole."""
    return str(int(value)) if value == int(value) else str(value)


def _sized(noun: str, least: int | None, most: int | None, unit: str) -> str:
    if most is not None:
        return f"{noun} of {least or 0} to {most} {unit}"
    return f"{noun} of at least {least} {unit.removesuffix('s') if least == 1 else unit}" if least else noun


def _quoted(value: object) -> str:
    """A value as a message shows it; empty if it is not known."""
    if value is msgspec.UNSET:
        return ""
    if isinstance(value, str):
        return f"{value[:_MAX_VALUE_CHARS]!r}{'…' * (len(value) > _MAX_VALUE_CHARS)}"
    if isinstance(value, float) and not isfinite(value):
        return str(value)  # JSON has none of these, but Python and the command line
    text = msgspec.json.encode(value, enc_hook=str).decode("utf-8", "replace")
    return f"{text[:_MAX_VALUE_CHARS]}{'…' * (len(text) > _MAX_VALUE_CHARS)}"


def _printable(message: str) -> str:
    """The message on one line, without control characters and without the middle of a long value."""
    if len(message) > _MAX_CHARS:
        message = f"{message[: _MAX_CHARS // 2]}…{message[-_MAX_CHARS // 2 :]}"
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in message)
