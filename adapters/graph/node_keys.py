"""Keys of nodes on a graph server."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from adapters.model.document import Scope
from adapters.ports.replica import Key
from adapters.servers.fingerprints import fingerprint, prefixed_fingerprint


class NodeKeys:
    """Keys of the nodes of one index. They contain its name, so that several indexes can use one server."""

    def __init__(self, index_name: str) -> None:
        self._index_name = index_name
        self._of_kind = lru_cache(maxsize=1_000)(self._prefixed)

    def document(self, key: Key) -> str:
        """The key of a document's node."""
        tenant, environment, id_ = key
        return self._of_kind(tenant, environment, "document")(id_)

    def names(self, scope: Scope) -> Callable[[str], str]:
        """Returns the function from a name in normal form to the key of its node."""
        return self._of_kind(scope.tenant, scope.environment, "name")

    def words(self, scope: Scope) -> Callable[[str], str]:
        """Returns the function from a word to the key of the node that counts the documents with it."""
        return self._of_kind(scope.tenant, scope.environment, "word")

    def scope(self, scope: Scope) -> str:
        """The key of the node that counts the documents of a scope."""
        return fingerprint(self._index_name, scope.tenant, scope.environment, "scope")

    def _prefixed(self, tenant: str, environment: str, kind: str) -> Callable[[str], str]:
        return prefixed_fingerprint(self._index_name, tenant, environment, kind)
