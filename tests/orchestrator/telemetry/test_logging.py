from __future__ import annotations

import json
import logging
import re
import time
import warnings
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pytest

from orchestrator.telemetry.access_log import log_request
from orchestrator.telemetry.logging import configure_logging

_log = logging.getLogger("some.module")


@pytest.fixture(autouse=True)
def _previous_configuration() -> Iterator[None]:
    """Handlers and levels as they were, after each test."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    logging.captureWarnings(False)  # pytest has replaced what an earlier test's capturing had installed
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(False)


@pytest.fixture
def lines(capsys: pytest.CaptureFixture[str]) -> Callable[[], list[dict[str, Any]]]:
    """Every line on standard error since the last call, decoded."""

    def read() -> list[dict[str, Any]]:
        output = capsys.readouterr()
        assert output.out == ""
        return [json.loads(line) for line in output.err.splitlines()]

    return read


def test_every_line_is_an_object_with_its_time_level_logger_and_message(
    lines: Callable[[], list[dict[str, Any]]],
) -> None:
    configure_logging("info")
    _log.warning("source %s failed", "graph")
    (line,) = lines()
    line.pop("time")
    assert line == {"level": "warning", "logger": "some.module", "message": "source graph failed"}


def test_every_line_has_the_same_form_of_time(lines: Callable[[], list[dict[str, Any]]]) -> None:
    configure_logging("info")
    _log.warning("a line")
    log_request("id-1", "GET", "/v1/collections", 200)
    for line in lines():
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", line["time"])
        assert abs(datetime.fromisoformat(line["time"]).timestamp() - time.time()) < 60


def test_no_line_has_the_second_message_of_uvicorn_with_codes_for_terminals(
    lines: Callable[[], list[dict[str, Any]]],
) -> None:
    configure_logging("info")
    logging.getLogger("uvicorn.error").info(
        "Started server process [%d]", 7, extra={"color_message": "Started server process [\x1b[36m%d\x1b[0m]"}
    )
    (line,) = lines()
    assert line["message"] == "Started server process [7]"
    assert "\x1b" not in str(line)


def test_a_message_of_several_lines_is_one_line(lines: Callable[[], list[dict[str, Any]]]) -> None:
    configure_logging("info")
    _log.info("first\nsecond\x1b[31m")
    assert [line["message"] for line in lines()] == ["first\nsecond\x1b[31m"]


def test_a_warning_of_python_is_a_line_of_the_log(lines: Callable[[], list[dict[str, Any]]]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        configure_logging("info")
        warnings.warn("invalid value encountered in divide", RuntimeWarning, stacklevel=1)
    (line,) = lines()
    assert (line["level"], line["logger"]) == ("warning", "py.warnings")
    assert "RuntimeWarning: invalid value encountered in divide" in line["message"]


def test_an_error_has_its_trace_in_the_same_line(lines: Callable[[], list[dict[str, Any]]]) -> None:
    configure_logging("info")
    try:
        raise ZeroDivisionError("on purpose")  # noqa: TRY301
    except ZeroDivisionError:
        _log.exception("it failed")
    (line,) = lines()
    assert line["message"] == "it failed"
    assert "ZeroDivisionError: on purpose" in line["trace"]


def test_a_line_of_the_access_log_is_not_wrapped(lines: Callable[[], list[dict[str, Any]]]) -> None:
    configure_logging("info")
    log_request("id-1", "GET", "/livez", 200)
    (line,) = lines()
    assert (line["request_id"], line["path"], line["status"]) == ("id-1", "/livez", 200)
    assert "message" not in line


@pytest.mark.parametrize(("level", "expected"), [("debug", 4), ("info", 3), ("warning", 2), ("error", 1)])
def test_lines_below_the_level_are_not_written(
    level: str, expected: int, lines: Callable[[], list[dict[str, Any]]]
) -> None:
    configure_logging(level)
    for log in (_log.debug, _log.info, _log.warning, _log.error):
        log("a line")
    assert len(lines()) == expected


@pytest.mark.parametrize("driver", ["opensearch", "opensearchpy", "httpx", "httpcore", "neo4j"])
def test_drivers_write_no_line_for_each_of_their_requests(
    driver: str, lines: Callable[[], list[dict[str, Any]]]
) -> None:
    configure_logging("debug")
    logging.getLogger(driver).error("POST /index {'text': 'a document'}")
    logging.getLogger(f"{driver}.client").error("POST /index {'text': 'a document'}")
    assert lines() == []


def test_a_second_configuration_replaces_the_first(lines: Callable[[], list[dict[str, Any]]]) -> None:
    configure_logging("info")
    configure_logging("info")
    _log.info("once")
    assert [line["message"] for line in lines()] == ["once"]
