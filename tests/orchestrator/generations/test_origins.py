"""What a generation is built from: every document is read by one shard, also after an interruption at any place."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from adapters import Document, Scope
from orchestrator.bootstrap import open_service
from orchestrator.indexing.generations.origins import Files, Origin, Place, Shard, StoredDocuments
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from tests.orchestrator.bootstrap.helpers import index

pytestmark = pytest.mark.anyio

DOCUMENTS = [Document(id=f"d{n:04}", text=f"Document number {n}.", vector=(1.0, 2.0)) for n in range(700)]


async def read(origin: Origin, shards: int, is_interrupted: bool) -> list[str]:
    """The ids that all shards read, in the order of each; interrupted after each reading, if so."""
    ids = []
    for number in range(shards):
        place: Place | None = Place()
        last = -1
        while place:
            async for reading in origin.read(Shard(number, shards), place):
                ordinals = [item.ordinal for item in reading.items]
                assert ordinals == sorted(ordinals)
                assert not ordinals or ordinals[0] > last
                last = ordinals[-1] if ordinals else last
                ids += [item.document.id for item in reading.items]
                place = reading.next
                if is_interrupted:
                    break
    return ids


def origins(service: Service, folder: Path) -> dict[str, Origin]:
    lines = (f'{{"id": "{each.id}", "text": "x", "vector": [1, 2]}}\n' for each in DOCUMENTS)
    (folder / "documents.ndjson").write_text("".join(lines))
    return {
        "rows": StoredDocuments(service.stores),
        "pages": StoredDocuments(replace(service.stores, embedded=None)),
        "files": Files([str(folder)], Scope(), service.stores),
    }


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("is_interrupted", [False, True])
@pytest.mark.parametrize("kind", ["rows", "pages", "files"])
async def test_each_document_is_read_once(
    chosen: Settings, tmp_path: Path, kind: str, shards: int, is_interrupted: bool
) -> None:
    async with open_service(chosen.changed(embedder="none://2")) as service:
        await index(service, DOCUMENTS)
        origin = origins(service, tmp_path)[kind]
        assert await origin.total() == 700
        ids = await read(origin, shards, is_interrupted)
        assert sorted(ids) == [each.id for each in DOCUMENTS]
