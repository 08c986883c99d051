"""The collection of the vector source: what it is created with, and how an existing one differs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from qdrant_client import models as qdrant

from adapters.ports.server import Difference
from adapters.server import Partitioning, Quantization, index_again


@dataclass(frozen=True, slots=True)
class CollectionLayout(Partitioning):
    """How a collection is divided and stored.

    :param on_disk: whether the vectors are in mapped files, so that the page cache has those that are used, and not
        all in memory.
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
"""Without an effect where vectors are not quantized."""


def creation(dimension: int, layout: CollectionLayout) -> dict[str, Any]:
    """The arguments of ``create_collection`` besides the name."""
    return {
        "vectors_config": qdrant.VectorParams(
            size=dimension, distance=qdrant.Distance.COSINE, on_disk=layout.on_disk or None
        ),
        "shard_number": layout.shards,
        "replication_factor": layout.copies,
        "write_consistency_factor": layout.write_consistency,
        "quantization_config": _INT8 if layout.quantization == "int8" else None,
    }


_INT8 = qdrant.ScalarQuantization(scalar=qdrant.ScalarQuantizationConfig(type=qdrant.ScalarType.INT8, always_ram=True))


def differences(name: str, config: qdrant.CollectionConfig, layout: CollectionLayout) -> Iterator[Difference]:
    """How the collection ``name`` differs from the layout, and how to change it."""
    params = config.params
    if (shards := params.shard_number or 1) != layout.shards:
        yield Difference(f"{shards} shards, TRIVIUM_QDRANT_SHARDS is {layout.shards}", index_again("shards"))

    def differs(found: object, setting: str, chosen: object, change: str) -> Difference:
        return Difference(f"{found}, {setting} is {chosen}", f"PATCH /collections/{name} with {change}")

    copies = params.replication_factor or 1
    if layout.copies is not None and copies != layout.copies:
        yield differs(
            f"{copies} copies of each shard",
            "TRIVIUM_REPLICATION_FACTOR",
            layout.copies,
            f'{{"params": {{"replication_factor": {layout.copies}}}}}, then add or drop replicas of its shards with '
            f"POST /collections/{name}/cluster",
        )
    if (consistency := params.write_consistency_factor or 1) != layout.write_consistency:
        yield differs(
            f"{consistency} copies acknowledge a write",
            "TRIVIUM_QDRANT_WRITE_CONSISTENCY",
            layout.write_consistency,
            f'{{"params": {{"write_consistency_factor": {layout.write_consistency}}}}}',
        )
    vectors = params.vectors
    on_disk = isinstance(vectors, qdrant.VectorParams) and bool(vectors.on_disk)
    if on_disk != layout.on_disk:
        chosen = str(layout.on_disk).lower()
        where = "on disk" if on_disk else "in memory"
        yield differs(
            f"vectors {where}", "TRIVIUM_QDRANT_ON_DISK", chosen, f'{{"vectors": {{"": {{"on_disk": {chosen}}}}}}}'
        )
    quantization = "none" if config.quantization_config is None else _described(config.quantization_config)
    if quantization != layout.quantization:
        new_config = (
            '{"scalar": {"type": "int8", "always_ram": true}}' if layout.quantization == "int8" else '"Disabled"'
        )
        yield differs(
            f"quantization {quantization}",
            "TRIVIUM_QDRANT_QUANTIZATION",
            layout.quantization,
            f'{{"quantization_config": {new_config}}}',
        )


def _described(config: qdrant.QuantizationConfig) -> str:
    return config.scalar.type.value if isinstance(config, qdrant.ScalarQuantization) else "of another kind"
