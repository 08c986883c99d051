from __future__ import annotations

import io

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters import Document, Link
from orchestrator.indexing import ndjson
from orchestrator.indexing.ndjson import InvalidLine, ParsedLine, ValidLine, parse_ndjson


def outcome(line: bytes, max_bytes: int = 10_000) -> ParsedLine:
    (only,) = parse_ndjson(io.BytesIO(line), max_bytes)
    return only


def test_valid_lines_are_read_between_blank_and_invalid_ones() -> None:
    lines = io.BytesIO(b'{"id":"a","text":"x"}\n\n{broken\n{"id":"b","text":"y"}')
    first, invalid, last = parse_ndjson(lines, 1_000)
    assert (first, last) == (ValidLine(1, Document(id="a", text="x")), ValidLine(4, Document(id="b", text="y")))
    assert isinstance(invalid, InvalidLine)
    assert invalid.line == 3


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{", "not JSON: it is empty or incomplete"),
        (b"[]", "[], allowed are objects"),
        (b"null", "null, allowed are objects"),
        (b'{"id":"a"}', "text: missing, it is required"),
        (b'{"id":"a","text":"x","colour":1}', "unknown field 'colour', allowed are id"),
        (b'{"id":1,"text":"x"}', "id: 1, allowed are texts of 1 to 512 characters"),
        (b'{"id":"","text":"x"}', "id: '', allowed are texts of 1 to 512 characters"),
        ('{"id":"' + "é" * 300 + '","text":"x"}', "id: 600 bytes, allowed are 512"),
        (b'{"id":"a","text":" "}', "text: empty, and so is the title"),
        (b'{"id":"a","text":"x","importance":11}', "importance: 11, allowed are 0 to 10"),
        (b'{"id":"a","text":"x","importance":NaN}', "not JSON from byte 35 on"),
        (
            b'{"id":"a","text":"x","importance":1e999}',
            "importance: number out of range, allowed are numbers",
        ),
        (
            b'{"id":"a","text":"x","sensitivity":"top"}',
            "sensitivity: 'top', allowed are normal, public, restricted, sensitive",
        ),
        (b'{"id":"a","text":"x","chunk_index":-1}', "chunk_index: -1, allowed are 0 to 2147483647"),
        (
            b'{"id":"a","text":"x","created_at":"yesterday"}',
            "'yesterday' is no date, write 2026-01-31T12:00:00Z, 2026-01-31 ",
        ),
        (b'{"id":"a","text":"x","created_at":"2026-01-01T00:00:00"}', "without a time zone"),
        (b'{"id":"a","text":"x","metadata":{"a":{"b":1}}}', 'metadata.a: {"b":1}, allowed are'),
        (
            b'{"id":"a","text":"x","links":[{"target":"b","type":"t","weight":0}]}',
            "links[0].weight: 0, allowed are numbers above 0 up to 1000",
        ),
        (b'{"id":"a","text":"\xff"}', "not UTF-8: unexpected byte 0xff"),
        (b'{"id":"a","text":"x","metadata":{"n":1' + b"0" * 400 + b"}}", "'n' has a whole number of more than 64 bits"),
        (b'{"id":"a","text":"x","metadata":{"a\\u0000b":1}}', "metadata: contains the control character U+0000"),
        (b'{"id":"a\\u001b","text":"x"}', "id: contains the control character U+001B"),
        (b'{"id":"a","text":"x","collection":"a\\nb"}', "collection: contains the control character U+000A"),
        (b'{"id":"a","text":"x","parent_id":"\\u0007"}', "parent_id: contains the control character U+0007"),
        (b'{"id":"a","text":"x","url":"\\u009b"}', "url: contains the control character U+009B"),
        (b'{"id":"a","text":"x","language":"e\\tn"}', "language: contains the control character U+0009"),
        (b'{"id":"a","text":"x","tags":["a\\rb"]}', "tags: contains the control character U+000D"),
        (b'{"id":"a","text":"x","entities":["a\\u007f"]}', "entities: contains the control character U+007F"),
        (
            b'{"id":"a","text":"x","links":[{"target":"\\u0001","type":"t"}]}',
            "links: contains the control character U+0001",
        ),
        (b'{"id":"a","text":"x","tags":["%s"]}' % (b"t" * 513), "tags: 513 characters, allowed are 512"),
        (b'{"id":"a","text":"x","entities":["%s"]}' % (b"e" * 513), "entities: 513 characters, allowed are 512"),
        (b'{"id":"a","text":"x","language":"%s"}' % (b"l" * 513), "language: 513 characters, allowed are 512"),
        (b'{"id":"a","text":"x","url":"%s"}' % (b"u" * 8_193), "url: 8193 characters, allowed are 8192"),
        (b'{"id":"a","text":"x","metadata":{"%s":1}}' % (b"k" * 257), "metadata: 257 characters, allowed are 256"),
        (
            b'{"id":"a","text":"x","metadata":{"k":["%s"]}}' % (b"v" * 8_193),
            "metadata: 'k' has a text of 8193 characters, allowed are 8192",
        ),
        (
            b'{"id":"a","text":"x"}{"id":"b","text":"y"}',
            "not JSON from byte 23 on, where the object has ended",
        ),
        (
            b'{"id":"a","text":"x","created_at":"2024-03-01"}{"id":"b"}',
            "not JSON from byte 49 on, where the object",
        ),
        (b'{"id":"a","created_at":"2024-03-01"', "not JSON: it is empty or incomplete"),
        (b'{"id":"a","text":"' + b"x" * 10_000 + b'"}', "the line has 10020 bytes, allowed are 10000"),
    ],
)
def test_an_invalid_line_has_the_place_and_what_is_allowed(line: bytes | str, message: str) -> None:
    parsed = outcome(line if isinstance(line, bytes) else line.encode())
    assert isinstance(parsed, InvalidLine)
    assert message.lower() in parsed.error.lower()


