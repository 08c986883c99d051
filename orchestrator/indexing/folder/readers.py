"""A file as a text in Markdown, with what the file says of itself and what it refers to."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import PurePosixPath

import yaml
from html_to_markdown import ConversionError, ConversionOptions, convert

from orchestrator.indexing.folder import pdf, rst
from orchestrator.indexing.folder.decode import Unreadable, decoded
from orchestrator.indexing.folder.fields import Fields, fields_of
from orchestrator.indexing.folder.protection import check_protection, names_protection
from orchestrator.indexing.folder.walk import TEXT_STEMS, Format, FoundFile
from orchestrator.indexing.markdown import Reference, outline

_INDEX_STEMS = ("readme", "index", "_index")
"""Names of files that are about their folder, in lower case and without the end."""
_TEXT_OPTIONS = ConversionOptions(extract_metadata=False, skip_images=True)
_HEAD_OPTIONS = ConversionOptions(extract_metadata=True, skip_images=True)
"""With this the text has what is in the head, too, as front matter."""


@dataclass(frozen=True, slots=True)
class FileText:
    """What is in a file.

    :param is_structured: whether the text is Markdown; else it has no sections.
    :param note: what is wrong with the file, although it can be read; empty if nothing is.
    :param has_date: whether the file itself has the date, and not only the file system.
    """

    title: str
    text: str
    fields: Fields
    references: Sequence[Reference] = ()
    is_structured: bool = True
    has_date: bool = False
    note: str = ""


def read(file: FoundFile) -> FileText:
    """Read a file. Blocks.

    :raises OSError: if it cannot be read.
    :raises NoText: if it is empty, or no text.
    :raises Unreadable: if its format is damaged, or the package for it is not installed.
    """
    content = file.path.read_bytes()
    found = _READERS[file.format](content)
    title = found.fields.title or found.title or _title_of(file)
    has_date = found.fields.created_at is not None
    if not has_date:
        changed = datetime.fromtimestamp(int(file.path.stat().st_mtime), UTC)
        found = replace(found, fields=replace(found.fields, created_at=changed))
    return replace(found, title=" ".join(title.split()), has_date=has_date)


def is_index(id_: str) -> bool:
    """Whether a file is about its folder."""
    return PurePosixPath(id_).stem.lower() in _INDEX_STEMS


def _title_of(file: FoundFile) -> str:
    """A title from the name of a file, or of its folder."""
    path = PurePosixPath(file.id)
    if is_index(file.id):
        return path.parent.name
    if path.stem.lower() in TEXT_STEMS:  # every package has a LICENSE
        return f"{path.parent.name} {path.name}"
    return path.name if file.format == "code" else path.stem


def _markdown(content: bytes) -> FileText:
    text = whole = decoded(content)
    fields, note = Fields(), ""
    for pattern, load in _FRONT_MATTER:
        if front := pattern.match(whole):
            try:
                given = load(front[1])
            except (yaml.YAMLError, ValueError, RecursionError) as error:
                note = f"the front matter is not read: {' '.join(str(error).split())[:120]}"
                if names_protection(front[1]):
                    raise Unreadable(f"{note}; it says who may see the file") from error
                continue
            if isinstance(given, dict):
                check_protection(given)
                fields, text = fields_of(given), whole[front.end() :]
    found = outline(text)
    return FileText("" if note else found.title, text, fields, found.references, note=note)


class _Loader(yaml.SafeLoader):
    """Dates stay texts: one that is none would make the whole front matter unreadable."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _yaml(text: str) -> object:
    return yaml.load(text, _Loader)  # noqa: S506, a subclass of the safe loader


_FRONT_MATTER: Sequence[tuple[re.Pattern[str], Callable[[str], object]]] = (
    (re.compile(r"---[ \t]*\n(?=\S)(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE), _yaml),
    (re.compile(r"\+\+\+[ \t]*\n(.*?)^\+\+\+[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE), tomllib.loads),
)
"""YAML and TOML at the beginning of a text. What follows an empty line is text between two rules."""


def _html(content: bytes) -> FileText:
    page = decoded(content)
    try:
        text = convert(page, _TEXT_OPTIONS).content or ""
        head = convert(page, _HEAD_OPTIONS).metadata.document
    except ConversionError as error:
        raise Unreadable(f"the page cannot be converted: {error}") from error
    given = {
        **dict(head.open_graph or {}),
        **dict(head.meta_tags or {}),
        "title": head.title,
        "language": head.language,
        "keywords": list(head.keywords or ()),
        "author": head.author,
        "description": head.description,
    }
    found = outline(text)
    fields = fields_of({key: value for key, value in given.items() if key.lower() in _OF_HEAD})
    return FileText(found.title, text, fields, found.references)


_OF_HEAD = frozenset((
    "title", "language", "keywords", "date", "article-published_time", "dc_date", "pubdate", "last-modified", "author",
    "description",
))  # fmt: skip
"""What is taken from the head of a page: much else there is for browsers."""


def _rst(content: bytes) -> FileText:
    text = rst.to_markdown(decoded(content))
    found = outline(text)
    return FileText(found.title, text, Fields(), found.references)


def _text(content: bytes) -> FileText:
    return FileText("", decoded(content), Fields(), is_structured=False)


def _pdf(content: bytes) -> FileText:
    text, given = pdf.read(content)
    return FileText("", text, fields_of(given), is_structured=False)


_READERS: Mapping[Format, Callable[[bytes], FileText]] = {
    "markdown": _markdown,
    "html": _html,
    "rst": _rst,
    "text": _text,
    "code": _text,
    "pdf": _pdf,
}
