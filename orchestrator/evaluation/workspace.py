"""The folder of an evaluation: its index and its results, so that an interrupted evaluation continues."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias

import anyio.to_thread
import msgspec

from adapters import Scope
from adapters.model.sources import SOURCES
from adapters.ports.embedder_address import MINILM
from adapters.servers.fingerprints import fingerprint
from adapters.storage import files
from orchestrator.evaluation.conditions import Conditions, conditions_of
from orchestrator.evaluation.dataset import Dataset
from orchestrator.evaluation.judgments import BadDataset
from orchestrator.evaluation.runs import DEPTH, RUNS, RUNS_OF_ANY_INDEX
from orchestrator.evaluation.searched_index import QueryResult
from orchestrator.indexing.corpus import parse_corpus
from orchestrator.indexing.ndjson import InvalidLine
from orchestrator.service.service import Service
from orchestrator.settings.groups import Settings, setting_fields

OpenService: TypeAlias = Callable[[Settings], AbstractAsyncContextManager[Service]]
"""Opens a service that accepts queries of any length. A function of a module, so that other processes can import it."""

_GRAPH_FILES = ("edges.jsonl", "mentions.jsonl", "entities.jsonl")
_MARKER = "indexed.json"
_WITHOUT_EFFECT = {"data_dir", "model_dir", "log_level"}
"""Settings that change no response."""
_ACCESS = {
    "tenant": "evaluation",
    "environment": "evaluation",
    "open_clearance": "restricted",
    "user": None,
    "teams": None,
    "default_collections": (),
}
"""The caller of an evaluation: all of its documents are visible, whatever the settings are."""
WITHOUT_EFFECT = frozenset(_ACCESS) | {"source_timeout_ms", "request_timeout_ms", "log_level"}
"""Settings that do not change the results of an evaluation."""
_SHORT = 12


class IndexedCorpus(msgspec.Struct, frozen=True):
    """The outcome of indexing, written when it is complete: documents, invalid lines, and the build of the index.

    :param repeated: documents with the id of a later one, which replaced them.
    """

    documents: int
    rejected: int
    build_id: str
    first_rejected: str = ""
    repeated: int = 0


@dataclass(frozen=True)
class Workspace:
    """The folder of one data set's evaluation, within the data folder; ``settings`` point into it."""

    folder: Path
    dataset: Dataset
    settings: Settings

    @classmethod
    def of(cls, settings: Settings, dataset: Dataset) -> Workspace:
        """The workspace of a data set. Each corpus, extractor and server has its own folder."""
        graph = [dataset.folder / name for name in _GRAPH_FILES]
        parts = [_file_hash(path) for path in (dataset.corpus, *graph) if path.is_file()]
        parts += [
            settings.encoding.embedder,
            settings.encoding.entity_extractor,
            *(_address(settings, source.name) for source in SOURCES),
        ]
        name = settings.storage.index_name
        key = fingerprint(name, *parts).replace("-", "")[:_SHORT]
        folder = evaluations_folder(settings) / f"{dataset.name}-{key}"
        changed = settings.changed(
            data_dir=folder,
            index_name=_index_name(settings, key),
            source_timeout_ms=60_000,
            max_limit=max(settings.requests.max_limit, DEPTH),
            **_ACCESS,
        )
        return cls(folder, dataset, changed)

    @property
    def runs(self) -> tuple[str, ...]:
        """The names of the runs."""
        return tuple(RUNS) if self._has_static_encoder else RUNS_OF_ANY_INDEX

    @property
    def _has_static_encoder(self) -> bool:
        return self.settings.encoding.embedder == MINILM

    async def index(self, open_service: OpenService, advance: Callable[[int], None]) -> IndexedCorpus:
        """Index the corpus if it is not indexed yet. After an interruption, indexing starts again."""
        settings = self.settings
        if self._has_static_encoder:
            settings = settings.changed(query_encoder="static")  # a run compares it with the model
        async with open_service(settings) as service:
            if not service.search.mismatches():
                return await self._index(service, advance)
        # Another release, or other settings, built it.
        await anyio.to_thread.run_sync(shutil.rmtree, self.folder)
        async with open_service(settings) as service:
            return await self._index(service, advance)

    async def remove_from_servers(self, open_service: OpenService) -> None:
        """Delete the indexes on servers. An embedded index stays in the folder.

        :raises AdapterError: if a server is unavailable.
        """
        if any(self.settings.sources.address(source.name) for source in SOURCES):
            (self.folder / _MARKER).unlink(missing_ok=True)
            await _drop(open_service, self.settings)

    async def _index(self, service: Service, advance: Callable[[int], None]) -> IndexedCorpus:
        marker = self.folder / _MARKER
        build_id = service.search.build_id()
        if marker.is_file():
            present = msgspec.json.decode(marker.read_bytes(), type=IndexedCorpus)
            if present.build_id == build_id and present.documents == await service.count():
                # The settings may have another centrality now.
                await service.maintenance.optimize(lambda _: None)
                return present
        rejected: list[InvalidLine] = []
        lines = parse_corpus(self.dataset.corpus)
        report = await service.documents.index(lines, service.anonymous, rejected.append, advance)
        for replica, reason in report.pending.items():
            raise OSError(f"cannot evaluate, because {replica} does not have the whole corpus: {reason}")
        await service.maintenance.optimize(lambda _: None)
        documents = await service.count()
        indexed = IndexedCorpus(
            documents,
            len(rejected),
            build_id,
            f"line {rejected[0].line}: {rejected[0].error}" if rejected else "",
            max(0, report.indexed - documents),
        )
        if not indexed.documents:
            why = rejected[0].error if rejected else "it is empty"
            raise BadDataset(f"{self.dataset.corpus} has no document that can be indexed: {why}")
        files.replace(marker, msgspec.json.encode(indexed))
        return indexed

    def conditions(self, documents: int) -> Conditions:
        """What the figures of this index hold for."""
        access = self.settings.access
        scope = Scope(access.tenant, access.environment)
        return conditions_of(str(self.dataset.corpus), documents, self.settings, scope, access.open_clearance)

    def results(self, build_id: str) -> ResultStore:
        """The results that exist for these queries, settings, the files that these name, and code."""
        queries = msgspec.json.encode([list(self.dataset.queries.items()), build_id]).decode()
        values = {name: self.settings.value(name) for name in setting_fields() if name not in _WITHOUT_EFFECT}
        contents = [_file_hash(path) for path in self.settings.files_of_ranking]
        settings = msgspec.json.encode([values, contents], enc_hook=str).decode()
        return ResultStore(
            self.folder / "responses" / fingerprint(queries, settings, _code_hash()).replace("-", "")[:_SHORT]
        )


