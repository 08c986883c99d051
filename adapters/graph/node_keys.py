"""Keys of nodes on a graph server."""

from __future__ import annotations

from adapters.document import Scope
from adapters.fingerprint import fingerprint
from adapters.ports.replica import Key


class NodeKeys:
    """Keys of the nodes of one index. They contain its name, so that several indexes can use one server."""

    def __init__(self, index_name: str) -> None:
        self._index_name = index_name

    def document(self, key: Key) -> str:
        """The key of a document's node."""
        tenant, environment, id_ = key
        return self._key(Scope(tenant, environment), "document", id_)

    def name(self, scope: Scope, name: str) -> str:
        """The key of the node of a name in normal form."""
        return self._key(scope, "name", name)

    def word(self, scope: Scope, word: str) -> str:
        """The key of the node that counts the documents with a word."""
        return self._key(scope, "word", word)

    def scope(self, scope: Scope) -> str:
        """The key of the node that counts the documents of a scope."""
        return self._key(scope, "scope")

    def _key(self, scope: Scope, *texts: str) -> str:
        return fingerprint(self._index_name, scope.tenant, scope.environment, *texts)
