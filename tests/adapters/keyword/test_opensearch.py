"""Writes to a real OpenSearch whose index was changed from outside: no write may count as applied, or as rejected."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from opensearchpy import AsyncOpenSearch

from adapters import Viewer
from adapters.keyword import opensearch_client
from adapters.keyword.opensearch import OpenSearchKeyword
from adapters.model.filter import access, normal
from adapters.ports import SourceQuery
from adapters.servers.server import KEYWORD_SCHEMES, Address, Limits, Partitioning
from orchestrator.indexing.log.write_log import WriteLog
from orchestrator.indexing.replication import Replication
from tests.conftest import SCOPE, vector_record

pytestmark = [pytest.mark.anyio, pytest.mark.server]
LIMITS = Limits(read_timeout_s=20.0, write_timeout_s=20.0)


@pytest.fixture
async def client(server_url: Callable[[str], str]) -> AsyncIterator[AsyncOpenSearch]:
    connected = opensearch_client.connect(Address.parse(server_url("opensearch"), KEYWORD_SCHEMES), LIMITS)
    yield connected
    await connected.close()


@pytest.fixture
async def name(client: AsyncOpenSearch) -> AsyncIterator[str]:
    unique = f"test-{uuid.uuid4().hex}"
    yield unique
    await client.indices.delete(index=f"{unique}-*")


@pytest.fixture
async def replicated(client: AsyncOpenSearch, name: str, tmp_path: Path) -> tuple[Replication, OpenSearchKeyword]:
    keyword = OpenSearchKeyword(client, name, "test-1", LIMITS)
    await keyword.create()
    return Replication(WriteLog(tmp_path / "log", 2**30), {"keyword": keyword}, "keyword", keyword, "test-1"), keyword


async def test_a_deleted_alias_loses_no_write_and_is_created_again(
    client: AsyncOpenSearch, name: str, replicated: tuple[Replication, OpenSearchKeyword]
) -> None:
    replication, keyword = replicated
    await replication.write([vector_record("before")], [])
    index = next(iter(await client.indices.get_alias(name=name)))
    await client.indices.delete_alias(index=index, name=name)
    acknowledgement = await replication.write([vector_record("a"), vector_record("b")], [])
    assert list(acknowledgement.pending) == ["keyword"]
    assert acknowledgement.rejected == {}
    assert await replication.apply_unapplied() == {}
    assert await keyword.count() == 3


async def test_an_index_that_is_read_only_for_a_while_rejects_no_document(
    client: AsyncOpenSearch, name: str, replicated: tuple[Replication, OpenSearchKeyword]
) -> None:
    replication, keyword = replicated
    await client.indices.put_settings(index=name, body={"index.blocks.write": True})
    acknowledgement = await replication.write([vector_record("a")], [])
    assert list(acknowledgement.pending) == ["keyword"]
    assert acknowledgement.rejected == {}
    await client.indices.put_settings(index=name, body={"index.blocks.write": False})
    assert await replication.apply_unapplied() == {}
    assert await keyword.count() == 1


async def test_the_number_of_shards_changes_no_score_and_is_compared_with_the_settings(
    client: AsyncOpenSearch, name: str
) -> None:
    """Forty documents in three shards: the statistics of each shard alone would give other scores."""
    records = [
        vector_record(str(n), "Alpha " + "Centauri " * (1 + n % 7) + "star " * (n % 5) + "light") for n in range(40)
    ]
    allowed = normal(access(SCOPE, Viewer("normal")))
    rankings = []
    for shards in (1, 3):
        partitioning = Partitioning(shards, copies=2)
        keyword = OpenSearchKeyword(client, f"{name}-{shards}", "test-1", LIMITS, partitioning)
        await keyword.create()
        await keyword.apply(1, records, [])
        ranking = await keyword.search(SourceQuery("centauri star", 40, SCOPE, allowed, allowed))
        rankings.append([(hit.id, pytest.approx(hit.score, rel=1e-5)) for hit in ranking])
        assert await keyword.differences() == []
    assert len(rankings[0]) == 40
    assert rankings[0] == rankings[1]
    chosen = OpenSearchKeyword(client, f"{name}-3", "test-1", LIMITS, Partitioning(2, copies=1))
    shards_differ, copies_differ = await chosen.differences()
    assert shards_differ.observation == "3 shards, TRIVIUM_OPENSEARCH_SHARDS is 2"
    assert "`trivium backfill` builds another one beside it" in shards_differ.advice
    assert copies_differ.observation == "2 copies of each shard, TRIVIUM_REPLICATION_FACTOR is 1"
    index = next(iter(await client.indices.get_alias(name=f"{name}-3")))
    assert copies_differ.advice == f'PUT /{index}/_settings with {{"index": {{"number_of_replicas": 0}}}}'
    await client.indices.put_settings(index=index, body={"index": {"number_of_replicas": 0}})
    assert [each.observation for each in await chosen.differences()] == [shards_differ.observation]


@pytest.mark.parametrize("word", ["university", "universities", "international", "organized", "psychologist", "added"])
async def test_words_that_stemmers_stem_differently_are_found(
    replicated: tuple[Replication, OpenSearchKeyword], word: str
) -> None:
    replication, keyword = replicated
    await replication.write([vector_record("a", f"the {word} of it"), vector_record("b", "something else")], [])
    for text in (word, f'"{word}"', f'about "the {word} of it" now'):
        allowed = normal(access(SCOPE, Viewer("normal")))
        assert (await keyword.search(SourceQuery(text, 5, SCOPE, allowed, allowed))).ids == ("a",)
