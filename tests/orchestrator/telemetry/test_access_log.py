from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.telemetry.access_log import ACCESS_LOGGER, log_request

LOGGER = logging.getLogger(ACCESS_LOGGER)


@pytest.fixture
def messages() -> Iterator[list[str]]:
    """Everything that is written to the access log at level ``info``."""
    written: list[str] = []

    class Collect(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            written.append(record.getMessage())

    handler, level = Collect(), LOGGER.level
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    yield written
    LOGGER.removeHandler(handler)
    LOGGER.setLevel(level)


def test_a_request_is_one_line_of_json_with_its_fields(messages: list[str]) -> None:
    before = datetime.now(UTC)
    log_request("id-1", "POST", "/v1/search", 200, ms=1.5, sources=("vector", "graph"), timings_ms={"plan": 0.5})
    (message,) = messages
    line = json.loads(message)
    at = datetime.fromisoformat(line.pop("time"))
    assert at.tzinfo is not None
    assert before.replace(microsecond=before.microsecond // 1_000 * 1_000) <= at <= datetime.now(UTC)
    assert line == {
        "level": "info", "request_id": "id-1", "method": "POST", "path": "/v1/search", "status": 200,
        "ms": 1.5, "sources": ["vector", "graph"], "timings_ms": {"plan": 0.5},
    }  # fmt: skip


def test_nothing_is_written_above_its_level(messages: list[str]) -> None:
    LOGGER.setLevel(logging.WARNING)
    log_request("id-1", "GET", "/livez", 200)
    assert messages == []


@given(st.dictionaries(st.sampled_from(["key", "tenant", "mode"]), st.text()), st.text())
def test_no_field_can_add_a_line_or_change_another_field(messages: list[str], fields: dict[str, str], id_: str) -> None:
    messages.clear()
    log_request(id_, "GET", "/v1/collections", 200, **fields)
    (message,) = messages
    assert "\n" not in message
    line = json.loads(message)
    assert {name: line[name] for name in fields} == fields
    assert (line["request_id"], line["status"]) == (id_, 200)
