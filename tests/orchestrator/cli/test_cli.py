"""The commands as a user runs them, with settings from the environment."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from typer.testing import CliRunner

from adapters import embedded
from orchestrator.cli.main import main
from tests.orchestrator.cli.killed import kill_after
from tests.orchestrator.served import Serve
from tests.read_only import on_a_read_only_disk

LINES = (
    '{"id":"nolan","title":"Christopher Nolan","text":"A film director."}\n'
    '{"id":"prestige","title":"The Prestige","text":"A film by Christopher Nolan."}\n'
)


@pytest.fixture
def env(tmp_path: Path, model_dir: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv("TRIVIUM_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("TRIVIUM_MODEL_DIR", str(model_dir))
    return dict(os.environ)


def run(*arguments: str, stdin: str | None = None) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, arguments, input=stdin, catch_exceptions=False)
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def indexed(env: dict[str, str], tmp_path: Path) -> dict[str, str]:
    (tmp_path / "documents.ndjson").write_text(LINES)
    code, out, _ = run("index", str(tmp_path / "documents.ndjson"))
    assert (code, out) == (0, "2 indexed, 0 rejected; the index has 2 documents\n")
    return env


def test_index_then_search(indexed: dict[str, str]) -> None:
    code, out, _ = run("search", "who is Christopher Nolan", "--explain")
    assert code == 0
    assert "Christopher Nolan" in out
    assert "vector" in out
    assert "fusion_score" in out
    assert "(rank 1, score" in out
    assert re.search(r"keyword: .*\bnolan \d\.\d{4} \(idf \d\.\d\d, tf \d\.\d\d\)", out)


def test_documents_are_listed_exported_and_deleted(indexed: dict[str, str]) -> None:
    code, out, _ = run("list", "--limit", "1")
    assert code == 0
    assert "nolan" in out
    assert "the first 1; `trivium export` prints all" in out
    code, exported, err = run("export", "--collection", "documents")
    assert (code, err) == (0, "2 documents\n")
    assert [json.loads(line)["id"] for line in exported.splitlines()] == ["nolan", "prestige"]
    assert run("index", "-", stdin=exported)[1] == "2 indexed, 0 rejected; the index has 2 documents\n"
    by_id = '{"op": "eq", "field": "id", "value": "nolan"}'
    assert run("delete", "--filter", by_id, "--dry-run")[:2] == (0, "1 documents match, 0 deleted\n")
    assert run("delete", "--filter", by_id)[:2] == (0, "1 documents match, 1 deleted\n")
    assert run("delete", "nolan", "prestige")[:2] == (0, "1 deleted, with 0 chunks; 1 not found\n")
    assert run("export")[:2] == (0, "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "nothing to delete: give ids, --filter or --collection"),
        (["a", "--dry-run"], "--filter and --dry-run are for deleting without ids"),
        (["--collection", "a", "--keep-chunks"], "--keep-chunks is for deleting by id"),
        (["--filter", "{"], "filter: '{' is not JSON"),
        (["--filter", '{"op": "eq", "field": "x", "value": 1}'], "unknown field 'x'"),
    ],
)
def test_a_delete_that_is_not_allowed_says_what_is(env: dict[str, str], arguments: list[str], message: str) -> None:
    code, _, err = run("delete", *arguments)
    assert code == 2
    assert message in err


def test_search_as_json_has_the_fields_of_the_api(indexed: dict[str, str]) -> None:
    code, out, _ = run("search", "Christopher Nolan", "--json", "--limit", "1", "--mode", "hybrid")
    response = json.loads(out)
    assert code == 0
    assert len(response["hits"]) == 1
    assert set(response) >= {"hits", "route", "degraded", "index_version", "generation", "timings_ms", "request_id"}


def test_an_index_on_a_read_only_disk_is_searched(python: str, indexed: dict[str, str]) -> None:
    command = [*on_a_read_only_disk(Path(indexed["TRIVIUM_DATA_DIR"])), python, "-m", "orchestrator"]
    done = subprocess.run(
        [*command, "search", "christopher nolan", "--json"], env=indexed, capture_output=True, check=True
    )
    response = json.loads(done.stdout)
    assert response["degraded"] == []
    assert {hit["id"] for hit in response["hits"] if hit["sources"]["keyword"]} == {"nolan", "prestige"}


def test_invalid_lines_are_reported_and_valid_lines_are_indexed(env: dict[str, str]) -> None:
    code, out, err = run("index", "-", stdin='{"id":"a","text":"x"}\n{oops\n{"id":"b","text":"y","importance":11}\n')
    assert code == 1
    assert "1 indexed, 2 rejected; the index has 1 documents" in out
    assert "line 2:" in err
    assert "line 3: importance: 11, allowed are 0 to 10" in err


def test_at_most_twenty_invalid_lines_are_shown(env: dict[str, str]) -> None:
    code, _, err = run("index", "-", stdin="{oops\n" * 30)
    assert code == 1
    assert "line 20:" in err
    assert "line 21:" not in err
    assert "and 10 more" in err


def test_index_reports_as_json(env: dict[str, str]) -> None:
    code, out, _ = run("index", "-", "--json", stdin=LINES + "{oops\n")
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
    response = json.loads(run("search", "one thing", "--mode", "graph", "--json")[1])
    assert [hit["id"] for hit in response["hits"]] == ["1", "2"]
    (folder / "edges.jsonl").write_text('{"source":"1"}\n')
    code, _, err = run("index", str(folder))
    assert code == 1
    assert "line 1: edges.jsonl: target: missing, it is required" in err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("search", ""), 2, "query: '', allowed are texts of 1 to 4096 characters"),
        (("search", "  "), 2, "query: only white space, allowed is text"),
        (("search", "x", "--mode", "psychic"), 2, "mode: 'psychic', allowed are auto, hybrid, vector, graph"),
        (("search", "\udcff"), 2, "cannot be encoded as UTF-8"),
        (("search", "x", "--limit", "51"), 2, "limit: 51, allowed are 1 to 50"),
        (("index", "no-such-file"), 1, "there is no file no-such-file"),
        (("index", "nothing"), 1, "there is no file nothing"),
        (("serve", "--host", "0.0.0.0"), 2, "without API keys the service listens on loopback only"),
        (("serve", "--host", "example.org"), 2, "allowed are 127.0.0.1, ::1 and localhost"),
    ],
)
def test_an_error_is_one_line_without_a_trace(
    env: dict[str, str], arguments: tuple[str, ...], code: int, message: str
) -> None:
    actual, _, err = run(*arguments)
    assert (actual, message in err, "Traceback" in err) == (code, True, False), err


def test_an_invalid_setting_is_one_line(env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVIUM_CANDIDATES_PER_SOURCE", "many")
    code, _, err = run("doctor")
    assert code == 2
    assert "TRIVIUM_CANDIDATES_PER_SOURCE is 'many'" in err


def test_doctor_on_a_healthy_service(indexed: dict[str, str]) -> None:
    code, out, _ = run("doctor")
    assert code == 0
    assert "2 documents in 1 segments" in out
    assert "fail" not in out


def test_doctor_on_an_empty_index_says_what_to_do(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "one.ndjson").write_text('{"id": "1", "text": "x"}\n')
    run("index", str(tmp_path / "one.ndjson"))
    run("delete", "1")
    code, out, _ = run("doctor")
    assert code == 0
    assert "run `trivium index PATH`" in out


def test_doctor_and_search_name_a_damaged_manifest(indexed: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "data" / "index" / "manifest.json").write_text("{")
    code, out, _ = run("doctor")
    assert code == 1
    assert "manifest.json" in out
    code, _, err = run("search", "x")
    assert code == 1
    assert "manifest.json" in err


@pytest.mark.parametrize(
    "damaged", ["keyword/*/*/meta.json", "segments/*/docnos.npy", "graph/*/*/words.msgpack", "dead/*"]
)
def test_doctor_and_search_report_a_file_that_cannot_be_opened(
    indexed: dict[str, str], tmp_path: Path, damaged: str
) -> None:
    newest = max((tmp_path / "data" / "index").glob(damaged))
    newest.write_bytes(newest.read_bytes()[:3])
    code, out, _ = run("doctor")
    assert (code, "checksum mismatch" in out) == (1, True)
    code, _, err = run("search", "x")
    assert (code, "checksum mismatch" in err) == (1, True)


def test_a_port_in_use_is_reported_before_any_work(env: dict[str, str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        for command in ("serve", "demo"):
            code, _, err = run(command, "--port", port)
            assert (code, f"port {port} of 127.0.0.1 cannot be used" in err) == (1, True)


def test_memory_is_searched_only_by_name(env: dict[str, str]) -> None:
    run("index", "-", stdin='{"id":"m","text":"remember me","collection":"memory"}\n')
    assert json.loads(run("search", "remember", "--json")[1])["hits"] == []
    found = json.loads(run("search", "remember", "--json", "--collection", "memory")[1])["hits"]
    assert [hit["id"] for hit in found] == ["m"]


def test_control_characters_are_not_printed(env: dict[str, str]) -> None:
    run("index", "-", stdin='{"id":"a","title":"\\u001b[31mred","text":"bell \\u0007 \\u001b]0;title"}\n')
    _, out, _ = run("search", "bell", "--explain")
    assert "red" in out
    assert not any(each in out for each in "\x1b\x07")


def test_doctor_requests_a_static_encoder_and_tidy_fits_it(
    env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = "".join(f'{{"id":"{n}","text":"number {n} of some words"}}\n' for n in range(30))
    run("index", "-", stdin=lines)
    monkeypatch.setattr(embedded, "MIN_FIT_DOCUMENTS", 20)
    file = Path(env["TRIVIUM_DATA_DIR"]) / "static-encoder.bin"
    assert run("tidy")[0] == 0
    assert not file.exists()  # no query uses it
    monkeypatch.setenv("TRIVIUM_QUERY_ENCODER", "static")
    code, out, _ = run("doctor")
    assert code == 1
    assert "static encoder: none -> run `trivium tidy`" in out
    assert run("tidy")[0] == 0
    assert file.exists()
    assert run("doctor")[0] == 0


def search(address: str, query: str) -> list[str]:
    body = json.dumps({"query": query, "timeout_ms": 10_000}).encode()
    with urllib.request.urlopen(urllib.request.Request(f"{address}/v1/search", body), timeout=30) as response:
        return [hit["id"] for hit in json.load(response)["hits"]]


def test_both_workers_follow_the_writes_of_another_process(serve: Serve, indexed: dict[str, str]) -> None:
    with serve(indexed, "--workers", "2") as (_, address):
        assert search(address, "Christopher Nolan")[0] in {"nolan", "prestige"}
        run("index", "-", stdin='{"id":"late","text":"Zanzibar is an island"}\n')
        deadline = time.monotonic() + 20
        # Each connection may reach either worker: after twenty in a row both have been reached.
        row = 0
        while row < 20:
            assert time.monotonic() < deadline, "a worker did not read the write within 20 s"
            row = row + 1 if search(address, "Zanzibar")[:1] == ["late"] else 0


_INDEX = [sys.executable, "-m", "orchestrator", "index"]


@pytest.mark.slow
def test_kill_9_during_index_then_index_again_is_complete_and_without_duplicates(
    env: dict[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "many.ndjson"
    path.write_text("".join(f'{{"id":"{n}","text":"document number {n} about topic {n % 7}"}}\n' for n in range(6_000)))
    assert 0 < kill_after(0, [*_INDEX, str(path)], env) < 6_000
    done = subprocess.run([*_INDEX, "--json", str(path)], env=env, capture_output=True, check=True, text=True)
    outcome = json.loads(done.stdout)
    counts = {"indexed": 6_000, "rejected": 0, "documents": 6_000, "errors": []}
    assert outcome == {"tenant": "default", "environment": "default", "collections": {"documents": 6_000}, **counts}
    assert run("doctor")[0] == 0
    response = json.loads(run("search", "document number 4711", "--mode", "keyword", "--limit", "50", "--json")[1])
    ids = [hit["id"] for hit in response["hits"]]
    assert ids[0] == "4711"
    assert len(ids) == len(set(ids))


def test_every_command_has_help() -> None:
    for command in ("demo", "serve", "index", "search", "tidy", "doctor"):
        code, out, _ = run(command, "--help")
        assert code == 0
        assert command in out


def test_rebuild_puts_a_new_index_in_the_place_of_a_damaged_one(indexed: dict[str, str], tmp_path: Path) -> None:
    index = tmp_path / "data" / "index"
    vectors = max(index.glob("segments/*/vectors.f32"))
    vectors.write_bytes(bytes(vectors.stat().st_size))
    code, out, _ = run("doctor")
    assert (code, str(vectors) in out, "`trivium rebuild`" in out) == (1, True, True)
    code, out, _ = run("rebuild")
    assert (code, out) == (
        0,
        f"2 documents, 2 of them encoded again, 0 lost; the damaged index is in {index}.replaced-0\n",
    )
    assert run("doctor")[0] == 0
    assert json.loads(run("search", "who is Christopher Nolan", "--json")[1])["hits"][0]["id"] == "nolan"
    records = max(index.glob("segments/*/records.bin"))
    records.write_bytes(records.read_bytes().replace(b"Prestige", b"prestige"))
    code, out, _ = run("rebuild")
    assert (code, out.startswith("1 documents, 0 of them encoded again, 1 lost")) == (1, True)
    assert [hit["id"] for hit in json.loads(run("search", "film", "--json")[1])["hits"]] == ["nolan"]


@pytest.mark.parametrize(
    "file", ["index/centrality.msgpack", "confidence.json", "graph-trust.json", "installation-id", "static-encoder.bin"]
)
def test_doctor_names_every_other_damaged_file(indexed: dict[str, str], tmp_path: Path, file: str) -> None:
    path = tmp_path / "data" / file
    content = path.read_bytes() if path.exists() else b"?"
    path.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    code, out, _ = run("doctor")
    assert (code, str(path) in out) == (1, True)
    path.unlink()
    assert run("doctor")[0] == 0


def test_no_other_user_reads_what_a_command_writes(python: str, env: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "private"
    command = [python, "-m", "orchestrator", "index", "-"]
    environment = {**env, "TRIVIUM_DATA_DIR": str(folder)}
    subprocess.run(command, env=environment, input=LINES.encode(), check=True, capture_output=True)
    written = list(folder.rglob("*"))
    assert written
    assert not [each for each in written if each.stat().st_mode & 0o077]
