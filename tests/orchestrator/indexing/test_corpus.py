"""The corpus of a folder: NDJSON or BEIR."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapters import Document
from orchestrator.indexing.corpus import corpus_file, count_lines, parse_corpus
from orchestrator.indexing.ndjson import ValidLine


def test_ndjson_has_every_field_of_a_document(tmp_path: Path) -> None:
    (tmp_path / "documents.ndjson").write_text('{"id":"a","text":"x","collection":"notes","importance":3}\n')
    corpus = corpus_file(tmp_path)
    assert corpus
    expected = Document(id="a", text="x", collection="notes", importance=3.0)
    assert list(parse_corpus(corpus)) == [ValidLine(1, expected)]
    assert count_lines(corpus) == 1


def test_a_beir_corpus_has_the_graph_files_beside_it(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text('{"_id":"a","text":"x"}\n')
    (tmp_path / "edges.jsonl").write_text('{"source":"a","target":"b"}\n')
    corpus = corpus_file(tmp_path)
    assert corpus
    (line,) = parse_corpus(corpus)
    assert isinstance(line, ValidLine)
    assert [link.target for link in line.document.links] == ["b"]


def test_a_folder_has_one_corpus_or_none(tmp_path: Path) -> None:
    assert corpus_file(tmp_path) is None
    for name in ("documents.ndjson", "corpus.jsonl"):
        (tmp_path / name).write_text("")
    with pytest.raises(FileExistsError, match=r"has documents\.ndjson and corpus\.jsonl: keep one of them"):
        corpus_file(tmp_path)
