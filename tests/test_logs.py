"""What all tests log is recorded, so that a secret in it is found."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tests import secrets

_log = logging.getLogger(__name__)


def test_a_logged_error_is_recorded_with_its_trace() -> None:
    marker = "".join(map(chr, range(97, 123)))
    try:
        raise ValueError(marker)  # noqa: TRY301
    except ValueError:
        _log.exception("on purpose")
    assert marker in secrets.LOGGED.read_text()


def test_a_secret_in_a_log_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "LOGGED", tmp_path / "logged")
    monkeypatch.setattr(secrets, "_secrets", set())
    secrets.register_secret("Never-Said")
    secrets.register_secret("another")
    assert secrets.logged_secrets() == set()
    (tmp_path / "logged").write_text("a line\nnever-said, at all\n")
    assert secrets.logged_secrets() == {"Never-Said"}
