"""Before the first search of a server, a check how its index was built."""

from __future__ import annotations

import pytest

from adapters import AdapterError, Unavailable, VersionMismatch
from adapters.model.filter import And
from adapters.ports import SourceQuery
from fusion.columns import Ranking
from orchestrator.retrieval.build_check import BuildCheckedRetriever
from tests.conftest import SCOPE

pytestmark = pytest.mark.anyio

QUERY = SourceQuery("alpha", 10, SCOPE, And(()), And(()))
MISMATCH = VersionMismatch("the index was built as 'old', the settings require 'new'")


class Server:
    """A server with an index; ``error`` is what a check of it raises."""

    def __init__(self, error: AdapterError | None = None) -> None:
        self.error = error
        self.checks = self.searches = 0

    async def check(self) -> bool:
        self.checks += 1
        if self.error:
            raise self.error
        return True

    async def create(self) -> None:
        raise AssertionError("a search creates nothing")

    async def search(self, query: SourceQuery) -> Ranking:
        self.searches += 1
        return Ranking.of_ids("keyword", ["a"], [1.0])


@pytest.mark.parametrize("strict", [False, True])
async def test_an_index_of_the_same_build_is_checked_once(strict: bool) -> None:
    server = Server()
    source = BuildCheckedRetriever(server, strict)
    for _ in range(3):
        assert (await source.search(QUERY)).ids == ("a",)
    assert (server.checks, server.searches, source.mismatch) == (1, 3, None)


async def test_an_index_of_another_build_is_searched_and_reported() -> None:
    server = Server(MISMATCH)
    source = BuildCheckedRetriever(server, strict=False)
    for _ in range(3):
        assert (await source.search(QUERY)).ids == ("a",)
    assert (server.checks, server.searches, source.mismatch) == (1, 3, str(MISMATCH))


async def test_if_strict_an_index_of_another_build_is_not_searched() -> None:
    server = Server(MISMATCH)
    source = BuildCheckedRetriever(server, strict=True)
    for _ in range(3):
        with pytest.raises(VersionMismatch, match="built as 'old'"):
            await source.search(QUERY)
    assert (server.checks, server.searches) == (1, 0)


@pytest.mark.parametrize("strict", [False, True])
async def test_a_server_that_was_away_is_checked_before_the_first_search_that_reaches_it(strict: bool) -> None:
    server = Server(Unavailable("away"))
    source = BuildCheckedRetriever(server, strict)
    for _ in range(2):
        with pytest.raises(Unavailable, match="away"):
            await source.search(QUERY)
    assert (server.checks, server.searches, source.mismatch) == (2, 0, None)
    server.error = None
    await source.search(QUERY)
    assert (server.checks, server.searches) == (3, 1)


async def test_an_index_that_was_built_again_is_searched_after_a_new_check() -> None:
    server = Server(MISMATCH)
    source = BuildCheckedRetriever(server, strict=True)
    await source.check()
    assert source.mismatch
    server.error = None
    await source.check()
    assert source.mismatch is None
    assert (await source.search(QUERY)).ids == ("a",)
    assert server.checks == 2
