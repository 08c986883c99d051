"""``python -m docs.settings_table`` prints the README's table of settings."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal, get_args, get_origin

from annotated_types import Ge, Le
from pydantic.fields import FieldInfo

from orchestrator.settings import Settings


def table(settings: type[Settings]) -> str:
    """One line a setting: its name in the environment, what is allowed, its default, what it is."""
    lines = ["| variable | allowed | default | what it is |", "|---|---|---|---|"]
    for name, field in settings.model_fields.items():
        default = _shown(field.default)
        lines.append(f"| `TRIVIUM_{name.upper()}` | {_allowed(field)} | {default} | {field.description} |")
    return "\n".join(lines)


def _allowed(field: FieldInfo) -> str:
    if get_origin(field.annotation) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(field.annotation))
    if field.annotation is bool:
        return "`true`, `false`"
    least = next((each.ge for each in field.metadata if isinstance(each, Ge)), None)
    most = next((each.le for each in field.metadata if isinstance(each, Le)), None)
    if least is not None:
        return f"{least} to {most}"
    named = {Path: "a folder", Path | None: "a file", str: "text", tuple[str, ...]: "names, with commas"}
    return named.get(field.annotation, "text")  # type: ignore[call-overload, no-any-return]


def _shown(default: object) -> str:
    text = ", ".join(default) if isinstance(default, tuple) else str(default)
    return f"`{text}`" if re.search(r"\S", text) else "none"


if __name__ == "__main__":
    print(table(Settings))  # noqa: T201
