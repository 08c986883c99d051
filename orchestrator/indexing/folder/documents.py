"""The documents of a file: the whole text and its chunks, with links, names and fields."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from urllib.parse import quote

import msgspec

from adapters import Document, Link
from adapters.model.document import passage
from adapters.ports.names import NameRules
from orchestrator.indexing.chunks import PART_OF, Chunker
from orchestrator.indexing.folder.decode import NoText
from orchestrator.indexing.folder.links import LINK, RELATED, Resolver
from orchestrator.indexing.folder.protection import protection_of
from orchestrator.indexing.folder.readers import FileText
from orchestrator.indexing.folder.walk import FoundFile, FoundFiles
from orchestrator.indexing.ndjson import MAX_DOCUMENT_BYTES, checked

RECIPE = "files-1"
"""Part of the fingerprint: it changes whenever the same file would have other documents."""
PATH, FOLDER, FINGERPRINT, ROOT = "path", "folder", "fingerprint", "root"
"""Keys of the metadata. The document of a file has all of them; its chunks have the first two."""
_NOT_IN_PATHS = re.compile(r"[%#?\s]")
"""Signs with another meaning in the path of a URL; others may be read there by people (RFC 3987)."""
_MAX_TEXT_BYTES = MAX_DOCUMENT_BYTES // 2
"""Of the text of a file: with escapes and fields it still fits on a line of NDJSON."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A file before it is split.

    :param document: of the whole file, with its fingerprint, without links and names.
    :param links: with the place of each in the text.
    :param dangling: what the file refers to and is not there.
    """

    document: Document
    is_structured: bool
    links: Sequence[tuple[int, Link]]
    names: Sequence[str]
    dangling: Sequence[str] = ()

    @property
    def fingerprint(self) -> str:
        """Equal if the documents of the file are."""
        return str(self.document.metadata[FINGERPRINT])


class FolderDocuments:
    """Makes the documents of files.

    :param names: titles and other names of each file, by id: see :func:`names_of`.
    """

    def __init__(
        self,
        found: FoundFiles,
        names: Mapping[str, Sequence[str]],
        chunker: Chunker,
        rules: NameRules,
        collection: str,
    ) -> None:
        self._resolver = Resolver([file.id for file in found.files], found.others, names, rules.normalize)
        self._finder = rules.finder(name for each in names.values() for name in each)
        self._chunker = chunker
        self._extract = rules.extract
        self.collection = collection

    @property
    def names(self) -> int:
        """Number of names that are looked for in all texts."""
        return len(self._finder)

    def draft(self, file: FoundFile, content: FileText) -> Draft:
        """What a file has. Blocks.

        :raises NoText: if it has no text.
        :raises ValueError: if its text is too long, or a field is not allowed.
        """
        fields = content.fields
        if not content.text.strip():
            raise NoText("files without text")
        if (size := len(content.text.encode("utf-8", "replace"))) > _MAX_TEXT_BYTES:
            raise ValueError(f"{size} bytes of text, allowed are {_MAX_TEXT_BYTES}: split the file")
        links, dangling = self._links(file, content)
        protection, others = protection_of(fields.others)
        document = checked(
            Document(
                id=file.id,
                text=content.text,
                collection=self.collection,
                title=content.title,
                url=_NOT_IN_PATHS.sub(lambda found: quote(found[0]), file.id),
                created_at=fields.created_at if content.has_date else None,
                **protection._asdict(),
                tags=fields.tags,
                language=fields.language,
                metadata={**others, PATH: file.id, FOLDER: file.folder},
            )
        )
        names = [*fields.aliases, *self._mentioned(document)]
        compared = (RECIPE, self._chunker.version, content.is_structured, document, links, names)
        fingerprint = sha256(msgspec.json.encode(compared)).hexdigest()
        metadata = {**document.metadata, FINGERPRINT: fingerprint, ROOT: file.root}
        document = msgspec.structs.replace(document, metadata=metadata, created_at=fields.created_at)
        return Draft(document, content.is_structured, links, tuple(fields.aliases), dangling)

    def documents(self, draft: Draft) -> list[Document]:
        """The document of a file and its chunks. Blocks.

        :raises ValueError: as :meth:`orchestrator.indexing.chunks.Chunker.chunked`.
        """
        parent, *chunks = self._chunker.chunked(draft.document, draft.is_structured)
        of_file = [link for place, link in draft.links if place < 0]
        metadata = {key: value for key, value in parent.metadata.items() if key not in {FINGERPRINT, ROOT}}
        made = [self._with_names(draft, parent, of_file if chunks else [link for _, link in draft.links])]
        for chunk in chunks:
            start, end = chunk.parent_start or 0, chunk.parent_end or 0
            links = [
                *chunk.links,
                *(link for place, link in draft.links if start <= max(place, 0) < end and link.type != PART_OF),
            ]
            made.append(self._with_names(draft, msgspec.structs.replace(chunk, metadata=metadata), links))
        return made

    def _with_names(self, draft: Draft, document: Document, links: Iterable[Link]) -> Document:
        entities = dict.fromkeys((*draft.names, *self._mentioned(document), *self._extract(passage(document))))
        return msgspec.structs.replace(document, links=tuple(dict.fromkeys(links)), entities=tuple(entities))

    def _mentioned(self, document: Document) -> list[str]:
        """The names of other files in a text; that its own title names the document is known."""
        return [name for name in self._finder.mentioned(document.text) if name != document.title]

    def _links(self, file: FoundFile, content: FileText) -> tuple[list[tuple[int, Link]], list[str]]:
        """The links of a file, each with its place in the text, -1 for those of the whole file; what leads nowhere."""
        links: list[tuple[int, Link]] = []
        dangling: list[str] = []
        for target, type_, place, text in self._targets(file.id, content):
            if target is None:
                dangling.append(text)
            elif target and target != file.id:
                links.append((place, Link(target, type_)))
        if folder := self._resolver.folder_of(file.id):
            links.append((-1, Link(folder, PART_OF)))
        return links, dangling

    def _targets(self, id_: str, content: FileText) -> Iterator[tuple[str | None, str, int, str]]:
        for text in content.fields.related:
            yield self._resolver.related(id_, text), RELATED, -1, text
        for reference in content.references:
            yield self._resolver.target(id_, reference), LINK, reference.start, reference.target


def names_of(content: FileText) -> tuple[str, ...]:
    """The names of a file: its title, and its aliases."""
    return (content.title, *content.fields.aliases)
