"""What new users do first: each stumble has a test."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import time
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from orchestrator.cli import index_command, progress
from orchestrator.cli.main import main
from orchestrator.cli.progress import duration, progress_bar
from orchestrator.cli.tables import Column, print_table
from tests.orchestrator.served import Serve

LINES = (
    '{"id":"nolan","title":"Christopher Nolan","text":"A director of films."}\n'
    '{"id":"pasta","title":"Pasta","text":"Boil water.","collection":"food","tags":["dinner"]}\n'
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, model_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRIVIUM_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("TRIVIUM_MODEL_DIR", str(model_dir))
    (tmp_path / "documents.ndjson").write_text(LINES)
    return tmp_path


def run(*arguments: str, stdin: str | bytes | None = None) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, arguments, input=stdin, catch_exceptions=False)
    return result.exit_code, result.stdout, result.stderr


def hits(*arguments: str) -> list[str]:
    code, out, err = run("search", *arguments, "--json")
    assert code == 0, err
    return [hit["id"] for hit in json.loads(out)["hits"]]


@pytest.mark.parametrize("width", [80, 100, 120])
def test_no_figure_of_a_table_is_cut(width: int) -> None:
    console = Console(width=width, record=True)
    names = ["run", *(f"measure {number}" for number in range(12))]
    rows = [[f"hybrid/{row}", *(f"0.{row}{number:03}" for number in range(12))] for row in range(3)]
    print_table(console, [Column(name) for name in names], rows)
    printed = console.export_text()
    assert all(value in printed for value in (*names, *(each for row in rows for each in row)))
    assert all(len(line) <= width for line in printed.splitlines())


def test_a_snippet_shows_the_passage_that_matches(folder: Path) -> None:
    text = "Nothing of interest. " * 40 + "A magician vanishes. " + "Nothing else. " * 40
    run("index", "-", stdin=json.dumps({"id": "1", "text": text}))
    out = run("search", "magician")[1]
    assert "magician" in out
    assert "…" in out


def test_the_cursor_is_shown_only_while_paging(folder: Path) -> None:
    run("index", "-", stdin="\n".join(f'{{"id":"{n}","text":"stars"}}' for n in range(5)))
    first = run("search", "stars", "--limit", "2")[1]
    assert "--cursor" not in first
    assert "2 of 5: --limit shows more" in first
    cursor = json.loads(run("search", "stars", "--limit", "2", "--json")[1])["next_cursor"]
    assert "--cursor" in run("search", "stars", "--limit", "2", "--cursor", cursor)[1]


def test_progress_has_a_total_a_rate_and_the_remaining_time() -> None:
    console = Console(width=80, force_terminal=True, record=True)
    with progress_bar(console, "encoding", "documents", 1_000) as advance:
        for _ in range(5):
            advance(50)
            time.sleep(0.02)  # a rate needs time that passes
    printed = console.export_text()
    assert "250 of 1,000 documents" in printed
    assert re.search(r"[\d,.e+]+ a second, [\d.]+ s left", printed)


@pytest.mark.parametrize(
    ("seconds", "expected"), [(0.04, "0.0 s"), (3.21, "3.2 s"), (125, "2 min 5 s"), (3_780, "1 h 3 min")]
)
def test_durations(seconds: float, expected: str) -> None:
    assert duration(seconds) == expected


def test_index_says_where_it_wrote_and_how_long_it_took(folder: Path) -> None:
    code, out, err = run("index", str(folder / "documents.ndjson"))
    assert (code, out) == (0, "2 indexed, 0 rejected; the index has 2 documents\n")
    written_to = r"tenant default, environment default, collection documents, food; took [\d.]+ s"
    assert re.fullmatch(written_to, err.splitlines()[-1])


def test_a_file_of_documents_has_a_known_total(folder: Path) -> None:
    with index_command._lines(str(folder / "documents.ndjson")) as (lines, total):
        assert (len(list(lines)), total) == (2, 2)


def test_documents_of_another_tenant_and_collection(folder: Path) -> None:
    run("index", str(folder / "documents.ndjson"), "--tenant", "acme", "--collection", "films")
    assert hits("nolan") == []
    assert hits("nolan", "--tenant", "acme", "--filter", '{"collection": "films"}') == ["nolan"]
    assert "pasta" in run("list", "--tenant", "acme", "--collection", "food")[1]
    assert run("export")[1] == ""
    assert len(run("export", "--tenant", "acme")[1].splitlines()) == 2
    assert run("delete", "nolan")[1].endswith("1 not found\n")
    assert run("delete", "nolan", "--tenant", "acme")[1].startswith("1 deleted")
    assert run("index", "-", "--tenant", "", stdin=LINES)[::2] == (
        2,
        "trivium: --tenant is '', allowed are names of 1 to 512 bytes\n",
    )


def test_a_key_searches_the_documents_of_its_tenant(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("index", str(folder / "documents.ndjson"), "--tenant", "acme")
    assert "--key needs the file of API keys" in run("search", "nolan", "--key", "x")[2]
    monkeypatch.setenv("TRIVIUM_KEYS_FILE", str(folder / "keys"))
    key = run("keys", "add", "agent", "--tenant", "acme")[1].strip()
    assert hits("nolan", "--key", key)[:1] == ["nolan"]
    assert "--key is no API key" in run("search", "nolan", "--key", "x")[2]
    assert "a key has a tenant already" in run("search", "nolan", "--key", key, "--tenant", "acme")[2]


def test_keys_are_listed_with_id_creation_and_expiry(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVIUM_KEYS_FILE", str(folder / "keys"))
    keys = {name: run("keys", "add", name, *more)[1] for name, more in (("a", ()), ("b", ("--expires-in-days", "2")))}
    listed = {each["name"]: each for each in json.loads(run("keys", "list", "--json")[1])}
    assert {name: each["id"] for name, each in listed.items()} == {n: key.split("_")[1] for n, key in keys.items()}
    assert "sha256" not in listed["a"]
    assert listed["a"].get("expires_at") is None
    assert listed["b"]["expires_at"] > listed["b"]["created_at"]
    printed = run("keys", "list")[1]
    assert "never" in printed
    assert listed["a"]["id"] in printed


def test_search_takes_what_http_takes(folder: Path) -> None:
    run("index", str(folder / "documents.ndjson"))
    assert hits("films", "--collection", "food", "--limit", "1") == ["pasta"]
    assert hits("films", "--filter", '{"tags": "dinner"}', "--profile", "rrf", "--fusion", "rrf(k=10)") == ["pasta"]
    options = ("--weights", "keyword=2, vector=0.5", "--boosts", "recency=0.3,importance", "--timeout", "5000")
    code, out, _ = run("search", "films", "--json", "--explain", *options)
    response = json.loads(out)
    assert (code, response["timeout_ms"]) == (0, 5_000)
    assert response["explain"]["weights"]["keyword"] == 2
    assert response["explain"]["boosts"] == ["importance", "recency"]
    assert hits("films", "--min-confidence", "0") != []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--filter", "x"], "filter: 'x' is not JSON such as"),
        (["--weights", "vector"], "--weights is 'vector': write `source=weight`"),
        (["--weights", "vector=a"], "--weights: vector is 'a', allowed are numbers"),
        (["--weights", "vectr=1"], "unknown source 'vectr', allowed are vector, graph, keyword; the nearest is vector"),
        (["--boosts", "recnecy"], "unknown key 'recnecy'"),
        (["--limit", "100"], "limit: 100, allowed are 1 to 50"),
        (["--timeout", "0"], "timeout_ms: 0, allowed are 1 to 60000"),
        (["--url", "localhost"], "--url is 'localhost', allowed is the address of a service"),
    ],
)
def test_an_option_that_is_not_allowed_says_what_is(arguments: list[str], message: str) -> None:
    code, _, err = run("search", "x", *arguments)
    assert (code, message in err, err.count("\n")) == (2, True, 1), err


def test_search_at_a_running_service(serve: Serve, folder: Path) -> None:
    run("index", str(folder / "documents.ndjson"))
    with serve(dict(os.environ)) as (_, url):
        assert hits("nolan", "--url", url, "--limit", "1") == ["nolan"]
        assert "Christopher Nolan" in run("search", "nolan", "--url", url)[1]
        code, _, err = run("search", "nolan", "--url", url, "--limit", "99")
        assert (code, "limit: 99, allowed are 1 to 50" in err) == (2, True)
    code, _, err = run("search", "nolan", "--url", "http://127.0.0.1:1")
    assert (code, "http://127.0.0.1:1 cannot be reached" in err, err.count("\n")) == (1, True, 1)


def test_a_job_without_a_terminal_logs_its_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console(file=io.StringIO(), force_terminal=False, width=80)
    monkeypatch.setattr(progress, "_LOG_S", 0.0)
    with progress_bar(console, "encoding", "documents", 10) as advance:
        advance(4)
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().startswith("encoding: 4 of 10 documents")


@pytest.mark.parametrize(
    "command",
    [["search", "x"], ["list"], ["export"], ["delete", "x"], ["tidy"], ["quarantine"], ["rebuild"], ["leftovers"]],
)
def test_a_mistyped_data_folder_is_not_created(folder: Path, command: list[str]) -> None:
    code, out, err = run(*command)
    assert not (folder / "data").exists()
    assert code == (2 if command == ["rebuild"] else 0)
    if command[0] in ("search", "list", "rebuild"):
        assert "has no documents: `trivium index PATH` adds some; TRIVIUM_DATA_DIR names another folder" in out + err


def test_an_export_has_every_clearance_and_says_what_other_tenants_have(folder: Path) -> None:
    run("index", "-", stdin='{"id":"hidden","text":"Hidden.","sensitivity":"restricted"}')
    run("index", "-", "--tenant", "acme", stdin='{"id":"other","text":"Of a tenant."}')
    code, out, err = run("export")
    assert (code, [json.loads(line)["id"] for line in out.splitlines()]) == (0, ["hidden"])
    assert "1 documents of other tenants or environments were not printed" in err
    assert "hidden" in run("list")[1]
    assert "1 deleted" in run("delete", "hidden")[1]
    assert "other tenants" not in run("export", "--collection", "documents")[2]


def test_leftovers_are_listed_with_their_size_and_removed(folder: Path) -> None:
    data = folder / "data"
    for name in ("evaluations/films-0123456789ab", "index.replaced-0"):
        (data / name).mkdir(parents=True)
        (data / name / "file").write_bytes(b"x" * 1_000)
    run("index", str(folder / "documents.ndjson"))
    code, out, _ = run("leftovers")
    assert code == 0
    assert all(each in out for each in ("films-0123456789ab", "index.replaced-0", "1.0 kB"))
    assert "2 leftovers in" in out
    assert "2.0 kB; --remove deletes them" in " ".join(out.split())
    assert "2 leftovers removed, 2.0 kB" in run("leftovers", "--remove")[1]
    assert "0 leftovers in" in run("leftovers")[1]
    assert "nolan" in hits("nolan")


def test_the_version() -> None:
    assert re.fullmatch(r"trivium \d+\.\d+\.\d+\n", run("--version")[1])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", '{\n  "id": "1",\n  "text": "x"\n}\n' * 100, "is JSON over several lines"),
        ("a.json", '{"id": "1",\n"text": "x"}', "is JSON over several lines"),
        ("a.json", '[{"id": "1", "text": "x"}]', "is a JSON array"),
        ("-", "# Title\n\nText\n" * 500, "is no NDJSON: it begins with '# Title'"),
        ("-", "%PDF-1.7\n...", "is a PDF; allowed is NDJSON"),
        ("a.parquet", "PAR1\x00\x01", "is a Parquet file; allowed is NDJSON"),
        ("a.sqlite", "SQLite format 3\x00", "is an SQLite database; allowed is NDJSON"),
        ("a.bin", "\x00\x01\x02", "is no text; allowed is NDJSON"),
        ("a.docx", "PK\x03\x04...", "is a ZIP archive or an office document"),
    ],
)
def test_a_file_that_is_no_ndjson_is_one_line(folder: Path, name: str, content: str, message: str) -> None:
    (folder / name).write_text(content)
    code, out, err = run("index", "-" if name == "-" else str(folder / name), stdin=content)
    assert (code, out, message in err, err.count("\n")) == (1, "", True, 1), err
    assert not (folder / "data").exists()


def test_a_line_that_is_no_json_among_others_is_reported_alone(folder: Path) -> None:
    code, out, err = run("index", "-", stdin=f"# comment\n{LINES}")
    assert (code, out) == (1, "2 indexed, 1 rejected; the index has 2 documents\n")
    assert err.startswith("line 1: ")


def test_an_empty_index_and_folders_without_documents(folder: Path) -> None:
    code, out, _ = run("search", "x")
    assert (code, "has no documents: `trivium index PATH` adds some" in out.replace("\n", " ")) == (0, True)
    (folder / "empty").mkdir()
    assert "empty has no files to index: give a folder of documents" in run("index", str(folder / "empty"))[2]
    (folder / "empty" / "a.dat").write_text("x")
    assert "empty has no files to index (1 .dat files are left out)" in run("index", str(folder / "empty"))[2]


def test_a_file_that_does_not_exist_and_the_nearest_that_does(folder: Path) -> None:
    code, _, err = run("index", str(folder / "document.ndjson"))
    assert (code, "Errno" in err) == (1, False)
    assert f"there is no file {folder}/document.ndjson; the nearest is {folder}/documents.ndjson" in err


def test_doctor_changes_nothing_and_ends_in_a_summary(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = sorted(folder.rglob("*"))
    code, out, _ = run("doctor")
    assert (code, sorted(folder.rglob("*"))) == (1, before)
    assert f"{folder}/data does not exist -> `trivium index PATH` writes documents there" in out
    assert re.search(r"^\d+ examined, 1 needs attention; took [\d.]+ s$", out, re.MULTILINE)
    monkeypatch.chdir(folder)
    with monkeypatch.context() as unset:
        unset.delenv("TRIVIUM_DATA_DIR")
        code, out, _ = run("doctor")
    assert (code, "/.trivium has no data yet" in out, sorted(folder.rglob("*"))) == (0, True, before)
    run("index", str(folder / "documents.ndjson"))
    code, out, _ = run("doctor")
    assert (code, "nothing needs attention" in out) == (0, True)
    lines = out.splitlines()
    assert len(lines) == len(set(lines))
    findings = json.loads(run("doctor", "--json")[1])
    assert findings["problems"] == 0
    assert {each["subject"] for each in findings["findings"]} >= {"data folder", "index", "vector"}


def test_doctor_examines_the_file_of_keys_and_goes_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("index", str(folder / "documents.ndjson"))
    keys = folder / "keys.ndjson"
    monkeypatch.setenv("TRIVIUM_KEYS_FILE", str(keys))
    run("keys", "add", "ours")
    assert f"API keys: {keys} has 1, 0 of them expired" in run("doctor")[1].replace("\n", " ")
    keys.write_text("{}\n")
    code, out, _ = run("doctor")
    assert (code, "fail API keys" in out, "ok   vector" in out) == (1, True, True)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (
            "TRIVIUM_WEIGHTS",
            "vectr=1",
            "'vectr', which is no source, allowed are vector, graph, keyword;",
        ),
        ("TRIVIUM_BOOSTS", "recensy=1", "'recensy' is no boost, allowed are centrality, importance, recency"),
    ],
)
def test_a_setting_with_an_unknown_name_in_its_value_is_reported(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, message: str
) -> None:
    monkeypatch.setenv(name, value)
    code, _, err = run("search", "x")
    assert (code, message in err.replace("\n", " ")) == (2, True)


def test_a_setting_of_a_file_is_named_with_its_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = folder / "settings.env"
    file.write_text("TRIVIUM_MAX_LIMIT=0\n")
    monkeypatch.setenv("TRIVIUM_SETTINGS_FILE", str(file))
    code, _, err = run("search", "x")
    assert (code, err.replace("\n", " ").startswith(f"trivium: {file}: TRIVIUM_MAX_LIMIT is '0'")) == (2, True)


def test_tidy_says_what_it_did_and_how_long_it_took(folder: Path) -> None:
    run("index", str(folder / "documents.ndjson"))
    assert re.fullmatch(r"2 documents merged and measured; took [\d.]+ s\n", run("tidy")[2])


def test_an_unknown_collection_is_named_with_the_nearest(folder: Path) -> None:
    run("index", str(folder / "documents.ndjson"))
    for command in (("list",), ("export",), ("delete", "--dry-run")):
        err = run(*command, "--collection", "foot")[2].replace("\n", " ")
        assert "no document is in the collection 'foot'; the nearest is food" in err
    assert "no document" not in run("list", "--collection", "food")[2]


def test_a_data_folder_that_is_a_file_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVIUM_DATA_DIR", str(folder / "documents.ndjson"))
    code, _, err = run("search", "x")
    assert (code, "it is a file, allowed are folders" in err.replace("\n", " ")) == (2, True)


def test_doctor_says_which_settings_are_in_effect_without_secrets(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = folder / "trivium.env"
    file.write_text("TRIVIUM_FUSION=rrf(k=10)\nTRIVIUM_CACHE=redis://:secret@127.0.0.1:1/0\n")
    monkeypatch.setenv("TRIVIUM_SETTINGS_FILE", str(file))
    findings = {each["subject"]: each["observation"] for each in json.loads(run("doctor", "--json")[1])["findings"]}
    assert "TRIVIUM_FUSION=rrf(k=10)" in findings["settings"]
    assert findings["settings"].endswith(f"with those of {file}")
    assert "secret" not in findings["settings"]


def test_a_setting_that_is_twice_in_a_file_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = folder / "trivium.env"
    file.write_text("TRIVIUM_MAX_LIMIT=20\n\ntrivium_max_limit=30\n")
    monkeypatch.setenv("TRIVIUM_SETTINGS_FILE", str(file))
    code, _, err = run("search", "x")
    assert (code, "'TRIVIUM_MAX_LIMIT' is set twice" in err) == (2, True), err


def test_a_disk_with_little_room_is_a_problem(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("index", "-", stdin=LINES)
    assert run("doctor")[0] == 0
    usage = shutil.disk_usage(folder)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1_000_000))
    code, out, _ = run("doctor")
    assert (code, "its disk has 1 MB left -> make room" in out) == (1, True)


def test_expired_keys_are_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVIUM_KEYS_FILE", str(folder / "keys"))
    run("keys", "add", "old", "--expires-in-days", "0.0000001")
    assert "(expired)" in run("keys", "list", "--json")[1] + run("keys", "list")[1].replace("\n", "")
    assert "1 of them expired (old)" in run("doctor")[1]


def test_fill_changes_nothing_before_every_server_answers(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("index", "-", stdin=LINES)
    monkeypatch.setenv("TRIVIUM_KEYWORD", "opensearch+http://127.0.0.1:1")
    code, out, err = run("fill")
    assert (code, out, "opensearch cannot be reached" in err) == (1, "", True)
    monkeypatch.delenv("TRIVIUM_KEYWORD")
    assert hits("director")[0] == "nolan"
    code, out, err = run("fill")
    assert (code, out, "there is nothing to fill" in err) == (2, "", True)


def test_a_corpus_of_beir_that_is_named_as_a_file_is_one_line(folder: Path) -> None:
    (folder / "corpus.jsonl").write_text('{"_id": "1", "title": "", "text": "x"}\n' * 50)
    code, _, err = run("index", str(folder / "corpus.jsonl"))
    assert (code, err.count("\n"), "name the folder that it is in" in err) == (1, 1, True), err


def test_commands_act_for_the_user_of_the_settings(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = """
        {"id": "private", "text": "alpha", "visibility": "private", "owner": "alice"}
        {"id": "team", "text": "alpha", "visibility": "team", "team": "legal"}
        {"id": "open", "text": "alpha"}
    """
    run("index", "-", stdin=lines)
    monkeypatch.setenv("TRIVIUM_KEYS_FILE", str(folder / "keys"))
    service = run("keys", "add", "service")[1].strip()
    alice = run("keys", "add", "alice", "--user", "alice", "--team", "legal", "--team", "legal")[1].strip()
    assert "alice (legal)" in run("keys", "list")[1]
    assert sorted(hits("alpha")) == sorted(hits("alpha", "--key", service)) == ["open", "private", "team"]
    assert sorted(hits("alpha", "--key", alice)) == ["open", "private", "team"]
    monkeypatch.setenv("TRIVIUM_USER", "bob")
    assert hits("alpha") == hits("alpha", "--key", service) == ["open"]
    assert "'alice' acts for a user or teams already" in run("search", "alpha", "--key", alice)[2]
    monkeypatch.setenv("TRIVIUM_TEAMS", "sales, legal")
    assert sorted(hits("alpha")) == sorted(hits("alpha", "--key", service)) == ["open", "team"]
    assert len(run("export")[1].splitlines()) == 3  # of the owner of the folder
    for name, value in (("USER", ""), ("USER", " bob"), ("TEAMS", ""), ("TEAMS", " , ")):
        monkeypatch.setenv("TRIVIUM_USER", "bob")
        monkeypatch.setenv("TRIVIUM_TEAMS", "legal")
        monkeypatch.setenv(f"TRIVIUM_{name}", value)
        assert f"TRIVIUM_{name}" in run("search", "alpha")[2]


@pytest.mark.parametrize("option", [("--user", " bob"), ("--user", ""), ("--team", "a,b"), ("--user", "é" * 300)])
def test_a_key_has_names_that_requests_can_name(
    folder: Path, monkeypatch: pytest.MonkeyPatch, option: tuple[str, str]
) -> None:
    monkeypatch.setenv("TRIVIUM_KEYS_FILE", str(folder / "keys"))
    assert "allowed are names of 1 to 512 bytes" in run("keys", "add", "a", *option)[2]
    assert not (folder / "keys").exists()
