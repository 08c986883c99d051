"""Builds and switches generations as the commands do."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from time import time

import anyio.to_thread

from orchestrator.bootstrap.other_generations import begin, open_live, open_origin, open_other
from orchestrator.indexing.generations.catalog import Catalog, Generation
from orchestrator.indexing.generations.origins import Shard, StoredDocuments
from orchestrator.service.backfill import Backfill
from orchestrator.service.generation_switch import Switch
from orchestrator.service.service import Service
from orchestrator.settings import Settings

BATCH = 40


class Build:
    """The build of a generation, in this process."""

    def __init__(self, work: Backfill, live: Service, target: Service) -> None:
        self.work, self.live, self.target = work, live, target
        live_version = work.catalog.read().live
        self.switching = Switch(work.catalog, live.stores, live_version, target.stores, work.generation.version)

    async def encode(self, *shards: int) -> None:
        for number in shards:
            await self.work.encode(Shard(number, self.work.generation.shards), lambda _: None)

    async def write(self) -> None:
        await self.work.assemble()
        await anyio.to_thread.run_sync(self.work.complete)


async def opened(
    stack: AsyncExitStack, settings: Settings, shards: int = 1, is_resumed: bool = False, batch: int = BATCH
) -> Build:
    """A generation with these settings is begun, or gone on with."""
    live = await stack.enter_async_context(open_origin(settings, is_resumed))
    wanted = Generation("", 0, {}, time(), shards=shards, batch=batch, state="building")
    generation = await anyio.to_thread.run_sync(begin, settings, wanted, is_resumed, shards > 1, live)
    target = await stack.enter_async_context(open_other(settings, generation))
    catalog = Catalog(settings.storage.data_dir)
    work = Backfill(catalog, generation, StoredDocuments(live.stores), live.stores, target.stores)
    return Build(work, live, target)


async def built(settings: Settings, shards: int = 1) -> Generation:
    """A complete generation."""
    async with AsyncExitStack() as stack:
        build = await opened(stack, settings, shards)
        await build.encode(*range(shards))
        await build.write()
        return build.work.generation


async def switched(settings: Settings, version: int) -> None:
    """Another generation is live."""
    catalog = Catalog(settings.storage.data_dir)
    async with open_live(settings) as live, open_other(settings, catalog.read().require(version)) as target:
        switching = Switch(catalog, live.stores, catalog.read().live, target.stores, version)
        with switching.alone():
            await switching.run()


async def contents(service: Service, with_vectors: bool = True) -> Mapping[tuple[str, str, str], object]:
    """Every document in the embedded index of a service, with its vectors, by key."""
    index = service.health.embedded.index
    index.refresh()
    return {
        each.record.key: (each.record, each.vectors.tobytes() if with_vectors else b"")
        for each in index.current().records_with_vectors()
    }
