"""What is sent to OpenSearch, and replies that a healthy server does not give. The client's methods are replaced."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import chain
from typing import Any

import msgspec
import pytest
from opensearchpy import AsyncOpenSearch

from adapters import Unavailable
from adapters.keyword import opensearch_client
from adapters.keyword.opensearch import OpenSearchKeyword
from adapters.keyword.opensearch_replies import IDENTIFYING_FIELDS
from adapters.servers.fingerprints import fingerprint
from adapters.servers.server import KEYWORD_SCHEMES, Address
from fusion.columns import Documents
from tests.adapters.source_fixtures import LIMITS, source_query
from tests.conftest import SCOPE, vector_record

pytestmark = pytest.mark.anyio


@pytest.fixture
async def client() -> AsyncIterator[AsyncOpenSearch]:
    client = opensearch_client.connect(Address.parse("opensearch+http://127.0.0.1:9", KEYWORD_SCHEMES), LIMITS)
    yield client
    await client.close()


@pytest.fixture
def source(client: AsyncOpenSearch) -> OpenSearchKeyword:
    return OpenSearchKeyword(client, "stars", "test-1", LIMITS)


async def test_a_document_on_a_shard_that_is_away_is_not_taken_for_absent(
    client: AsyncOpenSearch, source: OpenSearchKeyword, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A multi-get reports it in an item of a response with the status 200."""
    error = {"type": "no_shard_available_action_exception", "reason": "No shard available"}

    async def mget(**_: Any) -> Any:
        return {"docs": [{"_id": "1", "found": False}, {"_id": "2", "error": error}]}

    monkeypatch.setattr(client, "mget", mget)
    with pytest.raises(Unavailable, match="could not read 1 documents"):
        await source.fetch(SCOPE, Documents.of_ids(["absent", "unknown"]))


async def test_protections_are_read_without_the_documents(
    client: AsyncOpenSearch, source: OpenSearchKeyword, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of a write may be too large together for any reply."""
    included = []

    async def mget(**request: Any) -> Any:
        included.append(request["params"]["_source_includes"])
        return {"docs": [{"_id": id_, "found": False} for id_ in request["body"]["ids"]]}

    monkeypatch.setattr(client, "mget", mget)
    assert await source.protections(SCOPE, ["a"]) == {}
    assert included == [IDENTIFYING_FIELDS]
    assert "text" not in IDENTIFYING_FIELDS


async def test_one_query_is_always_sent_to_the_same_copies_and_scored_by_the_statistics_of_all_shards(
    client: AsyncOpenSearch, source: OpenSearchKeyword, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[dict[str, str]] = []

    async def msearch(**request: Any) -> Any:
        header, _ = request["body"]
        sent.append(request["params"] | header)
        return {
            "responses": [{"status": 200, "timed_out": False, "_shards": {"failed": 0}, "hits": {"max_score": None}}]
        }

    monkeypatch.setattr(client, "msearch", msearch)
    source._languages[source_query("").access] = ("english",)
    for text in ("alpha", "alpha", "beta"):
        await source.search(source_query(text))
    assert [each["preference"] for each in sent] == [fingerprint("alpha"), fingerprint("alpha"), fingerprint("beta")]
    assert {each["search_type"] for each in sent} == {"dfs_query_then_fetch"}


async def test_a_write_is_cut_into_requests_that_the_server_accepts(
    client: AsyncOpenSearch, source: OpenSearchKeyword, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By default it accepts 100 MiB; the title and the text of a document are in it, and their terms in both fields."""
    requests = []

    async def bulk(index: str, body: str, params: object) -> Any:
        lines = [msgspec.json.decode(line) for line in body.splitlines()]
        requests.append(len(body.encode()))
        (action,) = {*chain.from_iterable(lines)} & {"index", "delete"}
        return {"items": [{action: {"_id": each[action]["_id"], "status": 200}} for each in lines if action in each]}

    monkeypatch.setattr(client, "bulk", bulk)
    await source.apply(1, [vector_record(str(number), "é " * 300_000) for number in range(40)], [])
    assert sum(requests) > 40 * 3 * 600_000
    assert 16 * 2**20 < max(requests) <= 32 * 2**20
    requests.clear()
    await source.apply(2, [], [("default", "default", str(number)) for number in range(501)])
    assert len(requests) == 2
