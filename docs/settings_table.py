"""``python -m docs.settings_table`` prints the tables of ``docs/reference/settings.md``: one for each group."""

from __future__ import annotations

import re

from pydantic import SecretStr

from orchestrator.settings.allowed import allowed_values
from orchestrator.settings.groups import Settings, setting_fields

_SECTION = """## {title}

{description}

| variable | allowed | default | meaning |
|---|---|---|---|
{rows}"""


def tables() -> str:
    """A section for each group: its title, its description, and one row for each setting."""
    rows: dict[str, list[str]] = {}
    for name, (group, _, field) in setting_fields().items():
        default, allowed = _default(field.default), allowed_values(field)
        rows.setdefault(group, []).append(f"| `TRIVIUM_{name.upper()}` | {allowed} | {default} | {field.description} |")
    sections = []
    for group, lines in rows.items():
        description = (getattr(Settings.model_fields[group].annotation, "__doc__", "") or "").strip()
        sections.append(_SECTION.format(title=group.capitalize(), description=description, rows="\n".join(lines)))
    return "\n\n".join(sections)


def _default(value: object) -> str:
    if isinstance(value, SecretStr):
        value = value.get_secret_value()
    if isinstance(value, tuple):
        value = ", ".join(value)
    is_empty = value is None or value == {} or not re.search(r"\S", str(value))
    return "none" if is_empty else f"`{str(value).lower() if isinstance(value, bool) else value}`"


if __name__ == "__main__":
    print(tables())  # noqa: T201
