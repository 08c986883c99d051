"""The settings, read once: from what is given, else the environment, else the file that the environment names."""

from __future__ import annotations

import os
from pathlib import Path

from dotenv import dotenv_values
from pydantic import ValidationError

from orchestrator.settings.fields import SECRET, Settings

FILE = "TRIVIUM_SETTINGS_FILE"
"""Names a file of settings, one ``TRIVIUM_NAME=value`` a line; what the environment says itself comes first."""


class SettingsError(ValueError):
    """A setting has a value that is not allowed; the message names it and what is."""


def read(**given: object) -> Settings:
    """Settings from the environment, with ``given`` over them; and from the file that ``TRIVIUM_SETTINGS_FILE`` names,
    with the environment over that.

    :raises SettingsError: if a value is not allowed, or the file cannot be read.
    """
    try:
        return Settings(_env_file=_file(), **given)  # type: ignore[arg-type, call-arg]  # pydantic checks them, that is its work
    except ValidationError as error:
        first = error.errors()[0]
        name = "TRIVIUM_" + "_".join(str(part) for part in first["loc"]).upper()
        # An address may hold a password, and one that cannot be read hides it where nobody would look for it.
        told = "not allowed" if first["loc"][0] in SECRET else repr(first["input"])
        raise SettingsError(f"{name} is {told}: {first['msg'][0].lower()}{first['msg'][1:]}") from None


def _file() -> str | None:
    """The settings file, checked for settings that there are not."""
    named = os.environ.get(FILE)
    if not named:
        return None
    try:
        Path(named).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{FILE} is {named!r}, which cannot be read: {error}") from error
    known = {f"TRIVIUM_{name.upper()}" for name in Settings.model_fields}
    for name in dotenv_values(named):
        if name.upper() not in known:
            # A line whose name was forgotten is a value, and may be a password.
            shown = repr(name[:80]) if name.isidentifier() else "by one of the names in it"
            raise SettingsError(f"{named}: there is no setting {shown}")
    return named
