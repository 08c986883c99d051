"""The error of this room."""

from __future__ import annotations


class BadRequest(ValueError):
    """The request is not allowed as it is: the message names the field, its value and what is allowed."""
