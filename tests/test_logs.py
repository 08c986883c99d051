"""Runs last: checks everything that the service logged in the other tests."""

from __future__ import annotations

import logging

import pytest

from tests.secrets import LOGGED, register_secret, registered_secrets

_log = logging.getLogger(__name__)


def test_a_logged_error_is_recorded_with_its_trace() -> None:
    marker = "".join(map(chr, range(97, 123)))
    try:
        raise ValueError(marker)  # noqa: TRY301
    except ValueError:
        _log.exception("on purpose")
    assert marker in LOGGED.read_text()


def test_no_secret_was_logged(request: pytest.FixtureRequest) -> None:
    register_secret("never said")
    logged = LOGGED.read_text(errors="replace").casefold()
    assert {secret for secret in registered_secrets() if secret.casefold() in logged} == set()
    if request.session.testscollected > 1_000:  # the whole suite, not this file alone
        assert len(registered_secrets()) > 10
        assert logged.count('"path":"/v1/search"') > 1_000
