"""Runs last, over all that the other tests made the service log."""

from __future__ import annotations

import logging

import pytest

from tests.secrets import LOGGED, keep_out, kept_out

_log = logging.getLogger(__name__)


def test_what_is_logged_is_recorded_with_its_trace() -> None:
    marker = "".join(map(chr, range(97, 123)))
    try:
        raise ValueError(marker)  # noqa: TRY301
    except ValueError:
        _log.exception("on purpose")
    assert marker in LOGGED.read_text()


def test_no_secret_was_logged(request: pytest.FixtureRequest) -> None:
    keep_out("never said")
    logged = LOGGED.read_text(errors="replace").casefold()
    assert {secret for secret in kept_out() if secret.casefold() in logged} == set()
    if request.session.testscollected > 1_000:  # a whole run, and not this file alone
        assert len(kept_out()) > 10
        assert logged.count('"path":"/v1/search"') > 1_000
