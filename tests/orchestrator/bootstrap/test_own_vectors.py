"""Vectors and encoders that users bring, in an opened service."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Iterator
from io import BytesIO
from pathlib import Path

import anyio.to_thread
import msgspec
import pytest

from adapters import Document
from adapters.encoders.documents import DocumentVectors
from adapters.encoders.minilm import MiniLM
from adapters.model.errors import Unavailable, VersionMismatch
from adapters.model.vectors import packed, unpacked
from orchestrator.bootstrap import open_service
from orchestrator.bootstrap.assembly import open_generation
from orchestrator.bootstrap.embedded import rebuild_index
from orchestrator.bootstrap.first_search import warm_up
from orchestrator.indexing.ndjson import InvalidLine, ParsedLine, ValidLine, parse_ndjson
from orchestrator.planning.errors import BadRequest
from orchestrator.service.documents import ChunkHandling
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from orchestrator.settings.loading import SettingsError, load
from tests.orchestrator.bootstrap.helpers import index, search

pytestmark = pytest.mark.anyio

HERE = f"python://{__name__}"
TEXTS = {
    "rhine": "The Rhine flows through Cologne and Rotterdam to the North Sea.",
    "elbe": "The Elbe flows through Dresden and Hamburg to the North Sea.",
    "pasta": "Boil the water, add salt, and cook the pasta for nine minutes.",
    "bread": "Knead flour, water, salt and yeast, and bake the bread for an hour.",
    "asyncio": "An event loop runs coroutines, and each of them gives way to others when it waits.",
}
DOCUMENTS = [Document(id=id_, title=id_.title(), text=text) for id_, text in TEXTS.items()]
QUERIES = ("Which river reaches the sea at Hamburg?", "how long does bread bake", "asyncio", "noodles")


def encoded(model: MiniLM) -> list[Document]:
    """The documents with the vectors of the built-in encoder."""
    vectors = DocumentVectors(model).encode_documents(DOCUMENTS)
    return [
        msgspec.structs.replace(document, vector=unpacked(packed(matrix[0].tolist())))
        for document, matrix in zip(DOCUMENTS, vectors, strict=True)
    ]


@pytest.fixture
def given(chosen: Settings) -> Settings:
    return chosen.changed(embedder="none://384")


async def test_vectors_given_by_hand_find_what_the_encoder_finds(
    chosen: Settings, tmp_path: Path, model: MiniLM
) -> None:
    by_hand = chosen.changed(embedder="none://384", data_dir=tmp_path / "given")
    async with open_service(chosen) as ours, open_service(by_hand) as theirs:
        await index(ours, DOCUMENTS)
        await index(theirs, encoded(model))
        for query in QUERIES:
            for mode in ("vector", "hybrid"):
                expected = await search(ours, query, mode=mode)
                found = await search(theirs, query, mode=mode, vector=tuple(model.encode(query).tolist()))
                assert found.encoder == "none"
                assert not found.degraded
                scores = {hit.id: hit.score for hit in expected.hits}
                assert [hit.id for hit in found.hits] == list(scores)
                assert {hit.id: hit.score for hit in found.hits} == pytest.approx(scores, rel=1e-3)


def lines_of(*documents: dict[str, object]) -> Iterator[ParsedLine]:
    return parse_ndjson(BytesIO(b"\n".join(map(msgspec.json.encode, documents))))


async def errors_of(service: Service, *documents: dict[str, object]) -> list[str]:
    errors: list[InvalidLine] = []
    await service.documents.index(lines_of(*documents), service.anonymous, errors.append)
    return [line.error for line in errors]


async def test_a_document_without_a_vector_that_fits_is_refused_by_name(given: Settings) -> None:
    fits = [1.0] * 384
    async with open_service(given) as service:
        errors = await errors_of(
            service,
            {"id": "fits", "text": "x", "vector": fits},
            {"id": "none", "text": "x"},
            {"id": "short", "text": "x", "vector": fits[1:]},
            {"id": "zero", "text": "x", "vector": [0] * 384},
            {"id": "long", "text": "x", "vector": [1] * 4_097},
            {"id": "text", "text": "x", "vector": ["1"]},
        )
        assert errors == [
            "vector: missing, and nothing encodes texts; give 384 numbers, as in the vectors of none-384",
            "vector: 383 numbers, allowed are 384 numbers, as in the vectors of none-384",
            "vector: must contain finite numbers, one of them not 0, in single precision",
            "vector: 4097 numbers, allowed are 4096",
            "vector[0]: '1', allowed are numbers",
        ]
        assert await service.count() == 1


async def test_a_query_without_a_vector_is_refused_by_name_unless_no_vectors_are_compared(
    given: Settings, model: MiniLM
) -> None:
    async with open_service(given) as service:
        await index(service, encoded(model))
        for mode in ("hybrid", "vector"):
            with pytest.raises(BadRequest, match=r"vector: missing, and TRIVIUM_EMBEDDER is none://384"):
                await search(service, "Hamburg", mode=mode)
        found = await search(service, "Hamburg")
        assert found.hits[0].id == "elbe"
        assert found.route.sources == ("graph", "keyword")
        assert "vector is left out: the query has no vector, and nothing encodes it" in found.route.reason
        with pytest.raises(BadRequest, match="vector: 2 numbers, the documents have 384"):
            await search(service, "Hamburg", vector=(1.0, 2.0))
        assert [hit.id for hit in (await search(service, "Hamburg", mode="keyword")).hits] == ["elbe"]
        assert [hit.id for hit in (await search(service, "North Sea", mode="graph")).hits] == ["rhine", "elbe"]


async def test_chunks_are_refused_where_nothing_encodes_them(given: Settings, model: MiniLM) -> None:
    async def read() -> list[ParsedLine]:
        return [ValidLine(1, encoded(model)[0])]

    async with open_service(given) as service:
        with pytest.raises(BadRequest, match="chunk: chunks have no vectors, and TRIVIUM_EMBEDDER encodes no text"):
            await service.documents.put(read, service.anonymous, "split")
        assert await service.count() == 0


async def test_chunks_of_a_document_with_a_vector_are_encoded(chosen: Settings) -> None:
    own = (1.0, *[0.0] * 383)
    text = "\n\n".join(f"# Part {number}\n\n" + "A sentence of this part. " * 30 for number in range(8))

    async def read() -> list[ParsedLine]:
        return [ValidLine(1, Document(id="long", text=text, vector=own))]

    async with open_service(chosen) as service:
        await service.documents.put(read, service.anonymous, "split")
        documents = {each.id: each async for each in service.documents.all(service.anonymous)}
        assert len(documents) > 8
        assert documents.pop("long").vector == own
        assert {each.vector for each in documents.values()} == {None}
        (best, *_) = (await search(service, "nothing", mode="vector", vector=own, collapse="none")).hits
        assert (best.id, best.score) == ("long", pytest.approx(1.0, abs=0.01))


@pytest.mark.parametrize("chunks", ["split", "given"])
async def test_a_document_whose_vector_does_not_fit_has_no_chunks_and_replaces_none(
    chosen: Settings, chunks: ChunkHandling
) -> None:
    text = "A sentence of this part. " * 60

    def reading(*documents: Document) -> Callable[[], Awaitable[list[ParsedLine]]]:
        async def read() -> list[ParsedLine]:
            return [ValidLine(number, document) for number, document in enumerate(documents, start=1)]

        return read

    async with open_service(chosen) as service:
        await service.documents.put(reading(Document(id="a", text=text)), service.anonymous, "split")
        before = [each async for each in service.documents.all(service.anonymous)]
        assert len(before) > 1
        wrong = reading(Document(id="a", text="new " + text, vector=(1.0, 2.0)))
        if chunks == "given":
            with pytest.raises(BadRequest, match="line 1 is invalid, so nothing is written: vector: 2 numbers"):
                await service.documents.put(wrong, service.anonymous, chunks)
        else:
            response = await service.documents.put(wrong, service.anonymous, chunks)
            assert [(each.line, each.status) for each in response.lines] == [(1, "rejected")]
        assert [each async for each in service.documents.all(service.anonymous)] == before


async def test_vectors_of_another_encoder_are_not_compared_although_they_have_the_same_length(
    given: Settings, model: MiniLM
) -> None:
    async with open_service(given) as service:
        await index(service, encoded(model))
    async with open_generation(given.changed(embedder="minilm://")) as other:
        found = await search(other, "Hamburg", mode="hybrid")
        assert found.hits[0].id == "elbe"
        assert {hit.sources["vector"] for hit in found.hits} == {None}
        reasons = {each.source: each.reason for each in found.degraded}
        assert reasons["vector"] == "the index has vectors of another encoder than the settings name"
    async with open_service(given) as service:
        assert not (await search(service, "Hamburg", vector=encoded(model)[0].vector)).degraded


async def test_a_service_with_given_vectors_is_warmed_up(given: Settings, caplog: pytest.LogCaptureFixture) -> None:
    async with open_service(given) as service:
        await warm_up(service)
    assert not [line for line in caplog.messages if "warming up" in line]


async def test_an_index_of_other_vectors_is_not_written_and_searches_say_so(given: Settings, model: MiniLM) -> None:
    async with open_service(given) as service:
        await index(service, encoded(model))
    for embedder in ("minilm://", "none://383"):
        async with open_generation(given.changed(embedder=embedder)) as other:
            document = Document(id="x", text="x", vector=(1.0,) * other.search.retrieval.preparation.encoders.dimension)
            with pytest.raises(VersionMismatch, match=r"built as 'none-384\+"):
                await index(other, [document])
            found = await search(other, "Hamburg", mode="keyword")
            assert "'none-384+" in found.degraded[0].reason
        with pytest.raises(VersionMismatch):
            async with open_service(given.changed(embedder=embedder, strict_index=True)):
                pass


async def test_own_vectors_survive_the_export_and_a_rebuild(given: Settings, tmp_path: Path, model: MiniLM) -> None:
    written = encoded(model)
    async with open_service(given) as service:
        await index(service, written)
        exported = [each async for each in service.documents.all(service.anonymous)]
        assert {each.id: each for each in exported} == {each.id: each for each in written}
    (vectors,) = (given.storage.data_dir / "index").rglob("vectors.f32")
    vectors.write_bytes(vectors.read_bytes()[:-1] + b"?")
    rebuilt = await anyio.to_thread.run_sync(rebuild_index, given, False, lambda _: None)
    assert (rebuilt.documents, rebuilt.encoded, rebuilt.lost) == (len(written), len(written), 0)
    async with open_service(given) as service:
        found = await search(service, "x", mode="vector", vector=written[1].vector)
        assert (found.hits[0].id, found.hits[0].score) == (written[1].id, pytest.approx(1.0, abs=0.01))


async def test_everything_is_measured_that_does_not_need_an_encoder(given: Settings, model: MiniLM) -> None:
    documents = [
        msgspec.structs.replace(document, id=f"{document.id}-{number}")
        for number in range(50)
        for document in encoded(model)
    ]
    async with open_service(given) as service:
        await index(service, documents)
        await service.maintenance.measure(lambda _: None)
        assert not service.maintenance.outdated()
        found = await search(service, "bread", vector=documents[3].vector)
        assert found.hits[0].id.startswith("bread")


def letters(texts: list[str]) -> list[list[float]]:
    return [[1.0, *(float(text.lower().count(letter)) for letter in "abcdefghijklmnopqrstuvwxyz")] for text in texts]


class Switched:
    """An encoder that can be made to fail or to wait."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.hangs_on = ""
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    def __call__(self, texts: list[str]) -> list[list[float]]:
        if self.error:
            raise self.error
        if self.hangs_on in texts:
            self.may_go_on.wait()
        return letters(texts)


