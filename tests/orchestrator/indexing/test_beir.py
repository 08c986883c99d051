from __future__ import annotations

from pathlib import Path

import pytest

from adapters import Document, Link
from orchestrator.indexing.beir import parse_beir
from orchestrator.indexing.ndjson import MAX_DOCUMENT_BYTES, InvalidLine, ValidLine


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "corpus.jsonl").write_text(
        '{"_id": "1", "title": "One", "text": "first"}\n\n{"_id": 2}\n{"_id": "3", "title": "Title only", "text": ""}\n'
    )
    return tmp_path


def test_without_mentions_the_entities_are_left_to_the_extractor(folder: Path) -> None:
    one, invalid, three = parse_beir(folder)
    assert one == ValidLine(1, Document(id="1", title="One", text="first"))
    assert isinstance(invalid, InvalidLine)
    assert invalid.line == 3
    assert three == ValidLine(4, Document(id="3", title="Title only", text=""))


def test_the_graph_files_become_links_and_entities(folder: Path) -> None:
    (folder / "edges.jsonl").write_text(
        '{"source":"1","target":"3","type":"cites","weight":2}\n{"source":"1","target":"1","type":"cites"}\n'
        '{"source":"3","target":"1","type":"cites"}\n'
    )
    (folder / "mentions.jsonl").write_text('{"doc":"1","entity":"e:x"}\n{"doc":"1","entity":"unnamed"}\n')
    (folder / "entities.jsonl").write_text('{"_id":"e:x","name":"The X"}\n')
    one, _, three = parse_beir(folder)
    assert isinstance(one, ValidLine)
    assert one.document.links == (Link("3", "cites", 2.0),)
    assert one.document.entities == ("The X", "unnamed")
    assert isinstance(three, ValidLine)
    assert (three.document.links, three.document.entities) == ((Link("1", "cites", 1.0),), ())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"source":"1"}', "target: missing, it is required"),
        ('{"source":"1","target":"3","weight":0}', "weight: 0, allowed are numbers above 0 up to 1000"),
        ('{"source":"1","target":"3","type":""}', "type: '', allowed are texts of 1 to 512 characters"),
    ],
)
def test_an_invalid_line_of_a_graph_file_is_reported_and_the_others_are_read(
    folder: Path, line: str, message: str
) -> None:
    (folder / "edges.jsonl").write_text('{"source":"1","target":"3"}\n' + line + "\n")
    invalid, one, *_ = parse_beir(folder)
    assert isinstance(invalid, InvalidLine)
    assert invalid.line == 2
    assert invalid.error.startswith("edges.jsonl: ")
    assert message in invalid.error
    assert isinstance(one, ValidLine)
    assert one.document.links == (Link("3", "link"),)


def test_a_byte_order_mark_is_removed_from_every_file(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text('\ufeff{"_id": "1", "text": "first"}\n')
    (tmp_path / "edges.jsonl").write_text('\ufeff{"source": "1", "target": "2"}\n')
    assert list(parse_beir(tmp_path)) == [ValidLine(1, Document(id="1", text="first", links=(Link("2", "link"),)))]


def test_a_document_is_checked_as_a_line_of_ndjson_is(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text('{"_id": "' + "é" * 300 + '", "text": "x"}\n{"_id": "a", "text": " "}\n')
    first, second = parse_beir(tmp_path)
    assert first == InvalidLine(1, "id: 600 bytes, allowed are 512")
    assert isinstance(second, InvalidLine)
    assert second.error.startswith("text: empty, and so is the title")


def test_a_passage_that_is_too_large_is_refused(folder: Path) -> None:
    passage = '{"_id": "4", "text": "%s"}\n'
    (folder / "corpus.jsonl").write_text(passage % ("x" * MAX_DOCUMENT_BYTES) + passage % "short")
    large, small = parse_beir(folder)
    assert isinstance(large, InvalidLine)
    assert large.error.endswith(f"allowed are {MAX_DOCUMENT_BYTES}")
    assert small == ValidLine(2, Document(id="4", text="short"))
