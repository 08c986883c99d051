"""What a principal may see: as a filter for the sources, and as a check of single documents."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

from cachetools import LRUCache

from adapters import Record, Scope, Viewer
from adapters.model.document import fields
from adapters.model.filter import Filter, access, metadata_keys, normal, predicate
from adapters.model.filter_hash import filter_key

VisibilityCheck: TypeAlias = Callable[[Record], bool]
"""Whether a document passes a filter."""


@lru_cache(maxsize=1_024)
def access_filter(scope: Scope, viewer: Viewer) -> Filter:
    """All documents of a scope that a viewer may see, in normal form."""
    return normal(access(scope, viewer))


_checks: LRUCache[bytes, VisibilityCheck] = LRUCache(64)


def visibility_check(condition: Filter) -> VisibilityCheck:
    """The access check after retrieval. It evaluates the filter itself, not a source's translation of it."""
    key = filter_key(condition)
    check = _checks.get(key)
    if check is None:
        passes, keys = predicate(condition), metadata_keys(condition)
        check = _checks[key] = lambda record: passes(fields(record, keys))
    return check
