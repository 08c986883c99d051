"""``python -m docs.settings_table`` prints the tables of ``docs/reference/settings.md``: one for each group."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Literal, get_args, get_origin

from annotated_types import Ge, Le
from pydantic import SecretStr
from pydantic.fields import FieldInfo

from orchestrator.settings.groups import Settings, setting_fields
from orchestrator.settings.ranking import Strengths

_SECTION = """## {title}

{description}

| variable | allowed | default | meaning |
|---|---|---|---|
{rows}"""

_KINDS: Mapping[object, str] = {
    Path: "a folder or a file",
    tuple[str, ...]: "names, separated by commas",
    Mapping[str, float]: "`name=number`, separated by commas",
    Strengths: "`name=strength`, separated by commas; a name alone has the strength 1",
    Mapping[str, tuple[float, float]]: "`name=number/number`, separated by commas",
    str: "text",
    SecretStr: "text",
}


def tables() -> str:
    """A section for each group: its title, its description, and one row for each setting."""
    rows: dict[str, list[str]] = {}
    for name, (group, _, field) in setting_fields().items():
        default, allowed = _default(field.default), _allowed(field)
        rows.setdefault(group, []).append(f"| `TRIVIUM_{name.upper()}` | {allowed} | {default} | {field.description} |")
    sections = []
    for group, lines in rows.items():
        description = (getattr(Settings.model_fields[group].annotation, "__doc__", "") or "").strip()
        sections.append(_SECTION.format(title=group.capitalize(), description=description, rows="\n".join(lines)))
    return "\n\n".join(sections)


def _allowed(field: FieldInfo) -> str:
    annotation = _without_none(field.annotation)
    if choices := _choices(annotation):
        return choices
    if annotation is bool:
        return "`true`, `false`"
    minimum = next((each.ge for each in field.metadata if isinstance(each, Ge)), None)
    maximum = next((each.le for each in field.metadata if isinstance(each, Le)), None)
    if minimum is not None:
        return f"{minimum} to {maximum}"
    return _KINDS[annotation]


def _without_none(annotation: object) -> object:
    """A type without ``None``: a setting that is not set."""
    kinds = [each for each in get_args(annotation) if each is not NoneType]
    return kinds[0] if get_origin(annotation) is UnionType else annotation


def _choices(annotation: object) -> str:
    """The values of a literal, or of a list of literals; empty for other types."""
    if get_origin(annotation) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(annotation))
    if get_origin(annotation) is tuple and get_origin(get_args(annotation)[0]) is Literal:
        return f"{_choices(get_args(annotation)[0])}, separated by commas"
    return ""


def _default(value: object) -> str:
    if isinstance(value, SecretStr):
        value = value.get_secret_value()
    if isinstance(value, tuple):
        value = ", ".join(value)
    is_empty = value is None or value == {} or not re.search(r"\S", str(value))
    return "none" if is_empty else f"`{str(value).lower() if isinstance(value, bool) else value}`"


if __name__ == "__main__":
    print(tables())  # noqa: T201
