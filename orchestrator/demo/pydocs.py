"""The documentation of this Python installation as documents and as a graph.

Sources are read, not run: docstrings and links come from syntax trees. Only modules written in C, which have no
source here, are imported and looked into.
"""

from __future__ import annotations

import ast
import re
import sysconfig
from collections.abc import Iterator, Mapping
from pathlib import Path
from pydoc_data.topics import topics

from adapters import Document, Link
from orchestrator.demo.described import Described
from orchestrator.demo.native import native_objects

_LEFT_OUT = frozenset(
    {"test", "tests", "site-packages", "distutils", "ensurepip", "idlelib", "lib2to3", "pydoc_data", "turtledemo"}
)
_TWINS = {"_pydatetime": "datetime", "_pydecimal": "decimal", "_pyio": "io"}
"""Modules whose documented source is kept under a private name, for they are run from C."""
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_CODE = re.compile(r"\b([A-Za-z]\w*_\w+|[A-Z]+[a-z]\w*|[A-Za-z]\w*(?=\())")
"""Words of a docstring that are code by their looks: ``snake_case``, ``Capitalised``, ``called()``."""
_TOPIC_CHARS = 1_500
Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def documents() -> list[Document]:
    """Some 10,000 documents: modules, classes, functions, and the language reference; links among them resolved."""
    described = {found.name: found for found in _modules(Path(sysconfig.get_paths()["stdlib"]))}
    for found in native_objects():
        described.setdefault(found.name, found)
    aliases = {alias: found.name for found in described.values() for alias in found.names if "." in alias}
    made = [_document(found, described, aliases) for found in described.values()]
    return made + list(_topics(described))


def _document(found: Described, known: Mapping[str, Described], aliases: Mapping[str, str]) -> Document:
    links = {
        (resolved, type_)
        for type_, target in found.links
        if (resolved := aliases.get(target, target)) in known and resolved != found.name
    }
    links |= {
        (resolved, "see_also")
        for mention in _mentions(found, known)
        if (resolved := aliases.get(mention, mention)) in known and resolved != found.name
    }
    return Document(
        id=found.name,
        collection="python",
        title=found.name,
        text=found.text,
        tags=(found.kind,),
        metadata={"kind": found.kind, "module": found.name.split(".")[0]},
        entities=tuple(dict.fromkeys(found.names)),
        links=_once(found.name, links),
    )


def _once(name: str, links: set[tuple[str, str]]) -> tuple[Link, ...]:
    """One link to each target, by the first of its types; what contains and what is part say the same."""
    kept: dict[str, str] = {}
    for target, type_ in sorted(links, key=lambda link: (link[1], link[0])):
        kept.setdefault(target, type_)
    # A container links to its members, so a member need not link back.
    return tuple(Link(target, type_) for target, type_ in sorted(kept.items()) if not name.startswith(f"{target}."))


def _mentions(found: Described, known: Mapping[str, Described]) -> set[str]:
    """Names that a text mentions: in full, or as their neighbours in the same class or module call them."""
    around = [found.name, found.name.rpartition(".")[0]]
    around.append(around[-1].rpartition(".")[0])
    words = set(_CODE.findall(found.text))
    near = {f"{parent}.{word}" for word in words for parent in around if parent and f"{parent}.{word}" in known}
    return near | set(_DOTTED.findall(found.text))


def _modules(root: Path) -> Iterator[Described]:
    """What the sources under ``root`` describe."""
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        parts = (_TWINS.get(parts[0], parts[0]), *parts[1:])
        if _LEFT_OUT.intersection(parts) or any(map(_is_private, parts)):
            continue
        try:
            tree = ast.parse(path.read_bytes())
        except SyntaxError:  # a template, or a file for another version of Python
            continue
        is_package = parts[-1] == "__init__"
        yield from _module(tree, ".".join(parts[:-1] if is_package else parts), is_package)


def _module(tree: ast.Module, name: str, is_package: bool) -> Iterator[Described]:
    imports = dict(_imports(tree, name, is_package))
    inside = _public(tree.body)
    links = [("imports", target) for target in sorted({t.rpartition(".")[0] or t for t in imports.values()})]
    links += [("imports", target) for target in sorted(set(imports.values()))]
    links += [("contains", f"{name}.{node.name}") for node in inside]
    doc = ast.get_docstring(tree)
    if doc:
        yield Described(name, "module", doc, [name], links)
    for node in inside:
        yield from _definition(node, name, imports)


def _imports(tree: ast.Module, module: str, is_package: bool) -> Iterator[tuple[str, str]]:
    """Local name and full name of what a module imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.asname or alias.name, alias.name
        elif isinstance(node, ast.ImportFrom):
            parents = module.split(".")
            up = node.level - (1 if is_package else 0)
            base = parents[: len(parents) - up] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                yield alias.asname or alias.name, f"{origin}.{alias.name}" if alias.name != "*" else f"{origin}.*"


def _definition(node: Definition, parent: str, imports: Mapping[str, str]) -> Iterator[Described]:
    name = f"{parent}.{node.name}"
    doc = ast.get_docstring(node)
    if isinstance(node, ast.ClassDef):
        inside = _public(node.body)
        bases = [ast.unparse(base) for base in node.bases]
        # A plain name is of this module, or built in: links to what is not there are left out later.
        links = [("inherits", each) for base in bases for each in (_resolve(base, parent, imports), f"builtins.{base}")]
        links += [("contains", f"{name}.{each.name}") for each in inside]
        if doc:
            head = f"class {node.name}({', '.join(bases)})" if bases else f"class {node.name}"
            yield Described(name, "class", f"{head}\n\n{doc}", [*_names(name), node.name], links)
        for each in inside:
            yield from _definition(each, name, imports)
    elif doc:
        prefix = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
        head = f"{prefix} {node.name}({ast.unparse(node.args)})"
        yield Described(name, "function", f"{head}\n\n{doc}", _names(name))


def _public(body: list[ast.stmt]) -> list[Definition]:
    return [node for node in body if isinstance(node, Definition) and not _is_private(node.name)]


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def _names(name: str) -> list[str]:
    """What people call it: ``asyncio.threads.to_thread`` is also ``asyncio.to_thread``, and ``Path.open`` is that of
    ``pathlib.Path.open``. A method's bare name is nobody's: a hundred classes have a ``close``."""
    parts = name.split(".")
    called = [name, ".".join(parts[-2:])]
    return [*called, f"{parts[0]}.{parts[-1]}"] if len(parts) == 3 else called


def _resolve(base: str, module: str, imports: Mapping[str, str]) -> str:
    head, _, rest = base.partition(".")
    if head in imports:
        return f"{imports[head]}.{rest}" if rest else imports[head]
    return f"{module}.{base}"


def _topics(known: Mapping[str, Described]) -> Iterator[Document]:
    """The language reference: long texts, cut between paragraphs into chunks of one parent."""
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
        if chunks[-1] and len(chunks[-1]) + len(paragraph) > _TOPIC_CHARS:
            chunks.append("")
        chunks[-1] += f"\n\n{paragraph}" if chunks[-1] else paragraph
    return [stripped for chunk in chunks if (stripped := chunk.strip())]