async def remove_workspace(folder: Path, settings: Settings, open_service: OpenService) -> None:
    """Delete a folder in :func:`evaluations_folder`, and its indexes on servers.

    :raises AdapterError: if a server is unavailable; the folder is there then.
    """
    if any(settings.sources.address(source.name) for source in SOURCES):
        key = folder.name.rpartition("-")[-1]
        own = settings.changed(data_dir=folder, index_name=_index_name(settings, key))
        await _drop(open_service, own)
    await anyio.to_thread.run_sync(shutil.rmtree, folder)


def evaluations_folder(settings: Settings) -> Path:
    """The folder of all workspaces."""
    return settings.storage.data_dir / "evaluations"


class ResultStore:
    """Results in a folder, one line each; every shard appends to a file of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def shard_path(self, shard: int, shards: int) -> Path:
        """The file of one shard."""
        return self._folder / f"{shard}-of-{shards}.jsonl"

    def read(self) -> Iterator[QueryResult]:
        """All results. A line that a crash left incomplete is skipped, so its query runs again."""
        decoder = msgspec.json.Decoder(QueryResult)
        for path in sorted(self._folder.glob("*.jsonl")):
            for line in path.read_bytes().split(b"\n"):
                with suppress(msgspec.DecodeError):
                    yield decoder.decode(line)


async def _drop(open_service: OpenService, settings: Settings) -> None:
    """Delete all indexes on servers."""
    async with open_service(settings) as service:
        for server in service.health.servers.values():
            await server.drop()


def _index_name(settings: Settings, key: str) -> str:
    return f"{settings.storage.index_name[:80]}-eval-{key}"


def _address(settings: Settings, source: str) -> str:
    """The address of a source, without credentials."""
    return str(settings.sources.address(source) or settings.sources.urls[source])


def _code_hash() -> str:
    """The hashes of the code of all packages: other code may return other results."""
    specs = (find_spec(package) for package in ("adapters", "cache", "fusion", "orchestrator"))
    folders = [Path(folder) for spec in specs if spec for folder in spec.submodule_search_locations or ()]
    paths = [path for folder in folders for path in sorted(folder.rglob("*")) if path.suffix in {".py", ".cypher"}]
    return "".join(_file_hash(path) for path in paths)


def _file_hash(path: Path) -> str:
    with path.open("rb") as file:
        return f"{path.name}:{hashlib.file_digest(file, 'sha256').hexdigest()}"
