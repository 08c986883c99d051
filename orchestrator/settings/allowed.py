"""The values that a setting may have, in words: for errors and for the reference."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Literal, get_args, get_origin

from annotated_types import Ge, Le
from pydantic import SecretStr
from pydantic.fields import FieldInfo

from orchestrator.settings.ranking import Strengths

_KINDS: Mapping[object, str] = {
    Path: "a folder or a file",
    tuple[str, ...]: "names, separated by commas",
    Mapping[str, float]: "`name=number`, separated by commas",
    Strengths: "`name=strength`, separated by commas; a name alone has the strength 1",
    Mapping[str, tuple[float, float]]: "`name=number/number`, separated by commas",
    str: "text",
    SecretStr: "text",
}


def allowed_values(field: FieldInfo) -> str:
    """What a setting may be: its choices, its range, or its form."""
    if names := choices(field):
        is_list = get_origin(_without_none(field.annotation)) is tuple
        return ", ".join(f"`{name}`" for name in names) + (", separated by commas" if is_list else "")
    minimum = next((each.ge for each in field.metadata if isinstance(each, Ge)), None)
    maximum = next((each.le for each in field.metadata if isinstance(each, Le)), None)
    if minimum is not None:
        return f"{minimum} to {maximum}"
    return _KINDS[_without_none(field.annotation)]


def choices(field: FieldInfo) -> tuple[str, ...]:
    """The names that a setting, or each item of a list, may be; empty if any text or number may."""
    annotation = _without_none(field.annotation)
    if annotation is bool:
        return ("true", "false")
    literal = get_args(annotation)[0] if get_origin(annotation) is tuple else annotation
    return tuple(map(str, get_args(literal))) if get_origin(literal) is Literal else ()


def _without_none(annotation: object) -> object:
    """A type without ``None``: a setting that is not set."""
    kinds = [each for each in get_args(annotation) if each is not NoneType]
    return kinds[0] if get_origin(annotation) is UnionType else annotation