switched = Switched()


@pytest.fixture
def function() -> Iterator[Switched]:
    yield switched
    switched.error = None
    switched.may_go_on.set()


async def test_a_function_encodes_documents_and_queries(chosen: Settings) -> None:
    async with open_service(chosen.changed(embedder=f"{HERE}:letters")) as service:
        await index(service, [Document(id=text, text=text) for text in ("aaa", "zzz")])
        found = await search(service, "za zz", mode="vector")
        assert [hit.id for hit in found.hits] == ["zzz", "aaa"]
        assert found.encoder == "model"
        assert service.search.embedding_model == f"{HERE}:letters-27"


async def test_a_function_that_fails_costs_the_vectors_of_a_search_and_the_whole_write(
    chosen: Settings, function: Switched
) -> None:
    async with open_service(chosen.changed(embedder=f"{HERE}:switched")) as service:
        await index(service, DOCUMENTS)
        function.error = RuntimeError("out of memory")
        found = await search(service, "Hamburg")
        assert [(each.source, each.reason) for each in found.degraded] == [("vector", f"{HERE}:switched failed")]
        assert found.hits[0].id == "elbe"
        with pytest.raises(Unavailable, match="switched failed"):
            await index(service, [Document(id="new", text="new")])
        assert await service.count() == len(DOCUMENTS)
        found = {each.subject: each for each in await service.health.examine()}
        assert not found["embedder"].is_well
        assert "no query: " in found["embedder"].observation
        assert "switched failed: RuntimeError in " in found["embedder"].observation


