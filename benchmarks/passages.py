"""Real text for benchmarks: passages of the documentation that is installed on this machine.

Docstrings of the standard library and of every package in this environment, manual pages, and the text files under
/usr/share/doc. No code is run, only read. Passages have about 20 to 120 words and are distinct. Half of them are in
each of two collections.
"""

from __future__ import annotations

import ast
import gzip
import hashlib
import re
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from adapters import Document
from benchmarks.two_collections import in_two_collections

_MIN_WORDS, _MAX_WORDS = 20, 120
_MAX_FILE_BYTES = 2_000_000
_ROFF = re.compile(r"^[.'].*$|\\f[A-Z(]\w?|\\[-&|^ ]|\\\([a-z]{2}|\\s[-+]?\d", re.MULTILINE)


def passages(max_passages: int) -> list[Document]:
    """Returns at most ``max_passages`` passages, the same ones on the same machine."""
    documents: dict[bytes, Document] = {}
    for title, text in _texts():
        for chunk in _chunks(text):
            content_hash = hashlib.blake2b(chunk.encode(), digest_size=8).digest()
            if content_hash not in documents:
                document = Document(id=content_hash.hex(), title=title, text=chunk, tags=(title.partition(":")[0],))
                documents[content_hash] = in_two_collections(document)
            if len(documents) >= max_passages:
                return list(documents.values())
    return list(documents.values())


def _texts() -> Iterator[tuple[str, str]]:
    """Titles and texts."""
    roots = {name: Path(sysconfig.get_paths()[name]) for name in ("stdlib", "purelib", "platlib")}
    for root in dict.fromkeys(roots.values()):
        for path in sorted(root.rglob("*.py")):
            if root == roots["stdlib"] and "site-packages" in path.parts:
                continue
            yield from _docstrings(path, ".".join(path.relative_to(root).with_suffix("").parts))
    for path in sorted(Path("/usr/share/man").glob("man*/*.gz")):
        yield f"man:{path.name.removesuffix('.gz')}", _ROFF.sub("", _read_text(path))
    for path in sorted(Path("/usr/share/doc").rglob("*")):
        is_text = path.is_file() and path.suffix in {".txt", ".md", ".rst", ".html", ".gz", ""}
        if is_text and path.stat().st_size < _MAX_FILE_BYTES:
            yield f"doc:{path.name}", re.sub(r"<[^>]*>", " ", _read_text(path))


def _docstrings(path: Path, module: str) -> Iterator[tuple[str, str]]:
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):  # a template, or a file for another release of Python
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            doc = ast.get_docstring(node)
            if doc:
                yield f"{module}.{node.name}" if hasattr(node, "name") else module, doc


def _read_text(path: Path) -> str:
    """The text of a file, decompressed if necessary; empty if the file is binary or cannot be read."""
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError):  # a broken link, or no gzip file in spite of its name
        return ""
    return content.decode("utf-8", "ignore") if b"\0" not in content else ""


def _chunks(text: str) -> Iterator[str]:
    words: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text):
        words += paragraph.split()
        while len(words) > _MAX_WORDS:
            yield " ".join(words[:_MAX_WORDS])
            words = words[_MAX_WORDS:]
        if len(words) >= _MIN_WORDS:
            yield " ".join(words)
            words = []
