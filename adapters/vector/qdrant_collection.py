"""The collection of the vector source: what it is created with, and how an existing one differs."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from qdrant_client import models as qdrant

from adapters.ports.server import Difference
from adapters.servers.server import SHARDS_ARE_FIXED, Partitioning, Quantization


@dataclass(frozen=True, slots=True)
class CollectionLayout(Partitioning):
    """How a collection is divided and stored.

    :param on_disk: whether the vectors are in mapped files, of which the page cache contains those in use, instead of
        in memory.
    :param quantization: ``int8`` searches copies of the vectors with a quarter of the size, in memory, and scores the
        best of them again by the vectors themselves.
    :param write_consistency: number of copies that have to apply a write before it is acknowledged.
    """

    on_disk: bool = False
    quantization: Quantization = "none"
    write_consistency: int = 1


IN_MEMORY = CollectionLayout()
"""One shard on one node, the vectors as they are."""

SEARCH_QUANTIZATION = qdrant.QuantizationSearchParams(rescore=True, oversampling=2.0)
"""It has no effect on vectors that are not quantized."""


_INT8 = qdrant.ScalarQuantization(scalar=qdrant.ScalarQuantizationConfig(type=qdrant.ScalarType.INT8, always_ram=True))


PAYLOAD_INDEXES: Mapping[str, qdrant.KeywordIndexParams] = {
    "scope": qdrant.KeywordIndexParams(type=qdrant.KeywordIndexType.KEYWORD, is_tenant=True),
    "filter_terms": qdrant.KeywordIndexParams(type=qdrant.KeywordIndexType.KEYWORD),
}
"""By field of the payload. Without them a search with a filter reads all points."""


def creation(dimension: int, layout: CollectionLayout) -> dict[str, Any]:
    """The arguments of ``create_collection`` besides the name."""
    return {
        "vectors_config": qdrant.VectorParams(
            size=dimension,
            distance=qdrant.Distance.COSINE,
            on_disk=layout.on_disk or None,
            # A point has the vectors of the windows of its document, of which the nearest counts.
            multivector_config=qdrant.MultiVectorConfig(comparator=qdrant.MultiVectorComparator.MAX_SIM),
        ),
        "shard_number": layout.shards,
        "replication_factor": layout.copies,
        "write_consistency_factor": layout.write_consistency,
        "quantization_config": _INT8 if layout.quantization == "int8" else None,
    }


def missing_indexes(found: Collection[str]) -> Iterator[Difference]:
    """A difference for each payload field whose index was dropped.

    :param found: the payload fields that have an index.
    """
    for field in PAYLOAD_INDEXES:
        if field not in found:
            yield Difference(f"the payload field {field!r} has no index", "restart the service: it makes it again")


def differences(name: str, config: qdrant.CollectionConfig, layout: CollectionLayout) -> Iterator[Difference]:
    """How the collection ``name`` differs from the layout, and how to change it."""
    params = config.params

    def patch(change: dict[str, Any]) -> str:
        return f"PATCH /collections/{name} with {json.dumps(change)}"

    if (shards := params.shard_number or 1) != layout.shards:
        yield Difference(f"{shards} shards, TRIVIUM_QDRANT_SHARDS is {layout.shards}", SHARDS_ARE_FIXED)
    copies = params.replication_factor or 1
    if layout.copies is not None and copies != layout.copies:
        change = patch({"params": {"replication_factor": layout.copies}})
        yield Difference(
            f"{copies} copies of each shard, TRIVIUM_REPLICATION_FACTOR is {layout.copies}",
            f"{change}, then add or drop replicas of its shards with POST /collections/{name}/cluster",
        )
    if (consistency := params.write_consistency_factor or 1) != layout.write_consistency:
        yield Difference(
            f"{consistency} copies acknowledge a write, TRIVIUM_QDRANT_WRITE_CONSISTENCY is {layout.write_consistency}",
            patch({"params": {"write_consistency_factor": layout.write_consistency}}),
        )
    on_disk = isinstance(params.vectors, qdrant.VectorParams) and bool(params.vectors.on_disk)
    if on_disk != layout.on_disk:
        where = "on disk" if on_disk else "in memory"
        yield Difference(
            f"vectors {where}, TRIVIUM_QDRANT_ON_DISK is {str(layout.on_disk).lower()}",
            patch({"vectors": {"": {"on_disk": layout.on_disk}}}),
        )
    quantization = "none" if config.quantization_config is None else _described(config.quantization_config)
    if quantization != layout.quantization:
        int8 = _INT8.model_dump(mode="json", exclude_none=True)
        yield Difference(
            f"quantization {quantization}, TRIVIUM_QDRANT_QUANTIZATION is {layout.quantization}",
            patch({"quantization_config": int8 if layout.quantization == "int8" else "Disabled"}),
        )


def _described(config: qdrant.QuantizationConfig) -> str:
    return config.scalar.type.value if isinstance(config, qdrant.ScalarQuantization) else "of another kind"
