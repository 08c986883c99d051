"""A function of the user's, by its address ``python://package.module:function``."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import Any

from adapters.errors import Unavailable

FORM = "python://package.module:function"
PATTERN = r"python://(?:\w+\.)*\w+:\w+"
"""What an address looks like, as a regular expression."""


def function(address: str, allowed: str) -> Callable[..., Any]:
    """Import it.

    :param allowed: what ``address`` might have been, for who is told that it is none of that.
    :raises ValueError: if that is no such address.
    :raises Unavailable: if there is no such function.
    """
    if not re.fullmatch(PATTERN, address):
        raise ValueError(f"{address!r} is none of {allowed}")
    module, _, name = address.removeprefix("python://").partition(":")
    try:
        found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise Unavailable(f"{address} cannot be imported: {error}") from error
    return found
