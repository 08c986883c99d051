"""Splits long documents into chunks, section by section; each chunk is a part of the text of its document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256
from urllib.parse import quote

from msgspec.structs import replace

from adapters import Document, Link
from adapters.model.document import MAX_ID_BYTES
from adapters.ports.encoders import TextSplitter
from orchestrator.indexing.markdown import Section, anchor_of, outline, whole
from orchestrator.indexing.pipeline import MAX_BATCH_BYTES, size_bytes

CHUNKER = "sections-2"
"""What splits, and the version of its rules: the same text has other chunks only if this changes, or their size."""
DEFAULT_CHUNK_TOKENS = 200
MIN_CHUNK_TOKENS, MAX_CHUNK_TOKENS = 16, 4_096
PART_OF = "part_of"
"""The type of the link from a chunk to its document, and from a file to that about its folder."""
_DIGEST_CHARS = 16


class Chunker:
    """Splits documents.

    :param splitter: what splits the text of a section into passages of at most ``tokens`` tokens; the first chunk of a
        section has its heading, too.
    """

    def __init__(self, splitter: TextSplitter, tokens: int) -> None:
        self._splitter = splitter
        self.version = f"{CHUNKER}/{tokens}"

    def chunked(self, document: Document, is_structured: bool = True) -> list[Document]:
        """The document and its chunks, in order; the document alone if it is one passage, or a chunk itself. Blocks.

        :param is_structured: whether the text is Markdown; else it has no sections.
        :raises ValueError: if the chunks are too large together, because each has the metadata of the document.
        """
        if document.parent_id is not None or self._splitter.fits(document.text):
            return [document]
        sections = outline(document.text).sections if is_structured else [whole(document.text)]
        chunks: list[Document] = []
        size = 0
        for chunk in self._chunks(document, sections, is_structured):
            chunks.append(chunk)
            if (size := size + size_bytes(chunk)) > MAX_BATCH_BYTES:
                raise ValueError(
                    f"text: {len(chunks)} chunks and more, which have {size} bytes with the metadata and names of the "
                    f"document in each, allowed are {MAX_BATCH_BYTES}"
                )
        return [replace(document, chunk_count=len(chunks), chunker_version=self.version), *chunks]

    def _chunks(self, document: Document, sections: Sequence[Section], is_structured: bool) -> Iterator[Document]:
        sections_of: Counter[str] = Counter()
        index = 0
        for section in sections:
            path = "/".join(map(anchor_of, section.headings))
            repeated = sections_of[path]
            sections_of[path] += 1
            name = f"{path}-{repeated}" if repeated else path
            body = document.text[section.body : section.end]
            for number, (start, end) in enumerate(self._passages(document.text, section, is_structured)):
                text = document.text[start:end]
                before, after = self._splitter.around(body, max(start - section.body, 0), max(end - section.body, 0))
                yield replace(
                    document,
                    id=_chunk_id(document.id, name, number),
                    text=text,
                    parent_id=document.id,
                    chunk_index=index,
                    parent_start=start,
                    parent_end=end,
                    text_before=before,
                    text_after=after,
                    heading_path=section.headings,
                    chunker_version=self.version,
                    local_summary="",
                    local_keywords=(),
                    window_id=None,
                    window_index=None,
                    neighbor_chunk_ids=(),
                    vector=None,
                    url=_url(document.url, section.anchor),
                    entities=None if document.entities is None else _within(document.entities, text),
                    links=(Link(document.id, PART_OF, target_collection=document.collection),),
                )
                index += 1

    def _passages(self, text: str, section: Section, is_structured: bool) -> Iterator[tuple[int, int]]:
        """Where the passages of a section are; the first one has the heading, which may be all there is."""
        passages = self._splitter.split(text[section.body : section.end], is_structured)
        first = section.start
        if first < section.body and (not passages or text[section.body : section.body + passages[0][0]].strip()):
            yield first, first + len(text[first : section.body].rstrip())  # what follows it is left out
            first = section.body
        for number, (start, end) in enumerate(passages):
            has_heading = not number and first < section.body
            yield (first if has_heading else start + section.body), end + section.body


def _chunk_id(parent: str, path: str, number: int) -> str:
    """The id of a chunk: it changes only if its own section does. Ids that would be too long have a digest."""
    id_ = f"{parent}#{path}:{number}"
    if len(id_.encode()) <= MAX_ID_BYTES:
        return id_
    digest = f"#{sha256(id_.encode()).hexdigest()[:_DIGEST_CHARS]}:{number}"
    return parent.encode()[: MAX_ID_BYTES - len(digest)].decode(errors="ignore") + digest


def _url(url: str | None, anchor: str) -> str | None:
    return f"{url}#{quote(anchor)}" if url and anchor and "#" not in url else url


def _within(names: Sequence[str], text: str) -> tuple[str, ...]:
    """The names that occur in a text, in whatever case."""
    folded = text.casefold()
    return tuple(name for name in names if name.casefold() in folded)
