"""What reads a query and passages together and says which answer it: a model behind HTTP, or a function."""

from adapters.rerank.address import NONE, check, reranker

__all__ = ["NONE", "check", "reranker"]