def test_lists_are_trimmed_and_deduplicated() -> None:
    parsed = outcome(b'{"id":"a","text":"x","tags":[" b ","","b","a"],"entities":["E"," E"]}')
    assert parsed == ValidLine(1, Document(id="a", text="x", tags=("b", "a"), entities=("E",)))


def test_the_fields_of_a_chunk_are_trimmed_and_sanitised() -> None:
    fields = {
        "parent_id": "p",
        "chunk_index": 3,
        "parent_start": 10,
        "parent_end": 11,
        "heading_path": ["A", "B"],
        "section": "B",
        "window_id": "p:2-4",
        "window_index": 1,
        "neighbor_chunk_ids": [" p:2", "p:4", "p:4"],
        "topics": ["t ", "", "t"],
        "keywords": [" k"],
        "local_keywords": ["l", "l"],
        "query_expansion_keywords": ["q "],
        "semantic_boosters": ["what it is about\n", "what it is about"],
        "summary": "a\u0000b",
        "local_summary": "c",
        "chunker_version": "mine/1",
    }
    parsed = outcome(msgspec.json.encode({"id": "a", "text": "x", **fields}), 10_000)
    assert isinstance(parsed, ValidLine), parsed
    document = parsed.document
    assert document.neighbor_chunk_ids == ("p:2", "p:4")
    assert (document.topics, document.keywords, document.local_keywords) == (("t",), ("k",), ("l",))
    assert (document.query_expansion_keywords, document.semantic_boosters) == (("q",), ("what it is about",))
    assert (document.summary, document.local_summary, document.window_index) == ("ab", "c", 1)
    assert msgspec.json.decode(msgspec.json.encode(document), type=Document) == document


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("local_keyword", ["x"], "unknown field 'local_keyword'"),
        ("local_keywords", "x", "local_keywords"),
        ("topics", ["x" * 513], "topics: 513 characters, allowed are 512"),
        ("section", "a\u0007b", "section: contains the control character U+0007"),
        ("keywords", ["x"] * 10_001, "keywords: 10001, allowed are 10000"),
        ("heading_path", ["x"] * 65, "heading_path: 65, allowed are 64"),
        ("window_index", -1, "window_index"),
        ("parent_end", 3, "parent_end: 3, allowed is parent_start (5) and more"),
        ("summary", 5, "summary"),
        ("neighbor_chunk_ids", [""], "neighbor_chunk_ids"),
    ],
)
def test_a_field_of_a_chunk_that_is_not_allowed_is_named(field: str, value: object, message: str) -> None:
    parsed = outcome(msgspec.json.encode({"id": "a", "text": "x", "parent_start": 5, field: value}), 10**6)
    assert isinstance(parsed, InvalidLine)
    assert message in parsed.error


def test_lists_of_metadata_and_links_are_deduplicated_and_one_is_not_true() -> None:
    line = b'{"id":"a","text":"x","metadata":{"m":[" b","b",1,true,1.0]},"links":[%s,%s]}'
    link = b'{"target":"b","type":"t"}'
    parsed = outcome(line % (link, link))
    assert isinstance(parsed, ValidLine)
    assert parsed.document.metadata == {"m": ["b", 1, True, 1.0]}
    assert parsed.document.links == (Link("b", "t"),)


