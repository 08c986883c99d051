"""The error of this package."""

from __future__ import annotations


class BadRequest(ValueError):
    """A value of the request is not allowed: the message names the field, the value and what is allowed."""
