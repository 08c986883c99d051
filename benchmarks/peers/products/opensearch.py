"""OpenSearch with its k-NN and neural-search plugins: the ``hybrid`` query, fused by its RRF processor, over HTTP.

The archive of the k-NN plugin has no native library, so its engine is Lucene's HNSW.
"""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.products.product import DEPTH, LIMIT, Doc
from benchmarks.peers.products.product import Product as Base
from tests.servers.start import Java, find_program

_RELEASE = "2.19.1.0"
_PLUGINS = {
    "opensearch-knn": "org.opensearch.knn.plugin.KNNPlugin",
    "neural-search": "org.opensearch.neuralsearch.plugin.NeuralSearch",
}
_BATCH = 500


class Product(Base):
    server: Java | None = None

    def index(self, documents: list[Doc], vectors: np.ndarray) -> None:
        self._start()
        text = {"type": "text", "analyzer": "english"}
        method = {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"}
        vector = {"type": "knn_vector", "dimension": vectors.shape[1], "method": method}
        mappings = {"properties": {"title": text, "text": text, "vector": vector}}
        settings = {"index.knn": True, "number_of_shards": 1, "number_of_replicas": 0}
        self._call("PUT", "/documents", {"settings": settings, "mappings": mappings})
        fuse = {"score-ranker-processor": {"combination": {"technique": "rrf"}}}
        self._call("PUT", "/_search/pipeline/rrf", {"phase_results_processors": [fuse]})
        for start in range(0, len(documents), _BATCH):
            lines = []
            for row, each in enumerate(documents[start : start + _BATCH], start):
                content = {"title": each["title"], "text": each["text"], "vector": vectors[row].tolist()}
                lines += [json.dumps({"index": {"_id": each["id"]}}), json.dumps(content)]
            if self._call("POST", "/documents/_bulk", "\n".join([*lines, ""]))["errors"]:
                raise SystemExit("OpenSearch has refused some documents")
        self._call("POST", "/documents/_refresh", {})
        self._call("POST", "/documents/_flush", {})

    def open(self) -> None:
        self._start()
        self._call("GET", "/_cluster/health/documents?wait_for_status=green&timeout=60s", {})

    def search(self, text: str, vector: np.ndarray) -> list[Doc]:
        words = {"multi_match": {"query": text, "fields": ["title^3", "text"]}}
        nearest = {"knn": {"vector": {"vector": vector.tolist(), "k": DEPTH}}}
        query = {"hybrid": {"queries": [words, nearest], "pagination_depth": DEPTH}}
        content = {"size": LIMIT, "query": query, "_source": ["title", "text"]}
        found = self._call("POST", "/documents/_search?search_pipeline=rrf", content)
        return [Doc(id=hit["_id"], **hit["_source"]) for hit in found["hits"]["hits"]]

    def server_pid(self) -> int | None:
        return self.server.process.pid if self.server else None

    def close(self) -> None:
        if self.server:
            self.server.__exit__()

    def _start(self) -> None:
        self.server = Java("opensearch", self.folder, _jars(self.folder.parent), [",".join(_PLUGINS.values())])
        self.server.start()
        self.connection = http.client.HTTPConnection("127.0.0.1", int(self.server.url.rpartition(":")[2]))
        self.connection.connect()
        self.connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def _call(self, method: str, path: str, content: object) -> dict[str, Any]:
        data = content if isinstance(content, str) else json.dumps(content)
        self.connection.request(method, path, data.encode(), {"content-type": "application/json"})
        response = self.connection.getresponse()
        reply: dict[str, Any] = json.loads(response.read())
        if response.status >= http.client.MULTIPLE_CHOICES:
            raise SystemExit(f"{method} {path}: {str(reply)[:400]}")
        return reply


def _jars(folder: Path) -> list[Path]:
    """The archives of the plugins, downloaded once into a folder."""
    jars: list[Path] = []
    for plugin in _PLUGINS:
        unpacked = folder / plugin
        if not unpacked.exists():
            artifact = f"org.opensearch.plugin:{plugin}:{_RELEASE}:zip"
            maven = [find_program("mvn", "the Debian package maven contains it"), "-q", "-B", "dependency:copy"]
            options = [f"-Dartifact={artifact}", f"-DoutputDirectory={folder}"]
            subprocess.run([*maven, *options], check=True, cwd=folder)
            with zipfile.ZipFile(folder / f"{plugin}-{_RELEASE}.zip") as archive:
                archive.extractall(unpacked)
        jars += sorted(unpacked.glob("*.jar"))
    return jars
