"""From what a file refers to, to the files of the folder: by path, as a browser would, or by name, as in a wiki."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping

from orchestrator.indexing.folder.readers import is_index
from orchestrator.indexing.folder.walk import FORMATS, folder_in
from orchestrator.indexing.markdown import Reference

LINK, RELATED = "link", "related"
"""Types of links: in the text, in the front matter. That to the file that is about the folder is ``PART_OF``."""
_OUTSIDE = ("//", "#", "?")


class Resolver:
    """Finds the files that references lead to.

    :param ids: of the files that are indexed.
    :param others: of the files beside them that are not.
    :param names: titles and other names by id.
    :param normalize: the form in which names are compared.
    """

    def __init__(
        self,
        ids: Collection[str],
        others: Collection[str],
        names: Mapping[str, Iterable[str]],
        normalize: Callable[[str], str],
    ) -> None:
        self._normalize = normalize
        self._ids = set(ids)
        self._others = others
        self._by_stem: dict[str, set[str]] = defaultdict(set)
        self._by_name: dict[str, set[str]] = defaultdict(set)
        self._index_of: dict[str, str] = {}
        for id_ in sorted(self._ids):
            stem, _ = posixpath.splitext(id_)
            self._by_stem[stem.lower()].add(id_)
            if is_index(id_):
                self._index_of.setdefault(posixpath.dirname(id_), id_)
                self._by_stem[posixpath.dirname(id_).lower()].add(id_)
            for name in names.get(id_, ()):
                if normal := normalize(name):
                    self._by_name[normal].add(id_)
        self._by_last: dict[str, set[str]] = defaultdict(set)
        for stem, found in self._by_stem.items():
            self._by_last[posixpath.basename(stem)] |= found

    def target(self, source: str, reference: Reference) -> str | None:
        """The id of the file that a reference of a file leads to.

        ``""`` if it leads out of the folder, or to a file that is left out; ``None`` if it leads nowhere.
        """
        return self._named(source, reference.target) if reference.is_name else self._at(source, reference.target)

    def related(self, source: str, text: str) -> str | None:
        """The same for an entry of ``related``, which is a path, a name, or a wiki link."""
        name = text.removeprefix("[[").removesuffix("]]").partition("|")[0].strip()
        return self._at(source, name) or self._named(source, name)

    def folder_of(self, id_: str) -> str | None:
        """The file that is about the folder of a file, or about the nearest folder above; ``None`` if there is none."""
        folder = posixpath.dirname(id_)
        if self._index_of.get(folder) == id_:
            folder = posixpath.dirname(folder)
        while folder:
            if (found := self._index_of.get(folder)) and found != id_:
                return found
            folder = posixpath.dirname(folder)
        return None

    def _at(self, source: str, address: str) -> str | None:
        if address.startswith(_OUTSIDE) or ":" in address.partition("/")[0]:
            return ""
        path = address.partition("#")[0].partition("?")[0]
        base = folder_in(source) if path.startswith("/") else posixpath.dirname(source)
        whole = posixpath.normpath(posixpath.join(base, path.lstrip("/")))
        if whole.startswith("..") or not path:
            return ""
        if whole in self._ids:
            return whole
        if whole in self._others:
            return ""
        stem, suffix = posixpath.splitext(whole)
        candidates = self._by_stem.get(whole.lower(), set())
        if suffix.lower() in FORMATS:  # a page of a site, for the file that it is made from
            candidates = candidates | self._by_stem.get(stem.lower(), set())
        if is_index(whole):
            candidates = candidates | self._by_stem.get(posixpath.dirname(whole).lower(), set())
        return _nearest(source, candidates)

    def _named(self, source: str, name: str) -> str | None:
        path = name.partition("#")[0].strip().strip("/")
        stem = posixpath.splitext(path)[0] if posixpath.splitext(path)[1].lower() in FORMATS else path
        found = self._by_last.get(posixpath.basename(stem).lower(), set())
        in_folder = {id_ for id_ in found if f"/{stem}".lower() in f"/{posixpath.splitext(id_)[0]}".lower()}
        return _nearest(source, in_folder or self._by_name.get(self._normalize(name), set()))


def _nearest(source: str, ids: Collection[str]) -> str | None:
    """Of several files the one in the same folder, else with the shortest path."""
    folder = posixpath.dirname(source)
    return min(ids, key=lambda id_: (posixpath.dirname(id_) != folder, id_.count("/"), id_), default=None)
