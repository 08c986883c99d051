"""Real text for benchmarks: passages of the documentation that this machine has installed anyway.

Docstrings of the standard library and of every package in this environment, manual pages, and the text files under
/usr/share/doc. Never run, only read; each passage is some 20 to 120 words and stands once.
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

_WORDS = (20, 120)
_ROFF = re.compile(r"^[.'].*$|\\f[A-Z(]\w?|\\[-&|^ ]|\\\([a-z]{2}|\\s[-+]?\d", re.MULTILINE)


def passages(wanted: int) -> list[Document]:
    """At most ``wanted`` passages, the same ones on the same machine."""
    found: dict[bytes, Document] = {}
    for title, text in _texts():
        for chunk in _chunks(text):
            digest = hashlib.blake2b(chunk.encode(), digest_size=8).digest()
            if digest not in found:
                found[digest] = Document(id=digest.hex(), title=title, text=chunk, tags=(title.partition(":")[0],))
            if len(found) >= wanted:
                return list(found.values())
    return list(found.values())


def _texts() -> Iterator[tuple[str, str]]:
    roots = {name: Path(sysconfig.get_paths()[name]) for name in ("stdlib", "purelib", "platlib")}
    for root in dict.fromkeys(roots.values()):
        for path in sorted(root.rglob("*.py")):
            if root == roots["stdlib"] and "site-packages" in path.parts:
                continue
            yield from _docstrings(path, ".".join(path.relative_to(root).with_suffix("").parts))
    for path in sorted(Path("/usr/share/man").glob("man*/*.gz")):
        yield f"man:{path.name.removesuffix('.gz')}", _ROFF.sub("", _unpacked(path))
    for path in sorted(Path("/usr/share/doc").rglob("*")):
        if path.is_file() and path.suffix in {".txt", ".md", ".rst", ".html", ".gz", ""} and path.stat().st_size < 2e6:
            yield f"doc:{path.name}", re.sub(r"<[^>]*>", " ", _unpacked(path))


def _docstrings(path: Path, module: str) -> Iterator[tuple[str, str]]:
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):  # a template, or a file for another version of Python
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            doc = ast.get_docstring(node)
            if doc:
                yield f"{module}.{node.name}" if hasattr(node, "name") else module, doc


def _unpacked(path: Path) -> str:
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError):  # a broken link, or a file that only looks packed
        return ""
    return content.decode("utf-8", "ignore") if b"\0" not in content else ""


def _chunks(text: str) -> Iterator[str]:
    words: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text):
        words += paragraph.split()
        while len(words) > _WORDS[1]:
            yield " ".join(words[: _WORDS[1]])
            words = words[_WORDS[1] :]
        if len(words) >= _WORDS[0]:
            yield " ".join(words)
            words = []