def test_a_byte_order_mark_is_removed_from_the_first_line() -> None:
    assert outcome(b'\xef\xbb\xbf{"id":"a","text":"x"}', 100) == ValidLine(1, Document(id="a", text="x"))


def test_too_many_tags_are_refused() -> None:
    parsed = outcome(msgspec.json.encode({"id": "a", "text": "x", "tags": [str(n) for n in range(10_001)]}), 10**6)
    assert parsed == InvalidLine(1, "tags: 10001, allowed are 10000")


def test_too_many_metadata_values_are_refused() -> None:
    line = msgspec.json.encode({"id": "a", "text": "x", "metadata": {"a": list(range(1_000)), "b": True}})
    parsed = outcome(line)
    assert parsed == InvalidLine(1, "metadata: 1001 values, allowed are 1000")


def test_too_many_metadata_keys_are_refused() -> None:
    """Each is a column that stays in memory."""
    parsed = outcome(msgspec.json.encode({"id": "a", "text": "x", "metadata": {str(n): n for n in range(257)}}))
    assert parsed == InvalidLine(1, "metadata: 257, allowed are 256")


@given(st.lists(st.binary(max_size=60), max_size=20))
def test_no_bytes_raise(lines: list[bytes]) -> None:
    parsed = parse_ndjson(io.BytesIO(b"\n".join(lines)), 1_000)
    assert all(isinstance(line, ValidLine | InvalidLine) for line in parsed)


class RecordedFile(io.BytesIO):
    """Records the size of what is read at once."""

    sizes: list[int]

    def readline(self, size: int | None = -1, /) -> bytes:
        line = super().readline(size)
        self.sizes.append(len(line))
        return line


def test_nothing_is_read_ahead() -> None:
    """The input may be larger than memory."""
    file = RecordedFile(b'{"id":"a","text":"x"}\n' * 5)
    file.sizes = []
    lines = parse_ndjson(file)
    for number in range(1, 4):
        assert next(lines).line == len(file.sizes) == number


def test_a_long_line_is_refused_without_being_in_memory() -> None:
    """Blanks count, too, in a line that is longer than a document may be."""
    file = RecordedFile(b'{"id":"a","text":"' + b"x" * 5_000 + b'"}\n' + b" " * 9_000 + b'\n{"id":"b","text":"y"}\r\n')
    file.sizes = []
    first, second, last = parse_ndjson(file, 100)
    assert first == InvalidLine(1, "the line has 5021 bytes, allowed are 100")
    assert second == InvalidLine(2, "the line has 9001 bytes, allowed are 100")
    assert last == ValidLine(3, Document(id="b", text="y"))
    assert max(file.sizes) == 102


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_a_line_end_does_not_count(end: bytes) -> None:
    line = b'{"id":"a","text":"x"}'
    assert isinstance(outcome(line + end, len(line)), ValidLine)
    assert isinstance(outcome(line + end, len(line) - 1), InvalidLine)


def test_control_characters_are_removed_from_texts_and_line_breaks_are_not() -> None:
    line = rb'{"id":"a","title":"A\u0007 title","text":"\u001b[31mred\u001b[0m,\tthen\r\nblue\u0085","tags":["b\n"]}'
    parsed = outcome(line)
    assert isinstance(parsed, ValidLine)
    assert parsed.document.title == "A title"
    assert parsed.document.text == "[31mred[0m,\tthen\r\nblue\x85"
    assert parsed.document.tags == ("b",)


def test_control_characters_are_removed_in_short_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A regular expression keeps all other threads waiting, the event loop among them."""
    lengths: list[int] = []

    class RecordingPattern:
        def sub(self, replacement: str, text: str) -> str:
            lengths.append(len(text))
            return pattern.sub(replacement, text)

    pattern = ndjson._CONTROL_IN_TEXT
    monkeypatch.setattr(ndjson, "_CONTROL_IN_TEXT", RecordingPattern())
    parsed = outcome(b'{"id":"a","text":"' + b"a\x7fb" * 100_000 + b'"}', 1_000_000)
    assert isinstance(parsed, ValidLine)
    assert parsed.document.text == "ab" * 100_000
    assert sum(lengths) == 300_000
    assert max(lengths) <= 65_536


def test_a_text_of_control_characters_is_empty() -> None:
    parsed = outcome(rb'{"id":"a","text":"\u0000\u0001"}')
    assert isinstance(parsed, InvalidLine)
    assert parsed.error.startswith("text: empty")
