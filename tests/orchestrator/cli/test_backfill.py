"""``trivium backfill`` and ``trivium generations``, as an operator uses them."""

from __future__ import annotations

import json
import random
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from orchestrator.cli.main import main
from orchestrator.indexing.generations.catalog import Catalog, Generations
from tests.orchestrator.served import environment

NAME = "trivium_default_all_2"
DOCUMENTS = [
    {"id": f"d{n}", "title": f"Lake {n}", "text": f"The lake number {n} is deep.", "tags": ["lake"]} for n in range(120)
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, model_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRIVIUM_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("TRIVIUM_MODEL_DIR", str(model_dir))
    return tmp_path


def run(*arguments: str, stdin: str | None = None) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, arguments, input=stdin, catch_exceptions=False)
    return result.exit_code, result.stdout, result.stderr


def lines(documents: list[dict[str, object]]) -> str:
    return "\n".join(map(json.dumps, documents))


def found(query: str) -> list[str]:
    response = json.loads(run("search", query, "--json")[1])
    assert response["degraded"] == []
    return [hit["id"] for hit in response["hits"]]


def exported() -> list[str]:
    return sorted(run("export")[1].splitlines())


def test_a_generation_is_built_compared_made_live_rolled_back_and_dropped(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("generations")[:2] == (0, "no generation: nothing has been indexed yet\n")
    assert run("index", "-", stdin=lines(DOCUMENTS))[0] == 0
    before, documents = found("lake 7"), exported()
    monkeypatch.setenv("TRIVIUM_EMBEDDING_TEXT", "title")
    code, out, _ = run("backfill", "--dry-run")
    assert (code, "120 documents would be read" in out, "120 were encoded" in out) == (0, True, True)
    assert [each.name for each in Catalog(folder / "data").read().known] == ["trivium"]
    code, out, err = run("backfill")
    assert code == 0, err
    assert "vector 120, keyword 120, graph 120" in out
    assert "120 of 120 sampled documents are the same" in out
    assert out.endswith(f"make it live with `trivium generations switch {NAME}`\n")
    runs = {re.findall(r'"run":"([0-9a-f]{8})"', line)[0] for line in err.splitlines() if line.startswith("{")}
    assert len(runs) == 1
    assert found("lake 7") == before
    assert run("index", "-", stdin='{"id": "new", "text": "A volcano."}')[0] == 0
    assert run("delete", "d3")[0] == 0
    code, out, err = run("generations", "switch", NAME)
    assert (code, out.endswith(f"{NAME} is live\n")) == (0, True), err
    assert exported() == sorted([*(each for each in documents if '"d3"' not in each), *newest("new")])
    assert found("volcano")[0] == "new"
    table = run("generations")[1]
    assert re.search(rf"{NAME} │ +live", table)
    assert re.search(r"trivium +│ +complete", table)
    assert "is live already" in run("generations", "switch", NAME)[2]
    code, _, err = run("generations", "drop", "trivium")
    assert (code, "was live a moment ago" in err) == (1, True)
    assert run("generations", "switch", "trivium")[0] == 0
    assert found("volcano")[0] == "new"
    assert "allowed are trivium, trivium_default_all_2" in run("generations", "drop", "trivum")[2]


def newest(id_: str) -> list[str]:
    return [line for line in exported() if f'"{id_}"' in line]


def test_files_are_the_origin_and_what_is_wrong_in_them_is_reported(folder: Path) -> None:
    assert run("index", "-", stdin=lines(DOCUMENTS))[0] == 0
    source = folder / "documents.ndjson"
    source.write_text(lines([*DOCUMENTS[:50], {"id": "x", "text": 5}, {"id": "y", "colour": "red"}, DOCUMENTS[50]]))
    code, _, err = run("backfill", str(source), "--min-overlap", "0", "--switch")
    assert code == 0, err
    assert "51 documents read, 2 rejected; 51 written" in err
    rejected = Catalog(folder / "data").folder / NAME / "rejected.ndjson"
    found_ = [json.loads(line) for line in rejected.read_text().splitlines()]
    assert [(each["line"], each["field"]) for each in found_] == [(51, "text"), (52, "")]
    assert all(each["file"] == str(source) for each in found_)
    assert "colour" in found_[1]["reason"]
    assert len(exported()) == 51


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (("--shard", "5/4"), 2, "--shard is '5/4', allowed is i/n with i from 0 to n"),
        (("-",), 2, "standard input cannot be read again after an interruption"),
        (("--shard", "a/b"), 2, "--shard is 'a/b', allowed is i/n"),
        (("missing.ndjson",), 2, "there is no file or folder 'missing.ndjson'"),
        ((".",), 2, "has neither documents.ndjson nor a BEIR corpus"),
        ((), 2, "has no documents: `trivium index PATH` adds some"),
    ],
)
def test_wrong_use_is_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], code: int, reason: str
) -> None:
    monkeypatch.chdir(folder)
    got, _, err = run("backfill", *arguments)
    assert (got, reason in err) == (code, True), err


