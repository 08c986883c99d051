"""What a real OpenSearch does to a write when it is not as we left it: nothing may count as done, or as refused."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from opensearchpy import AsyncOpenSearch

from adapters.filter import access, normal
from adapters.keyword import opensearch
from adapters.keyword.analysis import analyzer
from adapters.keyword.opensearch import OpenSearchKeyword
from adapters.port import Query
from adapters.server import KEYWORD, Address, Limits
from orchestrator.indexing.journal import Journal
from orchestrator.indexing.replicate import Replicator
from tests.conftest import SCOPE, entry

pytestmark = [pytest.mark.anyio, pytest.mark.server]
LIMITS = Limits(read_s=20.0, write_s=20.0)


@pytest.fixture
async def client(server_url: Callable[[str], str]) -> AsyncIterator[AsyncOpenSearch]:
    made = opensearch.connect(Address.parse(server_url("opensearch"), KEYWORD), LIMITS)
    yield made
    await made.close()


@pytest.fixture
async def name(client: AsyncOpenSearch) -> AsyncIterator[str]:
    made = f"test-{uuid.uuid4().hex}"
    yield made
    await client.indices.delete(index=f"{made}-*")


@pytest.fixture
async def writing(client: AsyncOpenSearch, name: str, tmp_path: Path) -> tuple[Replicator, OpenSearchKeyword]:
    store = OpenSearchKeyword(client, name, "test-1", LIMITS)
    await store.prepare()
    return Replicator(Journal(tmp_path / "journal", 2**30), {"keyword": store}, "test-1"), store


async def test_an_alias_that_is_gone_loses_nothing_and_is_made_again(
    client: AsyncOpenSearch, name: str, writing: tuple[Replicator, OpenSearchKeyword]
) -> None:
    replicator, store = writing
    await replicator.write([entry("before")], [])
    index = next(iter(await client.indices.get_alias(name=name)))
    await client.indices.delete_alias(index=index, name=name)
    told = await replicator.write([entry("a"), entry("b")], [])
    assert list(told.missing) == ["keyword"]
    assert told.refused == {}
    assert await replicator.replay() == {}
    assert await store.count() == 3


async def test_an_index_that_takes_no_writes_for_a_while_refuses_no_document(
    client: AsyncOpenSearch, name: str, writing: tuple[Replicator, OpenSearchKeyword]
) -> None:
    replicator, store = writing
    await client.indices.put_settings(index=name, body={"index.blocks.write": True})
    told = await replicator.write([entry("a")], [])
    assert list(told.missing) == ["keyword"]
    assert told.refused == {}
    await client.indices.put_settings(index=name, body={"index.blocks.write": False})
    assert await replicator.replay() == {}
    assert await store.count() == 1


async def test_documents_are_split_there_as_queries_are_here(
    client: AsyncOpenSearch, name: str, writing: tuple[Replicator, OpenSearchKeyword]
) -> None:
    del writing
    for text in (
        "The Prestige (2006) was directed by Christopher Nolan's company.",
        "os.path.join, getName and E1234; snake_case-and-dashes",
        "Crème brûlée, naïve Ångström, ﬁne print",
        "generalizations relational conditional hopping skies dying",
        "日本語 text, 3.14 % and $5,000",
        "x" * 70,
    ):
        there = await client.indices.analyze(index=name, body={"analyzer": "trivium", "text": text})
        assert [token["token"] for token in there["tokens"]] == analyzer().analyze(text)


@pytest.mark.parametrize("word", ["university", "universities", "international", "organized", "psychologist", "added"])
async def test_words_that_the_two_stemmers_cut_differently_are_found(
    writing: tuple[Replicator, OpenSearchKeyword], word: str
) -> None:
    replicator, store = writing
    await replicator.write([entry("a", f"the {word} of it"), entry("b", "something else")], [])
    for text in (word, f'"{word}"', f'about "the {word} of it" now'):
        asked = Query(text, 5, SCOPE, normal(access(SCOPE, "normal")), normal(access(SCOPE, "normal")))
        assert (await store.search(asked)).ids == ("a",)
