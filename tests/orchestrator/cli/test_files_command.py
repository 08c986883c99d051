"""``trivium index FOLDER``."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner

from orchestrator.cli.main import main
from tests.orchestrator.cli.killed import kill_after

ROOT = Path(__file__).parents[3]
_INDEX = [sys.executable, "-m", "orchestrator", "index"]
_SMALL_WRITES = (
    "from orchestrator.service import line_writer; line_writer.MAX_WRITE_DOCUMENTS = 8\n"
    "from orchestrator.service import folders; folders.MAX_BATCH_DOCUMENTS = 4\n"
    "from orchestrator.cli.main import main; main()"
)
"""The command, with writes of a few documents, so that it can be killed between two of them."""
_INTERRUPTIBLE = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    "from orchestrator.cli.main import main; main()"
)
"""The command as a terminal starts it: a shell starts processes in the background with this signal ignored."""


@pytest.fixture(autouse=True)
def env(tmp_path: Path, model_dir: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv("TRIVIUM_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("TRIVIUM_MODEL_DIR", str(model_dir))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return dict(os.environ)


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    (folder / "guide").mkdir(parents=True)
    (folder / "README.md").write_text("# Kettle\n\nA kettle boils water. See [the guide](guide/cleaning.md).\n")
    (folder / "guide" / "cleaning.md").write_text(
        "---\ntags: [care]\naliases: [Descaling]\n---\n# Cleaning\n\n"
        + "A paragraph about nothing in particular, which is here to make the page long. " * 20
        + "\n\n## Limescale\n\nVinegar dissolves limescale within an hour.\n"
    )
    (folder / "page.html").write_text("<html><head><title>Prices</title></head><body><p>Ten euros.</p></body></html>")
    (folder / "logo.png").write_bytes(b"\x89PNG")
    return folder


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    return result.exit_code, result.stdout, result.stderr


def test_a_folder_is_indexed_and_its_sections_are_found(docs: Path) -> None:
    code, out, err = run("index", str(docs))
    assert (code, out.startswith("3 files added, 0 changed, 0 unchanged, 0 removed; ")) == (0, True)
    assert "left out: .png files (1)" in err
    assert "graph: 1 link between files, 0 that lead nowhere; " in err
    assert "67% of the files have a link" in err
    assert "tenant default, environment default, collection documents; took" in err
    (hit, *_) = json.loads(run("search", "what dissolves limescale?", "--json")[1])["hits"]
    assert (hit["id"], hit["parent_id"]) == ("docs/guide/cleaning.md#cleaning/limescale:0", "docs/guide/cleaning.md")
    assert (hit["url"], hit["section"]) == ("docs/guide/cleaning.md#limescale", "Limescale")
    assert (hit["heading_path"], hit["tags"]) == (["Cleaning", "Limescale"], ["care"])
    code, out, _ = run("index", str(docs))
    assert (code, out) == (
        0,
        f"0 files added, 0 changed, 3 unchanged, 0 removed; 0 chunks written; {out.partition('written; ')[2]}",
    )


def test_the_outcome_as_json(docs: Path) -> None:
    (docs / "broken.pdf").write_bytes(b"no PDF")
    (docs / "bad.md").write_text("[x](nowhere.md)")
    code, out, _ = run("index", str(docs), "--json", "--collection", "wiki")
    outcome = json.loads(out)
    assert code == 1
    assert (outcome["added"], outcome["collection"], outcome["dangling"]) == (4, "wiki", 1)
    assert list(outcome["errors"]) == ["docs/broken.pdf"]
    assert outcome["left_out"] == {".png files": 1}


def test_problems_are_shown_by_file(docs: Path) -> None:
    (docs / "broken.pdf").write_bytes(b"no PDF")
    (docs / "odd.md").write_text("---\na: [\n---\ntext [x](nowhere.md)")
    code, out, err = run("index", str(docs))
    assert (code, ", 1 failed; " in out) == (1, True)
    assert "docs/broken.pdf: the PDF cannot be read" in err
    assert "docs/odd.md: the front matter is not read" in err
    assert "1 that lead nowhere (such as docs/odd.md: nowhere.md)" in err


def test_several_paths_and_patterns(docs: Path, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("a note")
    code, out, _ = run("index", f"{docs}/**/*.md", str(tmp_path / "notes"), str(docs / "page.html"))
    assert (code, out.startswith("4 files added")) == (0, True)


@pytest.mark.parametrize(
    ("name", "text"), [("LICENSE", "Permission is granted"), ("d.csv", "a,b"), ("x.log", "started")]
)
def test_a_text_that_is_named_is_read_whatever_its_name_is(docs: Path, name: str, text: str) -> None:
    (docs / name).write_text(text)
    assert run("index", str(docs / name))[1].startswith("1 file added")
    assert run("index", str(docs / name), str(docs / "README.md"))[1].startswith("1 file added")


def test_a_page_that_cannot_be_converted_stops_nothing(docs: Path) -> None:
    (docs / "odd.html").write_text('<hr><p>Note: [see "the manual</p><hr><p>rest</p>\n')
    (docs / "odd.py").write_bytes(b'x="\xe4" # encoding="undefined"\n')
    assert run("index", str(docs))[0] == 0


def test_chunks_have_the_size_that_is_asked_for(docs: Path) -> None:
    small = json.loads(run("index", str(docs), "--json", "--chunk-tokens", "40")[1])["chunks"]
    large = json.loads(run("index", str(docs), "--json", "--chunk-tokens", "400")[1])["chunks"]
    assert small > 8 > large


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["{docs}/READM.md"], "there is no file {docs}/READM.md; the nearest is {docs}/README.md"),
        (["{docs}/*.xyz"], "no file matches {docs}/*.xyz"),
        (["{docs}", "{lines}"], "{lines} has documents on its lines, and the others are files: index it by itself"),
        (
            ["{empty}"],
            "{empty} has no files to index: give a folder of documents, or an NDJSON file; if its files are gone, ",
        ),
        (["{images}"], "{images} has no files to index (1 .png files are left out)"),
        (["{lines}", "--watch"], "--watch is for folders of files"),
        (["{lines}", "--keep-missing"], "--keep-missing is for folders of files"),
        (["{lines}", "--chunk-tokens", "200"], "--chunk-tokens is for folders of files"),
        (["{docs}", "--keep-missing", "--remove-missing"], "--keep-missing and --remove-missing cannot both be given"),
        (["{docs}", "--chunk-tokens", "3"], "--chunk-tokens: 3, allowed are 16 to 4096"),
        (["{docs}", "--collection", ""], "--collection is '', allowed are names of 1 to 512 bytes"),
    ],
)
def test_what_cannot_be_indexed_is_named(docs: Path, tmp_path: Path, arguments: list[str], error: str) -> None:
    paths = {name: tmp_path / name for name in ("empty", "images")}
    for path in paths.values():
        path.mkdir()
    (tmp_path / "images" / "a.png").write_bytes(b"x")
    paths |= {"docs": docs, "lines": tmp_path / "lines.ndjson"}
    paths["lines"].write_text('{"id": "1", "text": "x"}\n')
    code, _, err = run("index", *(each.format(**paths) for each in arguments))
    assert code in {1, 2}
    assert error.format(**paths) in " ".join(err.replace("│", " ").split())
    assert not (tmp_path / "data").exists()


def test_the_documents_of_an_emptied_folder_are_removed_on_request(docs: Path) -> None:
    run("index", str(docs))
    shutil.rmtree(docs)
    docs.mkdir()
    code, _, err = run("index", str(docs))
    assert (code, "--remove-missing removes their documents" in err.replace("\n", " ")) == (1, True)
    code, out, _ = run("index", str(docs), "--remove-missing")
    assert (code, "0 files added, 0 changed, 0 unchanged, 3 removed" in out.replace("\n", " ")) == (0, True)
    assert "the index has 0 documents" in out.replace("\n", " ")


def test_files_that_searches_here_do_not_find_are_counted(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (docs / "secret.md").write_text("---\nsensitivity: sensitive\n---\n# Secret\n\nThe platypus pays no taxes.\n")
    line = "1 file is sensitive: searches here find them with TRIVIUM_OPEN_CLEARANCE=sensitive only"
    assert line in run("index", str(docs))[2]
    assert "nothing found" in run("search", "platypus", "--mode", "keyword")[1]
    monkeypatch.setenv("TRIVIUM_OPEN_CLEARANCE", "sensitive")
    assert line not in run("index", str(docs))[2]
    assert "secret.md" in run("search", "platypus", "--mode", "keyword")[1]


def test_watching_ends_at_once_if_nothing_can_be_indexed(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    code, _, err = run("index", str(tmp_path / "empty"), "--watch")
    assert (code, "has no files to index" in err) == (1, True)


@pytest.mark.parametrize("path", ["data", "data/index"])
def test_the_folder_of_the_index_is_not_indexed(docs: Path, tmp_path: Path, path: str) -> None:
    run("index", str(docs))
    code, _, err = run("index", str(tmp_path / path))
    assert code == 1
    assert f"{tmp_path / path} is in the data folder of the index, which TRIVIUM_DATA_DIR names" in err.replace(
        "\n", ""
    )


@pytest.mark.slow
@pytest.mark.process
def test_changes_are_followed_until_ctrl_c(docs: Path, env: dict[str, str]) -> None:
    command = [sys.executable, "-c", _INTERRUPTIBLE, "index", str(docs), "--watch"]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as watcher:
        limit = threading.Timer(120, watcher.kill)  # ends the output, and so the test
        limit.start()
        wait_for_run(watcher, b"3 files added")
        (docs / "new.md").write_text("a new page")
        wait_for_run(watcher, b"1 file added, 0 changed, 3 unchanged, 0 removed")
        (docs / "new.md").unlink()
        wait_for_run(watcher, b"0 files added, 0 changed, 3 unchanged, 1 removed")
        watcher.send_signal(signal.SIGINT)
        assert watcher.wait() == 0
        limit.cancel()


def wait_for_run(watcher: subprocess.Popen[bytes], outcome: bytes) -> None:
    """Wait until a run with an outcome has ended; one change of a file may be two of the file system."""
    assert watcher.stdout is not None
    assert watcher.stderr is not None
    is_outcome = False
    while not is_outcome:
        printed = watcher.stdout.readline()
        assert printed
        is_outcome = printed.startswith(outcome)
        while b"watching for changes" not in (line := watcher.stderr.readline()):
            assert line


@pytest.mark.slow
@pytest.mark.process
def test_a_run_that_is_killed_and_repeated_leaves_what_an_uninterrupted_one_does(
    tmp_path: Path, env: dict[str, str]
) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    for number in range(40):
        text = "\n\n".join(f"# Part {part}\n\n{f'words of page {number} ' * 30}" for part in range(1 + number % 4))
        (docs / f"{number}.md").write_text(f"{text}\n\nSee [the next]({number + 1}.md) and [[{number // 2}]].")
    expected = exported(env | {"TRIVIUM_DATA_DIR": str(tmp_path / "whole")}, docs)
    choice = random.Random(5)
    for attempt in range(10):
        data = tmp_path / f"killed-{attempt}"
        of_attempt = env | {"TRIVIUM_DATA_DIR": str(data)}
        kill_after(choice.randint(0, 90), [sys.executable, "-c", _SMALL_WRITES, "index", str(docs)], of_attempt)
        assert exported(of_attempt, docs) == expected


def exported(env: dict[str, str], docs: Path) -> list[str]:
    """Index a folder, and return all documents."""
    subprocess.run([*_INDEX, str(docs)], env=env, capture_output=True, check=True)
    done = subprocess.run([*_INDEX[:3], "export"], env=env, capture_output=True, check=True, text=True)
    return sorted(done.stdout.splitlines())
