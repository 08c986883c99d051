"""``trivium shadow``: what a log says about shadow searches."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.evaluation.judgments import BadDataset
from orchestrator.evaluation.shadow_report import Day, Percentiles, days_of
from orchestrator.service.shadow import COMPARED, FAILED
from tests.orchestrator.evaluation.command import run


def compared(day: str, overlap: float, tau: float | None, first: bool, live: float, shadow: float) -> bytes:
    return json.dumps({
        "time": f"{day}T10:00:00.000+00:00", "level": "info", "logger": "x", "message": COMPARED, "request_id": "a",
        "live": "joint", "shadow": "rrf", "overlap": overlap, "rank_correlation": tau, "same_first": first,
        "live_ms": live, "shadow_ms": shadow,
    }).encode() + b"\n"  # fmt: skip


def failed(day: str, shadow: str = "rrf") -> bytes:
    line = {
        "time": f"{day}T11:00:00Z",
        "message": FAILED,
        "live": "joint",
        "shadow": shadow,
        "reason": "vector: refused",
    }
    return json.dumps(line).encode() + b"\n"


LOG = [
    compared("2026-01-02", 1.0, 0.5, True, 10.0, 30.0),
    b'{"time":"2026-01-02T10:00:00Z","method":"POST","path":"/v1/search","status":200}\n',
    b"a line of another program, in \xff bytes {\n",
    b'{"message": "shadow search compared", not JSON\n',
    b"\n",
    compared("2026-01-02", 0.5, None, False, 20.0, 50.0),
    b"trivium-1  | " + failed("2026-01-02"),
    compared("2026-01-01", 0.2, -1.0, False, 7.0, 8.0),
    failed("2026-01-03", shadow="weighted_rrf"),
]


def test_the_figures_of_each_day() -> None:
    assert days_of(LOG) == [
        Day("2026-01-01", "joint", "rrf", 1, 0, 0.2, -1.0, 0.0, Percentiles(7.0, 7.0), Percentiles(8.0, 8.0)),
        Day("2026-01-02", "joint", "rrf", 2, 1, 0.75, 0.5, 0.5, Percentiles(15.0, 19.5), Percentiles(40.0, 49.0)),
        Day("2026-01-03", "joint", "weighted_rrf", 0, 1, None, None, None, None, None),
    ]


def test_a_line_with_other_fields_is_an_error() -> None:
    with pytest.raises(BadDataset, match="line 2 is"):
        days_of([LOG[0], LOG[0].replace(b'"overlap": 1.0', b'"overlap": "all"')])
    with pytest.raises(BadDataset, match="line 1 is not UTF-8"):
        days_of([failed("2026-01-02").replace(b"joint", b"jo\xffnt")])


def test_the_command_prints_tables_of_80_columns(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"".join(LOG))
    for code, out, err in (run("shadow", log), run("shadow", "-", stdin=log.read_bytes().decode("utf-8", "replace"))):
        assert code == 0, err
        assert max(map(len, out.splitlines())) <= 80
        for figure in ("2026-01-02", "joint and weighted_rrf", "0.750", "0.500", "15.0 / 19.5", "40.0 / 49.0"):
            assert figure in out


@pytest.mark.parametrize(("content", "message"), [("", "has no shadow searches"), ("{}\n", "TRIVIUM_SHADOW")])
def test_a_log_without_shadow_searches_is_an_error(tmp_path: Path, content: str, message: str) -> None:
    log = tmp_path / "log"
    log.write_text(content)
    code, out, err = run("shadow", log)
    assert (code, out) == (2, "")
    assert message in " ".join(err.split())


def test_a_log_that_does_not_exist(tmp_path: Path) -> None:
    code, _, err = run("shadow", tmp_path / "none")
    assert code == 1
    assert "No such file" in err
