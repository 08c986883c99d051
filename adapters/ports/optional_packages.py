"""Packages that are installed with an extra only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from adapters.model.errors import Unavailable


@contextmanager
def extra(name: str) -> Iterator[None]:
    """A context in which packages of the extra ``name`` are imported.

    :raises Unavailable: if a package is not installed, or its release is not supported. The message contains the name
        of the extra.
    """
    try:
        yield
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        if not package or find_spec(package):
            message = f"{package or 'a package'} is installed, but this release of it cannot be used ({error})"
        else:
            message = f"{package} is not installed"
        raise Unavailable(f"{message}: pip install 'trivium[{name}]'") from error
