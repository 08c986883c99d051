"""The calls of the engines that a hybrid search makes, behind the same HTTP server, and nothing else.

A request encodes the query, searches the vectors and keywords of each collection, walks over the graph from the best
keyword hits, and reads ten documents. There is no plan, no access check, no deadline, no cache, no fusion and no
provenance: what the service costs beyond this is its own. The adapters of the engines are the service's.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import numpy as np
import uvicorn
from fastapi import FastAPI
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from adapters.model.sources import GRAPH, KEYWORD, VECTOR
from adapters.ports import SourceQuery
from benchmarks.two_collections import NAMES
from fusion.columns import Documents
from orchestrator.auth.visibility import access_filter
from orchestrator.bootstrap import open_service
from orchestrator.http.workers import LOOP, Workers
from orchestrator.planning.filters import in_collection
from orchestrator.schema.search import EncoderName
from orchestrator.service.service import Service
from orchestrator.settings import load

_FOLDER = "BENCHMARK_FOLDER"
_SEEDS, _LIMIT = 50, 10


def main() -> None:
    """Serve until the process is stopped."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="as benchmarks.corpus builds it")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    os.environ[_FOLDER] = str(arguments.folder)
    config = uvicorn.Config(
        "benchmarks.bare_service:create_app",
        factory=True,
        port=arguments.port,
        workers=arguments.workers,
        loop=LOOP,
        log_level="warning",
        access_log=False,
    )
    Workers(config, config.bind_socket()).run()


def create_app() -> FastAPI:
    """The application of one worker."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with open_service(load(data_dir=Path(os.environ[_FOLDER]))) as service:
            app.state.engines = _Engines(service)
            yield

    async def search(request: Request) -> Response:
        content = await app.state.engines.search(msgspec.json.decode(await request.body())["query"])
        return Response(content, media_type="application/json")

    app = FastAPI(lifespan=lifespan)
    app.router.routes.append(Route("/v1/search", search, methods=["POST"]))
    return app


class _Engines:
    def __init__(self, service: Service) -> None:
        assert service.health.embedded  # noqa: S101  # the settings of this benchmark
        self._retrievers = {source.name: retriever for source, retriever, _ in service.health.embedded.retrievers()}
        self._encoders = service.search.retrieval.preparation.encoders
        self._encoder: EncoderName = service.settings.encoding.query_encoder
        self._depth = service.settings.sources.candidates
        self._scope = service.anonymous.scope
        self._access = access_filter(self._scope, service.anonymous.viewer)
        self._snapshot = service.search.snapshots.pin(self._scope)
        self._filters = [in_collection(self._access, name) for name in NAMES]

    async def search(self, text: str) -> bytes:
        query = SourceQuery(text, self._depth, self._scope, self._access, self._access, snapshot=self._snapshot)
        encoded = await self._encoders.encode(text, self._encoder, self._scope.tenant)
        queries = [replace(query, filter=each, vector=encoded.vector) for each in self._filters]
        vectors = [await self._retrievers[VECTOR.name].search(each) for each in queries]
        keywords = [await self._retrievers[KEYWORD.name].search(each) for each in queries]
        best = np.concatenate([each.docs[: _SEEDS // len(keywords)] for each in keywords])
        seeds = Documents(best, keywords[0].table)
        walked = await self._retrievers[GRAPH.name].search(replace(query, seeds=seeds))
        ranking = walked if len(walked) else vectors[0]
        documents = Documents(ranking.docs[:_LIMIT], ranking.table)
        return msgspec.json.encode(await self._snapshot.documents.fetch(self._scope, documents))


if __name__ == "__main__":
    main()