async def test_a_function_that_hangs_costs_the_vectors_of_a_search_and_no_more_than_its_time(
    chosen: Settings, function: Switched
) -> None:
    async with open_service(chosen.changed(embedder=f"{HERE}:switched")) as service:
        await index(service, DOCUMENTS)
        function.hangs_on = "Hamburg"
        function.may_go_on.clear()
        found = await search(service, "Hamburg", timeout_ms=200)
        assert [each.source for each in found.degraded] == ["vector"]
        assert found.hits[0].id == "elbe"
        assert found.took_ms < 5_000
        assert not (await search(service, "Rotterdam")).degraded  # the call for the other one still hangs
        function.may_go_on.set()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"embedder": "none://"}, "TRIVIUM_EMBEDDER is 'none://'"),
        ({"embedder": "none://0"}, "allowed are minilm://, none://DIMENSION (1 to 4096), python://package"),
        ({"embedder": "none://4097"}, "TRIVIUM_EMBEDDER is 'none://4097'"),
        ({"embedder": "openai://x"}, "allowed are minilm://"),
        (
            {"embedder": "none://3", "query_encoder": "static"},
            "TRIVIUM_QUERY_ENCODER is 'static': it is fitted to minilm://, and TRIVIUM_EMBEDDER is none://3",
        ),
    ],
)
def test_other_encoders_are_refused_by_name(changes: dict[str, str], message: str) -> None:
    with pytest.raises(SettingsError) as refused:
        load(**changes)
    assert message in str(refused.value)
