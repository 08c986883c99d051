"""The documentation of this Python installation as documents with links.

Python sources are parsed, not run: docstrings and links come from their syntax trees. Only modules that are written in
C, which have no Python source, are imported and inspected.
"""

from __future__ import annotations

import ast
import re
import sysconfig
from collections.abc import Iterator, Mapping
from pathlib import Path
from pydoc_data.topics import topics

from adapters import Document, Link
from orchestrator.cli.demo.definition import Definition
from orchestrator.cli.demo.native import native_objects
from orchestrator.indexing.ndjson import checked

_EXCLUDED = frozenset(
    {"test", "tests", "site-packages", "distutils", "ensurepip", "idlelib", "lib2to3", "pydoc_data", "turtledemo"}
)
_PUBLIC_NAMES = {"_pydatetime": "datetime", "_pydecimal": "decimal", "_pyio": "io"}
"""Modules whose documented source has a private name, because Python runs their implementation in C."""
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_CODE = re.compile(r"\b([A-Za-z]\w*_\w+|[A-Z]+[a-z]\w*|[A-Za-z]\w*(?=\())")
"""Words of a docstring that look like code: ``snake_case``, ``Capitalised``, ``called()``."""
_MAX_CHUNK_CHARS = 1_500
_AstDefinition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def python_documents() -> list[Document]:
    """About 10,000 documents: modules, classes, functions and the language reference, with the links between them."""
    known = {definition.name: definition for definition in _modules(Path(sysconfig.get_paths()["stdlib"]))}
    for definition in native_objects():
        known.setdefault(definition.name, definition)
    full_names = {name: definition.name for definition in known.values() for name in definition.names if "." in name}
    documents = [_document(definition, known, full_names) for definition in known.values()]
    return [checked(document) for document in (*documents, *_topics(known))]


def _document(definition: Definition, known: Mapping[str, Definition], full_names: Mapping[str, str]) -> Document:
    references = [*definition.links, *(("see_also", name) for name in _mentions(definition, known))]
    links = {(full_names.get(name, name), type_) for type_, name in references}
    return Document(
        id=definition.name,
        collection="python",
        title=definition.name,
        text=definition.text,
        tags=(definition.kind,),
        metadata={"kind": definition.kind, "module": definition.name.split(".")[0]},
        entities=tuple(dict.fromkeys(definition.names)),
        links=_distinct_links(
            definition.name, {link for link in links if link[0] in known and link[0] != definition.name}
        ),
    )


def _distinct_links(name: str, links: set[tuple[str, str]]) -> tuple[Link, ...]:
    """One link to each target, with the first of its types in alphabetical order."""
    types: dict[str, str] = {}
    for target, type_ in sorted(links, key=lambda link: (link[1], link[0])):
        types.setdefault(target, type_)
    # A container links to its members, so a member does not link to its container.
    return tuple(Link(target, type_) for target, type_ in sorted(types.items()) if not name.startswith(f"{target}."))


def _mentions(definition: Definition, known: Mapping[str, Definition]) -> set[str]:
    """Names in a text: full names, and names relative to the definition, its class or its module."""
    parents = [definition.name, definition.name.rpartition(".")[0]]
    parents.append(parents[-1].rpartition(".")[0])
    words = set(_CODE.findall(definition.text))
    relative = {f"{parent}.{word}" for word in words for parent in parents if parent and f"{parent}.{word}" in known}
    return relative | set(_DOTTED.findall(definition.text))


def _modules(root: Path) -> Iterator[Definition]:
    """The definitions in the sources under ``root``."""
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        parts = (_PUBLIC_NAMES.get(parts[0], parts[0]), *parts[1:])
        if _EXCLUDED.intersection(parts) or any(map(_is_private, parts)):
            continue
        try:
            tree = ast.parse(path.read_bytes())
        except SyntaxError:  # a template, or a file for another release of Python
            continue
        is_package = parts[-1] == "__init__"
        yield from _module(tree, ".".join(parts[:-1] if is_package else parts), is_package)


