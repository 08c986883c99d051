"""A package that cannot be imported is named, with what can be done about it."""

from __future__ import annotations

import sys

import pytest

from adapters import Unavailable
from adapters.ports.optional_packages import extra


def test_a_package_that_is_not_installed_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    with (
        pytest.raises(Unavailable, match=r"^httpx is not installed: pip install 'trivium\[rerank\]'$"),
        extra("rerank"),
    ):
        import httpx  # noqa: F401


@pytest.mark.parametrize("statement", ["from json import no_such_name", "import json.no_such_module"])
def test_a_release_that_lacks_what_is_imported_is_not_called_absent(statement: str) -> None:
    with pytest.raises(Unavailable, match=r"^json is installed, but this release of it cannot be used"), extra("some"):
        exec(statement)  # noqa: S102
