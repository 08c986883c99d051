"""Where an evaluation keeps its index and its answers: one that was interrupted goes on, and one again is quick."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import msgspec

from adapters import Scope, files
from adapters.fingerprint import fingerprint
from adapters.server import GRAPH, KEYWORD, VECTOR, Address
from orchestrator.evaluation.dataset import BadDataset, Dataset
from orchestrator.guard import TRUST, Guard
from orchestrator.indexing import beir, lines
from orchestrator.settings import EMBEDDED, Settings
from orchestrator.wiring import opened

_CORPUS = ("corpus.jsonl", "edges.jsonl", "mentions.jsonl", "entities.jsonl")
_ELSEWHERE = {"data_dir", "model_dir", "log_level"}
"""Settings that change no answer."""
_SCOPE = {
    "tenant": "evaluation",
    "environment": "evaluation",
    "open_clearance": "restricted",
    "default_collections": (),
}
"""Whose documents those of an evaluation are: everybody's here, whatever the service is set to show."""
_PLACES = {"vector": VECTOR, "graph": GRAPH, "keyword": KEYWORD}
_SHORT = 12


class Indexed(msgspec.Struct, frozen=True):
    """The outcome of indexing, written when it was whole: documents, lines left out, and what built the index."""

    documents: int
    rejected: int
    index_version: str


class Ranked(msgspec.Struct, frozen=True, array_like=True):
    """A hit as it is kept: where each source had it is what its provenance comes down to."""

    id: str
    score: float
    ranks: dict[str, int]


class Answer(msgspec.Struct, frozen=True):
    """What the engine answered to one query of one run, and which sources it asked."""

    run: str
    query: str
    hits: list[Ranked]
    sources: tuple[str, ...]


@dataclass(frozen=True)
class Work:
    """The folder of one data set's evaluation, under the data folder of the settings given; these point into it."""

    folder: Path
    dataset: Dataset
    settings: Settings

    @classmethod
    def of(cls, settings: Settings, dataset: Dataset) -> Work:
        """Another corpus, or another index's name, is another folder; apart from that the settings stay as they are."""
        parts = [_digest(dataset.folder / name) for name in _CORPUS if (dataset.folder / name).is_file()]
        parts += [settings.extractor, *(_place(name, getattr(settings, name)) for name in _PLACES)]
        key = fingerprint(settings.index_name, *parts).replace("-", "")[:_SHORT]
        folder = settings.data_dir / "evaluations" / f"{dataset.name}-{key}"
        changed = {
            "data_dir": folder,
            "index_name": f"{settings.index_name[:80]}-eval-{key}",
            "source_timeout_ms": 60_000,
            "max_query_chars": 1_000_000,
            **_SCOPE,
        }
        return cls(folder, dataset, settings.model_copy(update=changed))

    async def index(self, advance: Callable[[int], None]) -> Indexed:
        """Index the corpus, unless that was done: again from the start if it was interrupted, which does no harm."""
        marker = self.folder / "indexed.json"
        async with opened(self.settings) as service:
            version = service.index.index_version
            if marker.is_file():
                held = msgspec.json.decode(marker.read_bytes(), type=Indexed)
                if held.index_version == version and held.documents == await service.count():
                    await service.tidy(lambda _: None)  # another measure of centrality may be asked for since
                    return held
            rejected: list[lines.Bad] = []
            documents = lines.good(beir.read(self.dataset.folder), rejected.append)
            done = await service.writer.index(documents, service.caller.scope, advance)
            for store, reason in done.missing.items():
                raise OSError(f"{store} does not hold the corpus, so there is nothing to evaluate: {reason}")
            await service.tidy(lambda _: None)
            indexed = Indexed(await service.count(), len(rejected), version)
        if not indexed.documents:
            why = rejected[0].error if rejected else "it is empty"
            raise BadDataset(f"{self.dataset.folder / 'corpus.jsonl'} has no document that can be indexed: {why}")
        files.replace(marker, msgspec.json.encode(indexed))
        return indexed

    def guard(self) -> float:
        """What the graph counts in this index."""
        scope = Scope(self.settings.tenant, self.settings.environment)
        return Guard(self.settings.data_dir / TRUST).value(scope)

    def answers(self, index_version: str) -> Answers:
        """The answers to these queries under these settings by this code, as far as they are there."""
        asked = msgspec.json.encode([list(self.dataset.queries.items()), index_version]).decode()
        chosen = self.settings.model_dump_json(exclude=_ELSEWHERE)
        return Answers(self.folder / "answers" / fingerprint(asked, chosen, _code()).replace("-", "")[:_SHORT])


class Answers:
    """Answers in a folder, a line each; every shard appends to a file of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def shard(self, shard: int, shards: int) -> Path:
        """The file of one shard."""
        return self._folder / f"{shard}-of-{shards}.jsonl"

    def read(self) -> Iterator[Answer]:
        """All that there are. A line that a crash left half written is left out, and so asked again."""
        decoder = msgspec.json.Decoder(Answer)
        for path in sorted(self._folder.glob("*.jsonl")):
            for line in path.read_bytes().split(b"\n"):
                with suppress(msgspec.DecodeError):
                    yield decoder.decode(line)


def _place(name: str, address: str) -> str:
    """Where a source is, without who may enter."""
    return address if address == EMBEDDED else str(Address.parse(address, _PLACES[name]))


def _code() -> str:
    """What answers: the sources of all our packages, for other code may give other answers."""
    found = (find_spec(package) for package in ("adapters", "cache", "fusion", "orchestrator"))
    folders = [Path(folder) for spec in found if spec for folder in spec.submodule_search_locations or ()]
    sources = [path for folder in folders for path in sorted(folder.rglob("*")) if path.suffix in {".py", ".cypher"}]
    return "".join(_digest(path) for path in sources)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return f"{path.name}:{hashlib.file_digest(file, 'sha256').hexdigest()}"
