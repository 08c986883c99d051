"""What all groups of settings share: their base class, and checks of values."""

from __future__ import annotations

from math import nan
from typing import get_args

from pydantic import BaseModel, ConfigDict, SecretStr

from adapters.model.spelling import allowed_names
from orchestrator.schema.search import ProfileName


class SettingsGroup(BaseModel):
    """Base class of the groups. Immutable; an unknown setting is an error."""

    # Defaults are validated, too: `~` and relative folders are expanded.
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, validate_default=True)


def split(value: object) -> object:
    """A list written with commas, as a tuple."""
    return tuple(name.strip() for name in value.split(",") if name.strip()) if isinstance(value, str) else value


def named_items(text: str, form: str) -> dict[str, str]:
    """The items of ``name=value, name=value``.

    :param form: of one item, for the message.
    :raises ValueError: if one has no ``=``, or a name occurs twice.
    """
    items = [item.partition("=") for item in text.split(",") if item.strip()]
    if not all(equals for _, equals, _ in items):
        raise ValueError(f"write `{form}`, with commas between them")
    found: dict[str, str] = {}
    for name, _, value in items:
        if name.strip() in found:
            raise ValueError(f"{name.strip()} is there twice")
        found[name.strip()] = value.strip()
    return found


def not_empty(value: object) -> object:
    """The value.

    :raises ValueError: if it is empty.
    """
    if value == "":
        raise ValueError("it must not be empty")
    return value


def header_value(value: SecretStr) -> SecretStr:
    """The value without white space around it.

    :raises ValueError: if it cannot be sent as a header.
    """
    key = value.get_secret_value().strip()
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise ValueError("a key consists of printable ASCII characters without spaces")
    return SecretStr(key)


def profile_and_share(value: str) -> tuple[ProfileName, float]:
    """The two parts of ``profile:share``.

    :raises ValueError: if one is not allowed.
    """
    name, _, share = value.partition(":")
    profile = next((each for each in get_args(ProfileName) if each == name), None)
    if profile is None:
        raise ValueError(f"the profile {name!r}, {allowed_names(name, get_args(ProfileName))}")
    try:
        number = float(share)
    except ValueError:
        number = nan
    if not 0 < number <= 1:
        raise ValueError(f"the share {share!r}, allowed are numbers above 0 up to 1, such as {profile}:0.05")
    return profile, number
