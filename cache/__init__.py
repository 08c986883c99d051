"""Keys, values and how long they are kept; never a query. Imports nothing of ours."""

from cache.memo import Memo

__all__ = ["Memo"]
