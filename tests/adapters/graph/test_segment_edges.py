"""The part of a merged segment is copied from the parts of its segments, and equal to that read from its documents."""

from __future__ import annotations

import tempfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters import Link
from adapters.engine import EmbeddedIndex
from adapters.graph import segment_edges
from adapters.graph.component import GraphComponent
from adapters.graph.segment_edges import SegmentGraph, segment_graph
from adapters.ports import VectorRecord
from tests.conftest import vector_record

WRITES = st.lists(
    st.lists(
        st.tuples(
            st.integers(0, 20),
            st.sampled_from(["the Alpha Centauri system", "a beta Decay", "Gamma and Alpha", ""]),
            st.lists(st.sampled_from(["Alpha", "C++", "Decay"]), max_size=2),
            st.lists(st.integers(0, 20), max_size=2),
            st.sampled_from(["normal", "restricted"]),
        ),
        min_size=1,
        max_size=8,
    ),
    min_size=1,
    max_size=6,
)


def record(number: int, text: str, entities: list[str], linked: list[int], sensitivity: str) -> VectorRecord:
    links = tuple(Link(target=f"d{each}", type="cites" if each % 2 else "part_of") for each in linked)
    return vector_record(
        f"d{number}", text, title=f"Title {number}", entities=tuple(entities), links=links, sensitivity=sensitivity
    )


def parts(commit: Path) -> dict[str, SegmentGraph]:
    return {path.stem: msgspec.msgpack.decode(path.read_bytes(), type=SegmentGraph) for path in commit.glob("*.part")}


@given(WRITES)
def test_every_part_is_what_the_documents_of_its_segment_say(writes: list[list[tuple]]) -> None:  # type: ignore[type-arg]
    """Documents are replaced, too, so that some segments that are merged have deleted rows."""
    with tempfile.TemporaryDirectory() as folder:
        index = EmbeddedIndex(Path(folder), [GraphComponent()], "test")
        for write in writes:
            index.write_blocking([record(*each) for each in {each[0]: each for each in write}.values()])
            view = index.current()
            commit = Path(folder, "graph", view.manifest.name)
            assert parts(commit) == {each.name: segment_graph(each) for each in view.segments.segments}


def test_a_damaged_part_of_a_segment_that_is_merged_is_read_from_the_texts_again(tmp_path: Path) -> None:
    index = EmbeddedIndex(tmp_path, [GraphComponent()], "test")
    index.write_blocking([record(1, "Alpha", [], [2], "normal")])
    (part,) = (tmp_path / "graph" / index.current().manifest.name).glob("*.part")
    part.write_bytes(part.read_bytes()[:-9])
    index.write_blocking([record(2, "Beta", [], [1], "normal")])
    (segment,) = index.current().segments.segments
    commit = tmp_path / "graph" / index.current().manifest.name
    assert parts(commit) == {segment.name: segment_graph(segment)}


def test_a_document_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = EmbeddedIndex(tmp_path, [GraphComponent()], "test")
    read = segment_edges.words_by_case
    texts: list[str] = []
    monkeypatch.setattr(segment_edges, "words_by_case", lambda text: texts.append(text) or read(text))
    for number in range(40):
        index.write_blocking([record(number, f"text {number}", [], [], "normal")])
    assert len(index.current().segments.segments) < 10
    assert len(texts) == len(set(texts)) == 40
