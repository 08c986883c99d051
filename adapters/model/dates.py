"""Moments in time, as documents and filters write them: RFC 3339, a plain date, or seconds since 1970."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import msgspec

FIRST_S, LAST_S = -62_135_596_800, 253_402_300_799
"""The first and the last second of the years 1 to 9999, in seconds since 1970."""
ALLOWED = "2026-01-31T12:00:00Z, 2026-01-31 or seconds since 1970"
_PLAIN_DATE = re.compile(r"\d{4}-\d\d-\d\d")


def moment(value: object) -> datetime:
    """The moment that a value means; a plain date is its beginning, in UTC.

    :raises ValueError: if the value has another form, is without a time zone, or lies outside the years 1 to 9999.
    """
    try:
        if isinstance(value, int | float) and not isinstance(value, bool) and FIRST_S <= value <= LAST_S:
            return datetime.fromtimestamp(value, UTC)
        text = value.strip() if isinstance(value, str) else value
        is_plain = isinstance(text, str) and _PLAIN_DATE.fullmatch(text)
        parsed = msgspec.convert(f"{text}T00:00:00Z" if is_plain else text, datetime)
    except (ValueError, OverflowError, OSError) as error:  # msgspec.ValidationError is a ValueError
        raise ValueError(f"{str(value)[:80]!r} is no date, write {ALLOWED}") from error
    if parsed.tzinfo is None:
        raise ValueError(f"{str(value)[:80]!r} is without a time zone, write {ALLOWED}")
    return parsed