def _module(tree: ast.Module, name: str, is_package: bool) -> Iterator[Definition]:
    imports = dict(_imports(tree, name, is_package))
    members = _public(tree.body)
    links = [("imports", target) for target in sorted({t.rpartition(".")[0] or t for t in imports.values()})]
    links += [("imports", target) for target in sorted(set(imports.values()))]
    links += [("contains", f"{name}.{node.name}") for node in members]
    doc = ast.get_docstring(tree)
    if doc:
        yield Definition(name, "module", doc, [name], links)
    for node in members:
        yield from _definition(node, name, imports)


def _imports(tree: ast.Module, module: str, is_package: bool) -> Iterator[tuple[str, str]]:
    """Local name and full name of each import of a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.asname or alias.name, alias.name
        elif isinstance(node, ast.ImportFrom):
            parents = module.split(".")
            levels_up = node.level - (1 if is_package else 0)
            base = parents[: len(parents) - levels_up] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                yield alias.asname or alias.name, f"{origin}.{alias.name}" if alias.name != "*" else f"{origin}.*"


def _definition(node: _AstDefinition, parent: str, imports: Mapping[str, str]) -> Iterator[Definition]:
    name = f"{parent}.{node.name}"
    doc = ast.get_docstring(node)
    if isinstance(node, ast.ClassDef):
        members = _public(node.body)
        bases = [ast.unparse(base) for base in node.bases]
        # A plain name is defined in this module or built in: links to unknown names are dropped later.
        links = [("inherits", each) for base in bases for each in (_resolve(base, parent, imports), f"builtins.{base}")]
        links += [("contains", f"{name}.{each.name}") for each in members]
        if doc:
            head = f"class {node.name}({', '.join(bases)})" if bases else f"class {node.name}"
            yield Definition(name, "class", f"{head}\n\n{doc}", [*_names(name), node.name], links)
        for each in members:
            yield from _definition(each, name, imports)
    elif doc:
        prefix = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
        head = f"{prefix} {node.name}({ast.unparse(node.args)})"
        yield Definition(name, "function", f"{head}\n\n{doc}", _names(name))


def _public(body: list[ast.stmt]) -> list[_AstDefinition]:
    return [node for node in body if isinstance(node, _AstDefinition) and not _is_private(node.name)]


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def _names(name: str) -> list[str]:
    """The names in use: ``asyncio.threads.to_thread`` is also ``asyncio.to_thread``, and ``pathlib.Path.open`` is also
    ``Path.open``. The name of a method without its class is ambiguous: a hundred classes have a ``close``."""
    parts = name.split(".")
    names = [name, ".".join(parts[-2:])]
    return [*names, f"{parts[0]}.{parts[-1]}"] if len(parts) == 3 else names


def _resolve(base: str, module: str, imports: Mapping[str, str]) -> str:
    head, _, rest = base.partition(".")
    if head in imports:
        return f"{imports[head]}.{rest}" if rest else imports[head]
    return f"{module}.{base}"


def _topics(known: Mapping[str, Definition]) -> Iterator[Document]:
    """The language reference: each topic is a parent, and its text is split between paragraphs into chunks."""
    for topic, text in sorted(topics.items()):
        for index, chunk in enumerate(_chunks(text)):
            mentions = sorted({name for name in _DOTTED.findall(chunk) if name in known})
            yield Document(
                id=f"reference:{topic}:{index}",
                collection="reference",
                parent_id=f"reference:{topic}",
                chunk_index=index,
                title=f"{topic} (language reference)",
                text=chunk,
                tags=("reference",),
                metadata={"kind": "reference", "module": topic},
                entities=(topic, *mentions),
                links=(
                    *(Link(name, "see_also") for name in mentions),
                    *([Link(f"reference:{topic}:{index - 1}", "follows")] if index else []),
                ),
            )


def _chunks(text: str) -> list[str]:
    chunks = [""]
    for paragraph in text.split("\n\n"):
        if chunks[-1] and len(chunks[-1]) + len(paragraph) > _MAX_CHUNK_CHARS:
            chunks.append("")
        chunks[-1] += f"\n\n{paragraph}" if chunks[-1] else paragraph
    return [stripped for chunk in chunks if (stripped := chunk.strip())]