def test_a_very_different_encoder_is_not_made_live_unless_the_threshold_is_lower(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice = random.Random(0)
    words = [f"{first}{second}la" for first in "bdfgk" for second in "aeiou"]
    documents = [{"id": str(n), "text": " ".join(dice.choices(words, k=12))} for n in range(120)]
    assert run("index", "-", stdin=lines(documents))[0] == 0
    code, _, err = run("backfill", "--min-overlap", "1", "--switch")
    assert code == 0, err
    (folder / "lengths.py").write_text("def encode(texts):\n    return [[1.0, float(len(each))] for each in texts]\n")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("TRIVIUM_EMBEDDER", "python://lengths:encode")
    code, _, err = run("backfill", "--min-overlap", "1", "--switch")
    assert (code, "of the live hits, the minimum is 100% (--min-overlap)" in err) == (1, True)
    assert Catalog(folder / "data").read().live == 2
    assert run("backfill", "--resume", "--min-overlap", "0", "--switch")[0] == 0
    assert Catalog(folder / "data").read().live == 3


def test_files_fill_a_data_folder_that_does_not_exist(folder: Path) -> None:
    source = folder / "documents.ndjson"
    source.write_text(lines(DOCUMENTS))
    code, _, err = run("backfill", str(source), "--switch")
    assert code == 0, err
    assert len(exported()) == 120
    assert Catalog(folder / "data").read().live == 2


def test_a_file_that_has_changed_since_is_noticed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = folder / "documents.ndjson"
    source.write_text(lines(DOCUMENTS))
    assert run("backfill", str(source), "--shard", "0/2")[0] == 0
    source.write_text(lines(DOCUMENTS[1:]))
    code, _, err = run("backfill", str(source), "--resume", "--shard", "1/2")
    assert (code, f"{NAME} was begun with other content of its files" in err) == (2, True), err


def test_a_generation_that_lacks_documents_cannot_be_made_live(folder: Path) -> None:
    assert run("index", "-", stdin=lines(DOCUMENTS))[0] == 0
    assert run("backfill")[0] == 0
    catalog = Catalog(folder / "data")
    env = {"TRIVIUM_DATA_DIR": str(catalog.folder / NAME)}
    assert CliRunner().invoke(main, ["delete", "d1", "d2"], env=env).exit_code == 1  # it is not live
    known = catalog.read()
    catalog.update(lambda known: replace(known, live=2))
    assert run("delete", "d1", "d2")[0] == 0
    catalog.update(lambda _: known)
    (catalog.folder / "changes").unlink()  # otherwise it would be brought up to date
    code, _, err = run("generations", "switch", NAME)
    assert (code, "118 documents of 120 are in the new generation, 0 may differ" in err) == (1, True), err


@pytest.mark.slow
def test_four_processes_share_the_work_and_one_that_was_killed_is_gone_on_with(folder: Path, python: str) -> None:
    many = [{**each, "id": f"{each['id']}-{n}"} for n in range(20) for each in DOCUMENTS]
    assert run("index", "-", stdin=lines(many))[0] == 0
    documents = exported()
    env = environment(embedding_text="title")

    def start(shard: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [python, "-m", "orchestrator", "backfill", "--resume", "--shard", f"{shard}/4", "--min-overlap", "0"],
            env=env,
        )

    shards = [start(number) for number in range(4)]
    progress = Catalog(folder / "data").folder / NAME / "backfill" / "shard-2" / "progress"
    deadline = time.monotonic() + 60
    while not progress.exists():
        assert time.monotonic() < deadline
        time.sleep(0.005)
    shards[2].send_signal(signal.SIGKILL)
    for each in shards:
        each.wait()
    assert start(2).wait() == 0
    assert run("generations", "switch", NAME)[0] == 0
    assert exported() == documents


@pytest.mark.server
@pytest.mark.slow
def test_a_generation_on_servers(
    folder: Path, server_url: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"backfill-{uuid4().hex[:8]}"
    for variable, value in {
        "KEYWORD": server_url("opensearch"),
        "GRAPH": server_url("bolt"),
        "INDEX_NAME": name,
    }.items():
        monkeypatch.setenv(f"TRIVIUM_{variable}", value)
    assert run("index", "-", stdin=lines(DOCUMENTS))[0] == 0
    before = found("lake 7")
    monkeypatch.setenv("TRIVIUM_ENTITY_EXTRACTOR", "none://")
    code, out, err = run("backfill")
    assert code == 0, err
    assert "keyword 120, graph 120" in out
    assert run("index", "-", stdin='{"id": "new", "text": "A volcano."}')[0] == 0
    assert run("delete", "d3")[0] == 0
    assert run("generations", "switch", f"{name}_default_all_2")[0] == 0
    assert found("volcano")[0] == "new"
    assert "d3" not in found("lake 3")
    assert len(exported()) == 120
    assert run("generations", "switch", name)[0] == 0
    assert found("lake 7")[:3] == before[:3]
    Catalog(folder / "data").update(_long_ago)
    assert run("generations", "drop", f"{name}_default_all_2")[0] == 0
    code, out, _ = run("doctor")
    assert (code, "TRIVIUM_ENTITY_EXTRACTOR is 'none://'" in out) == (1, True)
    monkeypatch.delenv("TRIVIUM_ENTITY_EXTRACTOR")
    assert run("doctor")[0] == 0


def _long_ago(known: Generations) -> Generations:
    for each in known.known:
        known = known.with_(replace(each, left_at=None if each.left_at is None else 0.0))
    return known
