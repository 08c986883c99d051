"""Rerankers, which read a query and passages together: a model behind HTTP, or a user-supplied function."""

from adapters.rerank.address import NONE, check, reranker

__all__ = ["NONE", "check", "reranker"]
