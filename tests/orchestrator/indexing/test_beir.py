from __future__ import annotations

from pathlib import Path

import pytest

from adapters import Document, Link
from orchestrator.indexing import beir
from orchestrator.indexing.lines import Bad, Good


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "corpus.jsonl").write_text(
        '{"_id": "1", "title": "One", "text": "first"}\n\n{"_id": 2}\n{"_id": "3", "title": "Title only", "text": ""}\n'
    )
    return tmp_path


def test_a_corpus_alone_asks_for_extracting_entities(folder: Path) -> None:
    one, bad, three = beir.read(folder)
    assert one == Good(1, Document(id="1", title="One", text="first"))
    assert isinstance(bad, Bad)
    assert bad.line == 3
    assert three == Good(4, Document(id="3", title="Title only", text=""))


def test_the_graph_beside_it_becomes_links_and_entities(folder: Path) -> None:
    (folder / "edges.jsonl").write_text(
        '{"source":"1","target":"3","type":"cites","weight":2}\n{"source":"1","target":"1","type":"cites"}\n'
        '{"source":"3","target":"1","type":"cites"}\n'
    )
    (folder / "mentions.jsonl").write_text('{"doc":"1","entity":"e:x"}\n{"doc":"1","entity":"unnamed"}\n')
    (folder / "entities.jsonl").write_text('{"_id":"e:x","name":"The X"}\n')
    one, _, three = beir.read(folder)
    assert isinstance(one, Good)
    assert one.document.links == (Link("3", "cites", 2.0),)
    assert one.document.entities == ("The X", "unnamed")
    assert isinstance(three, Good)
    assert (three.document.links, three.document.entities) == ((Link("1", "cites", 1.0),), ())


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('{"source":"1"}', "missing required field `target`"),
        ('{"source":"1","target":"3","weight":0}', "> 0.0 - at `$.weight`"),
        ('{"source":"1","target":"3","type":""}', "length >= 1 - at `$.type`"),
    ],
)
def test_a_graph_line_that_is_wrong_is_named_and_the_rest_is_kept(folder: Path, line: str, complaint: str) -> None:
    (folder / "edges.jsonl").write_text('{"source":"1","target":"3"}\n' + line + "\n")
    bad, one, *_ = beir.read(folder)
    assert isinstance(bad, Bad)
    assert bad.line == 2
    assert bad.error.startswith("edges.jsonl: ")
    assert complaint in bad.error
    assert isinstance(one, Good)
    assert one.document.links == (Link("3", "link"),)


def test_a_folder_without_a_corpus_is_none(tmp_path: Path) -> None:
    assert not beir.is_folder(tmp_path)
