"""``python -m benchmarks.sizing``: processors, memory and costs for a number of documents and queries per second.

Unit costs are CPU times per query and bytes per document, measured by the commands of docs/performance.md or assumed,
as each line states. Memory grows in proportion to the documents, processors to the queries. The CPU time of a search is
taken to grow with the logarithm of the documents of a shard, and every shard is searched. Change a figure below, or
give the others as options.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass

from rich.table import Table

from benchmarks.claims import out

_GIB = 2**30
_UTILISATION = 0.6
"""Fraction of a processor in use at the given rate: the rest is for peaks and for the loss of a node."""


@dataclass(frozen=True, slots=True)
class Component:
    """One part of a deployment.

    :param cpu_ms: per hybrid query that is not answered by the cache.
    :param measured_documents: number of documents at which that was measured; 0: it does not depend on them.
    :param document_bytes: of memory per document and replica.
    :param shard_documents: the largest shard; 0: the part has none.
    """

    name: str
    cpu_ms: float
    measured_documents: int
    document_bytes: float
    shard_documents: int
    replicas: int
    origin: str


COMPONENTS = (
    Component("Trivium, model encodes", 4.2 + 1.5, 0, 0, 0, 1, "bench-servers, hybrid at 16; one run of the model"),
    Component("OpenSearch", 6.8, 1_890, 600, 5_000_000, 2, "bench-servers; memory assumed: its index, cached"),
    Component("Memgraph", 10.1, 1_890, 2_500, 0, 2, "bench-servers with Neo4j; memory assumed: 10 edges of 100 bytes"),
    Component("Qdrant", 6.5, 1_000_000, 1_000, 2_500_000, 2, "the vendor's figure; memory assumed: int8 and the graph"),
    Component("Redis", 0.1, 0, 0, 0, 2, "assumed"),
)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=10_000_000)
    parser.add_argument("--rate", type=float, default=1_000.0, help="queries per second")
    parser.add_argument("--cached", type=float, default=0.3, help="fraction of the queries that the cache answers")
    parser.add_argument("--vcpu-hour", type=float, default=0.04, help="price of a virtual processor for an hour")
    parser.add_argument("--gib-hour", type=float, default=0.005, help="price of a GiB of memory for an hour")
    arguments = parser.parse_args()
    title = f"{arguments.documents:,} documents, {arguments.rate:g} queries per second, {arguments.cached:.0%} cached"
    table = Table(title=title, title_justify="left")
    for column in ("part", "vCPU-ms a query", "vCPU", "shards", "replicas", "GiB in all", "from"):
        table.add_column(column, justify="left" if column in {"part", "from"} else "right")
    processors = memory_gib = query_ms = 0.0
    for part in COMPONENTS:
        shards = max(math.ceil(arguments.documents / part.shard_documents), 1) if part.shard_documents else 1
        cpu_ms = part.cpu_ms
        if part.measured_documents:
            cpu_ms *= shards * math.log2(arguments.documents / shards) / math.log2(part.measured_documents)
        vcpu = (1 - arguments.cached) * arguments.rate * cpu_ms / 1_000 / _UTILISATION
        gib = arguments.documents * part.document_bytes * part.replicas / _GIB + max(vcpu, 2) * 0.5
        row = (f"{cpu_ms:.1f}", f"{vcpu:.0f}", f"{shards}", f"{part.replicas}", f"{gib:.0f}")
        table.add_row(part.name, *row, part.origin)
        processors, memory_gib, query_ms = processors + vcpu, memory_gib + gib, query_ms + cpu_ms
    out.print(table)
    hourly = processors * arguments.vcpu_hour + memory_gib * arguments.gib_hour
    out.print(f"{query_ms:.0f} vCPU-ms for a query that is not cached; {processors:.0f} vCPU, {memory_gib:.0f} GiB")
    out.print(f"a million queries cost {hourly / (arguments.rate * 3_600) * 1e6:.2f} at that rate")


if __name__ == "__main__":
    main()
