"""What a collection is created with, and how an existing one differs.

No package contains a Qdrant server: these are the client's own models, as they are sent and as a server's response is
parsed. That a server divides a collection accordingly is not tested.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from qdrant_client import AsyncQdrantClient, models

from adapters.vector.qdrant import QdrantVector
from adapters.vector.qdrant_collection import IN_MEMORY, CollectionLayout, creation, differences
from tests.adapters.source_fixtures import LIMITS, source_query
from tests.conftest import DIMENSION, vector_record

CLUSTER = CollectionLayout(shards=4, copies=2, on_disk=True, quantization="int8", write_consistency=2)
INT8 = {"scalar": {"type": "int8", "always_ram": True}}


def request(layout: CollectionLayout) -> dict[str, Any]:
    """The JSON that creates a collection."""
    return models.CreateCollection(**_as_sent(creation(384, layout))).model_dump(mode="json", exclude_none=True)


def _as_sent(arguments: dict[str, Any]) -> dict[str, Any]:
    """``vectors_config`` of the client's method is ``vectors`` of the request."""
    return {"vectors" if name == "vectors_config" else name: value for name, value in arguments.items()}


def existing(layout: CollectionLayout) -> models.CollectionConfig:
    """What a server that created a collection with this layout responds: as in Qdrant's API reference."""
    params = {
        "vectors": {"size": 384, "distance": "Cosine", "on_disk": layout.on_disk},
        "shard_number": layout.shards,
        "replication_factor": layout.copies,
        "write_consistency_factor": layout.write_consistency,
        "on_disk_payload": True,
    }
    return models.CollectionConfig.model_validate(
        {
            "params": params,
            "hnsw_config": {"m": 16, "ef_construct": 100, "full_scan_threshold": 10_000},
            "optimizer_config": {
                "deleted_threshold": 0.2,
                "vacuum_min_vector_number": 1_000,
                "default_segment_number": 0,
                "flush_interval_sec": 5,
            },
            "quantization_config": INT8 if layout.quantization == "int8" else None,
        }
    )


def test_a_collection_is_created_as_the_settings_say() -> None:
    vectors = {"size": 384, "distance": "Cosine", "multivector_config": {"comparator": "max_sim"}}
    assert "replication_factor" not in request(IN_MEMORY)
    undivided = {"shard_number": 1, "write_consistency_factor": 1}
    assert request(IN_MEMORY) == {"vectors": vectors, **undivided}
    assert request(CLUSTER) == {
        "vectors": vectors | {"on_disk": True},
        "shard_number": 4,
        "replication_factor": 2,
        "write_consistency_factor": 2,
        "quantization_config": INT8,
    }


@pytest.mark.parametrize("layout", [IN_MEMORY, CLUSTER])
def test_a_collection_with_the_layout_of_the_settings_does_not_differ(layout: CollectionLayout) -> None:
    assert list(differences("stars", existing(layout), layout)) == []


def test_every_difference_is_named_with_what_changes_it() -> None:
    found = {each.observation: each.advice for each in differences("stars", existing(IN_MEMORY), CLUSTER)}
    assert list(found) == [
        "1 shards, TRIVIUM_QDRANT_SHARDS is 4",
        "1 copies of each shard, TRIVIUM_REPLICATION_FACTOR is 2",
        "1 copies acknowledge a write, TRIVIUM_QDRANT_WRITE_CONSISTENCY is 2",
        "vectors in memory, TRIVIUM_QDRANT_ON_DISK is true",
        "quantization none, TRIVIUM_QDRANT_QUANTIZATION is int8",
    ]
    shards, copies, consistency, on_disk, quantization = found.values()
    assert "`trivium backfill` builds another one beside it" in shards
    assert '{"params": {"replication_factor": 2}}' in copies
    assert '{"params": {"write_consistency_factor": 2}}' in consistency
    assert on_disk == 'PATCH /collections/stars with {"vectors": {"": {"on_disk": true}}}'
    assert quantization.endswith('{"quantization_config": {"scalar": {"type": "int8", "always_ram": true}}}')


def test_a_quantized_collection_is_named_as_it_is() -> None:
    found = [each for each in differences("stars", existing(CLUSTER), IN_MEMORY) if "quantization" in each.observation]
    assert [each.observation for each in found] == ["quantization int8, TRIVIUM_QDRANT_QUANTIZATION is none"]
    assert found[0].advice.endswith('{"quantization_config": "Disabled"}')


@pytest.mark.anyio
@pytest.mark.filterwarnings("ignore:(Payload indexes|Local mode):UserWarning")
async def test_a_search_scores_the_best_of_quantized_vectors_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client's local mode accepts a layout and ignores it, so the requests are recorded."""
    client = AsyncQdrantClient(":memory:")
    source = QdrantVector(client, "stars", DIMENSION, "test-1", LIMITS, CLUSTER)
    await source.create()
    await source.apply(1, [vector_record("a", seed=1)], [])
    sent: list[Any] = []
    query_batch_points = client.query_batch_points

    async def recorded(collection: str, requests: Sequence[Any]) -> Any:
        sent.extend(request.params for request in requests)
        return await query_batch_points(collection, requests)

    monkeypatch.setattr(client, "query_batch_points", recorded)
    assert [hit.id for hit in await source.search(source_query())] == ["a"]
    (parameters,) = sent
    assert (parameters.quantization.rescore, parameters.quantization.oversampling) == (True, 2.0)
    await source.close()
