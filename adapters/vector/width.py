"""How widely a graph of nearest neighbours (HNSW) is searched."""

from __future__ import annotations


def search_width(depth: int, is_filtered: bool = False) -> int:
    """The number of candidates (``ef``) with which about 99 % of the ``depth`` nearest documents are found.

    With a filter, only documents that pass it count as candidates, and more of them are needed. Measured on 18,000
    passages of six corpora: docs/decisions/0025-trust-by-query.md and 0032-search-of-hnsw.md.
    """
    width = 75 + depth * 3 // 2
    return width * 3 // 2 if is_filtered else width
