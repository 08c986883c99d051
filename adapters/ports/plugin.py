"""User-supplied functions, by their address ``python://package.module:function``."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import Any

from adapters.model.errors import Unavailable

FORM = "python://package.module:function"
PATTERN = r"python://(?:\w+\.)*\w+:\w+"
"""The form of an address, as a regular expression."""


def import_function(address: str, allowed: str) -> Callable[..., Any]:
    """Import the function at an address.

    :param allowed: all forms that the setting may have, for the error message.
    :raises ValueError: if ``address`` is not of this form.
    :raises Unavailable: if the module or the function cannot be imported.
    """
    if not re.fullmatch(PATTERN, address):
        raise ValueError(f"{address!r} is not an address, it must be one of {allowed}")
    module, _, name = address.removeprefix("python://").partition(":")
    try:
        function: Callable[..., Any] = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise Unavailable(f"{address} cannot be imported: {error}") from error
    except (Exception, SystemExit) as error:  # of the module, which is not ours
        raise Unavailable(f"{address} cannot be imported: {type(error).__name__}: {error}") from error
    if not callable(function):
        raise Unavailable(f"{address} is no function: it is {repr(function)[:80]}")
    return function
