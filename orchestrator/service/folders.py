"""Folders of files: their documents are indexed, and kept as the files are.

What was indexed is read from the index itself: the document of a file has the fingerprint of what was made of the file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

import anyio.to_thread

from adapters import AdapterError, Document, Sensitivity
from adapters.model.batching import batches as slices
from adapters.model.document import METADATA
from adapters.model.errors import reason_of
from adapters.model.filter import And, Eq, Exists, In
from adapters.ports.encoders import TextSplitter
from adapters.ports.names import NameRules
from fusion.doc_ids import doc_id
from orchestrator.auth.principal import Principal
from orchestrator.indexing.chunks import PART_OF, Chunker
from orchestrator.indexing.folder.decode import NoText
from orchestrator.indexing.folder.documents import FINGERPRINT, FOLDER, ROOT, Draft, FolderDocuments, names_of
from orchestrator.indexing.folder.readers import FileText, read
from orchestrator.indexing.folder.walk import FoundFile, FoundFiles, folder_in
from orchestrator.indexing.ndjson import InvalidLine, ParsedLine, ValidLine
from orchestrator.indexing.pipeline import MAX_BATCH_BYTES, MAX_BATCH_DOCUMENTS, size_bytes
from orchestrator.planning.errors import BadRequest
from orchestrator.service.chunked_lines import stale_chunks
from orchestrator.service.document_reports import IndexReport
from orchestrator.service.documents import DocumentService
from orchestrator.service.line_writer import Batch

_MAX_EXAMPLES = 3
_FLAGS = "remove their documents with --remove-missing, or keep them with --keep-missing"
Missing: TypeAlias = Literal["remove", "keep", "force"]


class _Known(NamedTuple):
    """What is indexed of a file: see ``folder/documents.py``."""

    fingerprint: str
    root: str


@dataclass(slots=True)
class FolderReport:
    """What became of the files of folders.

    :param chunks: documents that were written beside those of the files.
    :param errors: files that could not be indexed, with the reason; ``notes``: what is wrong with others.
    :param left_out: number of files that are not read, by reason.
    :param links: between files, without those from a file to its folder.
    :param dangling: references that lead nowhere; some are ``examples``.
    :param names: titles and other names that are looked for in all texts.
    :param linked: ids of the files with a link to or from another file.
    :param sensitivities: number of files by sensitivity.
    """

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    chunks: int = 0
    errors: dict[str, str] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    links: int = 0
    dangling: int = 0
    examples: list[str] = field(default_factory=list)
    names: int = 0
    linked: set[str] = field(default_factory=set)
    sensitivities: Counter[Sensitivity] = field(default_factory=Counter)
    written: IndexReport = field(default_factory=IndexReport)

    @property
    def files(self) -> int:
        """Number of files that are in the index."""
        return self.added + self.changed + self.unchanged

    def add_graph(self, draft: Draft) -> None:
        """Count the links of a file."""
        targets = {link.target for _, link in draft.links if link.type != PART_OF}
        self.links += len(targets)
        if targets:
            self.linked |= {draft.document.id, *targets}
        self.dangling += len(draft.dangling)
        space = _MAX_EXAMPLES - len(self.examples)
        self.examples += [f"{draft.document.id}: {each}" for each in draft.dangling[:space]]


@dataclass(slots=True)
class ReadFiles:
    """Files on their way into the index.

    :param names: of each file that can be read, by id.
    :param without_text: ids of files that have no text.
    """

    found: FoundFiles
    report: FolderReport
    names: dict[str, Sequence[str]] = field(default_factory=dict)
    without_text: set[str] = field(default_factory=set)

    def read_names(self, on_read: Callable[[int], None]) -> None:
        """Read the names. Blocks."""
        for file in self.found.files:
            if content := self._content(file):
                self.names[file.id] = names_of(content)
            on_read(1)

    def next_lines(
        self, files: Iterator[tuple[int, FoundFile]], maker: FolderDocuments, known: Mapping[str, _Known]
    ) -> tuple[int, list[ValidLine]] | None:
        """The number of the next files, and the documents of those that are new or changed. Blocks.

        They are about as many as are encoded together; ``None`` at the end.

        :param files: with the number of each, which is that of its lines.
        """
        lines: list[ValidLine] = []
        count = size = 0
        for number, file in files:
            count += 1
            if file.id in self.names and (draft := self._draft(file, maker)):
                documents = self._changed(draft, maker, known)
                lines += [ValidLine(number, document) for document in documents]
                size += sum(map(size_bytes, documents))
            if len(lines) >= MAX_BATCH_DOCUMENTS or size >= MAX_BATCH_BYTES:
                break
        return (count, lines) if count else None

    def check(self, lines: Collection[ParsedLine]) -> None:
        """Report the documents that were not written."""
        for line in lines:
            if isinstance(line, InvalidLine):
                self.report.errors.setdefault(self.found.files[line.line - 1].id, line.error)

    def _changed(self, draft: Draft, maker: FolderDocuments, known: Mapping[str, _Known]) -> list[Document]:
        """The documents of a file; none if they are in the index already."""
        before = known.get(draft.document.id)
        if before and before.fingerprint == draft.fingerprint:
            self.report.unchanged += 1
            return []
        try:
            documents = maker.documents(draft)
        except ValueError as error:
            self.report.errors[draft.document.id] = str(error)
            return []
        self.report.added += before is None
        self.report.changed += before is not None
        self.report.chunks += len(documents) - 1
        return documents

    def _draft(self, file: FoundFile, maker: FolderDocuments) -> Draft | None:
        if (content := self._content(file)) is None:
            return None
        try:
            draft = maker.draft(file, content)
        except NoText as error:
            self._leave_out(file, error)
            return None
        except ValueError as error:
            self.report.errors[file.id] = str(error)
            return None
        self.report.add_graph(draft)
        self.report.sensitivities[draft.document.sensitivity] += 1
        return draft

    def _leave_out(self, file: FoundFile, reason: NoText) -> None:
        self.report.left_out[str(reason)] += 1
        self.without_text.add(file.id)

    def _content(self, file: FoundFile) -> FileText | None:
        """What is in a file; ``None`` if it cannot be read, which is reported."""
        try:
            content = read(file)
        except NoText as error:
            self._leave_out(file, error)
            return None
        except (AdapterError, OSError, ValueError) as error:
            self.report.errors[file.id] = reason_of(error)
            return None
        if content.note:
            self.report.notes[file.id] = content.note
        return content


@dataclass(frozen=True, slots=True)
class FolderService:
    """Indexes folders.

    :param splitter: what splits texts into passages of a number of tokens.
    """

    documents: DocumentService
    names: NameRules
    splitter: Callable[[int], TextSplitter]

    async def read(self, found: FoundFiles, on_read: Callable[[int], None] = lambda _: None) -> ReadFiles:
        """Read the names that files have, for the links and mentions among them.

        :param on_read: called with the number of files that were read since the last call.
        :raises BadRequest: if nothing encodes texts.
        """
        self.documents.require_encoder("files")
        files = ReadFiles(found, FolderReport(left_out=found.left_out, errors=dict(found.unreadable)))
        await anyio.to_thread.run_sync(files.read_names, on_read)
        return files

    async def index(
        self,
        files: ReadFiles,
        principal: Principal,
        collection: str,
        chunk_tokens: int,
        missing: Missing = "remove",
        on_indexed: Callable[[int], None] = lambda _: None,
    ) -> FolderReport:
        """Index the files that are new or changed, and delete the documents of those that are gone. What is indexed of
        a file stays if the file cannot be read any more.

        All documents of a file, and what they replace, are in one write. May be repeated after a crash: then the index
        is that of an uninterrupted run.

        :param missing: what becomes of the documents of files that are gone: they stay (``keep``); they go
            (``remove``), unless they may be those of another folder of the same name, or of a disk that is not mounted;
            they go in any case (``force``).
        :param files: read for this run.
        :param on_indexed: called with the number of files that are done since the last call.
        :raises Forbidden: if the principal may not write.
        :raises BadRequest: if it is not certain that files are gone; then nothing is written.
        :raises AdapterError: if a write failed; the ones before it are durable.
        """
        principal.require("admin")
        found = files.found
        known = await self._known(found, principal, collection)
        present = {file.id for file in found.files}
        absent = (id_ for id_ in known if id_ not in present and not found.may_have(id_))
        gone = sorted(id_ for id_ in absent if folder_in(id_) in found.roots)
        if missing == "remove":
            _require_certain(found, known, gone)
        chunker = Chunker(await anyio.to_thread.run_sync(self.splitter, chunk_tokens), chunk_tokens)
        maker = FolderDocuments(found, files.names, chunker, self.names, collection)
        files.report.names = maker.names
        batches = self._batches(files, maker, known, () if missing == "keep" else gone, principal, on_indexed)
        files.report.written = await self.documents.lines.write(batches, principal, files.check)
        return files.report

    async def _known(self, found: FoundFiles, principal: Principal, collection: str) -> dict[str, _Known]:
        """The files that are indexed, by id."""
        folders = sorted({file.folder for file in found.files} | found.roots.keys())
        if not folders:
            return {}
        of_folders = In(f"{METADATA}{FOLDER}", tuple(folders))
        condition = And((Eq("collection", collection), Exists(f"{METADATA}{FINGERPRINT}"), of_folders))
        return {
            document.id: _Known(str(document.metadata[FINGERPRINT]), str(document.metadata.get(ROOT)))
            async for document in self.documents.all(principal, condition)
        }

    async def _batches(
        self,
        files: ReadFiles,
        maker: FolderDocuments,
        known: Mapping[str, _Known],
        gone: Sequence[str],
        principal: Principal,
        on_indexed: Callable[[int], None],
    ) -> AsyncIterator[Batch]:
        """The documents of the files that are new or changed, and the deletion of those of files that are gone."""
        remaining = enumerate(files.found.files, start=1)
        while (taken := await anyio.to_thread.run_sync(files.next_lines, remaining, maker, known)) is not None:
            count, lines = taken
            if lines:
                documents = [line.document for line in lines]
                parents = [document for document in documents if document.parent_id is None]
                yield Batch(lines, await stale_chunks(self.documents.lookup, documents, parents, principal))
            on_indexed(count)
        removed = [*gone, *sorted(files.without_text & known.keys())]
        files.report.removed = len(removed)
        for ids in slices(removed, MAX_BATCH_DOCUMENTS):
            parents = [Document(id=id_, text="", collection=maker.collection) for id_ in ids]
            scope = principal.scope
            keys = [(scope.tenant, scope.environment, doc_id(each.id, each.collection)) for each in parents]
            yield Batch((), [*keys, *await stale_chunks(self.documents.lookup, (), parents, principal)])


def _require_certain(found: FoundFiles, known: Mapping[str, _Known], gone: Sequence[str]) -> None:
    """:raises BadRequest: if files that seem to be gone may be somewhere else."""
    for folder, root in sorted(found.roots.items()):
        of_folder = [id_ for id_ in gone if folder_in(id_) == folder]
        if elsewhere := [id_ for id_ in of_folder if known[id_].root != root]:
            raise BadRequest(
                f"{len(elsewhere)} files such as {elsewhere[0]} are indexed of another folder of the name {folder}: "
                f"index this one with --collection; if it is the same and was moved, {_FLAGS}"
            )
        indexed = [id_ for id_ in known if folder_in(id_) == folder]
        if len(of_folder) > 1 and len(of_folder) == len(indexed):
            raise BadRequest(
                f"none of the {len(indexed)} files that are indexed of {folder} is there; if that is right, {_FLAGS}"
            )
