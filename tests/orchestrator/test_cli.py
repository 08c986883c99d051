"""The command as a person runs it: in a process of its own, with the environment for its settings."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from typer.testing import CliRunner

from orchestrator.cli import main
from tests.orchestrator.served import serving

LINES = (
    '{"id":"nolan","title":"Christopher Nolan","text":"A film director."}\n'
    '{"id":"prestige","title":"The Prestige","text":"A film by Christopher Nolan."}\n'
)


@pytest.fixture
def env(tmp_path: Path, model_dir: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv("TRIVIUM_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("TRIVIUM_MODEL_DIR", str(model_dir))
    return dict(os.environ)


def run(*arguments: str, given: str | None = None) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, arguments, input=given, catch_exceptions=False)
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def indexed(env: dict[str, str], tmp_path: Path) -> dict[str, str]:
    (tmp_path / "documents.ndjson").write_text(LINES)
    code, out, _ = run("index", str(tmp_path / "documents.ndjson"))
    assert (code, out) == (0, "2 indexed, 0 rejected; the index holds 2 documents\n")
    return env


def test_index_then_search(indexed: dict[str, str]) -> None:
    code, out, _ = run("search", "who is Christopher Nolan", "--explain")
    assert code == 0
    assert "Christopher Nolan" in out
    assert "vector" in out
    assert "fusion_score" in out
    assert "(rank 1, score" in out


def test_search_as_json_is_what_the_api_gives(indexed: dict[str, str]) -> None:
    code, out, _ = run("search", "Christopher Nolan", "--json", "--limit", "1", "--mode", "hybrid")
    answer = json.loads(out)
    assert code == 0
    assert len(answer["hits"]) == 1
    assert set(answer) >= {"hits", "route", "degraded", "index_version", "generation", "timings_ms", "request_id"}


def test_bad_lines_are_named_and_good_ones_kept(env: dict[str, str]) -> None:
    code, out, err = run("index", "-", given='{"id":"a","text":"x"}\n{oops\n{"id":"b","text":"y","importance":11}\n')
    assert code == 1
    assert "1 indexed, 2 rejected; the index holds 1 documents" in out
    assert "line 2:" in err
    assert "line 3: Expected `float` <= 10.0 - at `$.importance`" in err


def test_only_so_many_bad_lines_are_shown(env: dict[str, str]) -> None:
    code, _, err = run("index", "-", given="{oops\n" * 30)
    assert code == 1
    assert "line 20:" in err
    assert "line 21:" not in err
    assert "and 10 more" in err


def test_index_reports_as_json(env: dict[str, str]) -> None:
    code, out, _ = run("index", "-", "--json", given=LINES + "{oops\n")
    report = json.loads(out)
    assert (code, report["indexed"], report["rejected"], report["documents"]) == (1, 2, 1, 2)
    assert report["errors"][0]["line"] == 3


def test_a_beir_folder_is_indexed_with_its_graph(env: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / "corpus.jsonl").write_text(
        '{"_id":"1","title":"One Thing","text":"x"}\n{"_id":"2","title":"","text":"y"}\n'
    )
    (folder / "edges.jsonl").write_text('{"source":"1","target":"2","type":"cites"}\n')
    assert run("index", str(folder))[0] == 0
    answer = json.loads(run("search", "one thing", "--mode", "graph", "--json")[1])
    assert [hit["id"] for hit in answer["hits"]] == ["1", "2"]
    (folder / "edges.jsonl").write_text('{"source":"1"}\n')
    code, _, err = run("index", str(folder))
    assert code == 1
    assert "line 1: edges.jsonl: Object missing required field `target`" in err


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (("search", ""), 2, "length >= 1 - at `$.query`"),
        (("search", "  "), 2, "nothing but white space"),
        (("search", "x", "--mode", "psychic"), 2, "'psychic' - at `$.mode`, allowed are auto, hybrid, vector, graph"),
        (("search", "\udcff"), 2, "not text that UTF-8 can hold"),
        (("search", "x", "--limit", "51"), 2, "<= 50 - at `$.limit`"),
        (("index", "no-such-file"), 1, "No such file or directory"),
        (("index", "."), 1, "a folder without corpus.jsonl"),
        (("serve", "--host", "0.0.0.0"), 2, "without API keys the service listens on loopback only"),
        (("serve", "--host", "example.org"), 2, "allowed are 127.0.0.1, ::1 and localhost"),
    ],
)
def test_wrong_use_is_told_in_a_line(
    env: dict[str, str], arguments: tuple[str, ...], code: int, complaint: str
) -> None:
    got, _, err = run(*arguments)
    assert (got, complaint in err, "Traceback" in err) == (code, True, False), err


def test_a_wrong_setting_is_told_in_a_line(env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVIUM_DEPTH", "many")
    code, _, err = run("doctor")
    assert code == 2
    assert "TRIVIUM_DEPTH is 'many'" in err


def test_doctor_on_a_healthy_service(indexed: dict[str, str]) -> None:
    code, out, _ = run("doctor")
    assert code == 0
    assert "2 documents in 1 segments" in out
    assert "fail" not in out


def test_doctor_on_an_empty_one_says_what_to_do(env: dict[str, str]) -> None:
    code, out, _ = run("doctor")
    assert code == 0
    assert "run `trivium index PATH`" in out


def test_doctor_on_a_damaged_one_says_what_is_damaged(indexed: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "data" / "index" / "manifest.json").write_text("{")
    code, out, _ = run("doctor")
    assert code == 1
    assert "manifest.json is damaged" in out
    code, _, err = run("search", "x")
    assert code == 1
    assert "manifest.json is damaged" in err


@pytest.mark.parametrize("damaged", ["keyword/*/meta.json", "segments/*/docnos.npy", "graph/*/words.msgpack", "dead/*"])
def test_doctor_and_search_name_what_cannot_be_opened(indexed: dict[str, str], tmp_path: Path, damaged: str) -> None:
    newest = max((tmp_path / "data" / "index").glob(damaged))
    newest.write_bytes(newest.read_bytes()[:3])
    code, out, _ = run("doctor")
    assert (code, "cannot be opened" in out) == (1, True)
    code, _, err = run("search", "x")
    assert (code, "cannot be opened" in err) == (1, True)


def test_a_port_that_is_taken_is_named_before_any_work(env: dict[str, str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        for command in ("serve", "demo"):
            code, _, err = run(command, "--port", port)
            assert (code, f"port {port} of 127.0.0.1 cannot be had" in err) == (1, True)


def test_a_collection_is_asked_for_by_name(env: dict[str, str]) -> None:
    run("index", "-", given='{"id":"m","text":"remember me","collection":"memory"}\n')
    assert json.loads(run("search", "remember", "--json")[1])["hits"] == []
    found = json.loads(run("search", "remember", "--json", "--collection", "memory")[1])["hits"]
    assert [hit["id"] for hit in found] == ["m"]


def test_what_a_terminal_would_obey_is_not_printed(env: dict[str, str]) -> None:
    run("index", "-", given='{"id":"a","title":"\\u001b[31mred","text":"bell \\u0007 \\u001b]0;title"}\n')
    _, out, _ = run("search", "bell", "--explain")
    assert "red" in out
    assert not any(each in out for each in "\x1b\x07")


def test_doctor_asks_for_a_query_table_where_one_is_due(env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    from orchestrator.wiring import service

    lines = "".join(f'{{"id":"{n}","text":"number {n} of some words"}}\n' for n in range(30))
    run("index", "-", given=lines)
    monkeypatch.setattr(service, "_FIT_FROM", 20)
    code, out, _ = run("doctor")
    assert code == 1
    assert "query table: none -> run `trivium tidy`" in out
    assert run("tidy")[0] == 0
    assert (Path(env["TRIVIUM_DATA_DIR"]) / "query-table.bin").exists()


def ask(address: str, query: str) -> list[str]:
    body = json.dumps({"query": query, "timeout_ms": 10_000}).encode()
    with urllib.request.urlopen(urllib.request.Request(f"{address}/v1/search", body), timeout=30) as response:
        return [hit["id"] for hit in json.load(response)["hits"]]


def test_serve_with_two_workers_and_both_follow_what_is_indexed_elsewhere(indexed: dict[str, str]) -> None:
    with serving(indexed, "--workers", "2") as (_, address):
        assert ask(address, "Christopher Nolan")[0] in {"nolan", "prestige"}
        run("index", "-", given='{"id":"late","text":"Zanzibar is an island"}\n')
        deadline = time.monotonic() + 20
        # Each connection may reach either worker: twenty in a row that know it are both of them.
        row = 0
        while row < 20:
            assert time.monotonic() < deadline, "a worker did not follow within 20 s"
            row = row + 1 if ask(address, "Zanzibar")[:1] == ["late"] else 0


_INDEX = [sys.executable, "-m", "orchestrator", "index"]


def test_kill_9_during_index_then_index_again_is_complete_and_without_duplicates(
    env: dict[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "many.ndjson"
    path.write_text("".join(f'{{"id":"{n}","text":"document number {n} about topic {n % 7}"}}\n' for n in range(6_000)))
    manifest = Path(env["TRIVIUM_DATA_DIR"]) / "index" / "manifest.json"
    with subprocess.Popen([*_INDEX, str(path)], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as first:
        deadline = time.monotonic() + 120
        while not manifest.exists():  # the first part is on disk, the rest is not
            assert first.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        first.kill()
    held = json.loads(manifest.read_text())["documents"]
    assert 0 < held < 6_000
    done = subprocess.run([*_INDEX, "--json", str(path)], env=env, capture_output=True, check=True, text=True)
    assert json.loads(done.stdout) == {"indexed": 6_000, "rejected": 0, "documents": 6_000, "errors": []}
    assert run("doctor")[0] == 0
    answer = json.loads(run("search", "document number 4711", "--mode", "keyword", "--limit", "50", "--json")[1])
    ids = [hit["id"] for hit in answer["hits"]]
    assert ids[0] == "4711"
    assert len(ids) == len(set(ids))


def test_every_command_explains_itself() -> None:
    for command in ("demo", "serve", "index", "search", "tidy", "doctor"):
        code, out, _ = run(command, "--help")
        assert code == 0
        assert command in out
