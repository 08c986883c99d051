"""How widely a graph of nearest neighbours (HNSW) is searched."""

from __future__ import annotations


def search_width(depth: int) -> int:
    """The number of candidates (``ef``) with which about 99 % of the ``depth`` nearest documents are found.

    Measured on 18,000 passages of six corpora: docs/decisions/0025-trust-by-query.md.
    """
    return 75 + depth * 3 // 2
