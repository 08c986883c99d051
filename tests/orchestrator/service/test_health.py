"""``/readyz`` and ``trivium doctor``: every finding, well and not, with what to do about it."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from adapters import Document, Record, TimedOut, Unavailable, VersionMismatch
from adapters.ports.graph import LinkStrength
from adapters.ports.server import Difference
from orchestrator.measurement.graph_trust import TRUST_FILE, GraphTrust, ScopeTrust, TrustMeasurements
from orchestrator.schema.search import EncoderName
from orchestrator.service import health as health_module
from orchestrator.service.folder_health import examine_folder
from orchestrator.service.health import Finding
from orchestrator.service.replica_counts import ReplicaCounts
from tests.conftest import SCOPE, vector_record
from tests.orchestrator.indexing.counters import MemoryCounters
from tests.orchestrator.indexing.replicas import MemoryReplica, open_replication
from tests.orchestrator.service.health_helpers import FILL, NOW, Engine, Server, finding, service

BOTH: tuple[EncoderName, ...] = ("model", "static")

pytestmark = pytest.mark.anyio


async def test_a_healthy_embedded_service_in_order(tmp_path: Path) -> None:
    assert await service(tmp_path, engine=Engine()).examine() == [
        Finding("embedder", True, "minilm, 384 numbers"),
        Finding("index", True, "3 documents in 2 segments, generation 7"),
        Finding("vector", True, "3 documents"),
        Finding("graph", True, "3 documents"),
        Finding("static encoder", True, "not used: TRIVIUM_QUERY_ENCODER is `model`"),
        Finding(
            "graph trust",
            True,
            "tenant default: not measured, so the graph has its full weight; outdated since the newest writes: "
            "run `trivium tidy`",
        ),
        Finding("cache", True, "in each process"),
    ]


async def test_an_empty_index_is_well_and_says_how_to_fill_it(tmp_path: Path) -> None:
    found = await finding(service(tmp_path, engine=Engine(0)), "index")
    assert found == Finding("index", True, "empty: run `trivium index PATH`")


async def test_an_index_of_another_build(tmp_path: Path) -> None:
    assert await finding(service(tmp_path, engine=Engine()), "index build") is None
    found = await finding(service(tmp_path, engine=Engine(mismatch="built as 'old'")), "index build")
    advice = "follow the message: until then the index is read-only"
    assert found == Finding("index build", False, "built as 'old'", advice)


async def test_an_embedded_source_with_another_number_of_documents(tmp_path: Path) -> None:
    health = service(tmp_path, engine=Engine(3, vector=3, graph=2))
    assert await finding(health, "vector") == Finding("vector", True, "3 documents")
    advice = "index again into another TRIVIUM_DATA_DIR, and report this"
    assert await finding(health, "graph") == Finding("graph", False, "2 documents", advice)
    assert await health.by_source() == {"vector": "ok", "graph": "has 2 of 3 documents"}


async def test_a_healthy_server(tmp_path: Path) -> None:
    health = service(tmp_path, servers={"keyword": Server(clock=NOW + 0.94)})
    found = [each for each in await health.examine() if each.subject.startswith("keyword")]
    assert found == [
        Finding("keyword", True, "available, release 1.2"),
        Finding("keyword index", True, "exists, built as the settings require"),
        Finding("keyword clock", True, "+0.9 s from this machine"),
    ]


async def test_a_server_that_is_away_is_not_examined_further(tmp_path: Path) -> None:
    server = Server(Unavailable("connection refused"))
    health = service(tmp_path, servers={"keyword": server})
    advice = "start the server, or correct TRIVIUM_KEYWORD"
    assert await finding(health, "keyword") == Finding("keyword", False, "connection refused", advice)
    assert server.calls == ["release"]


@pytest.mark.parametrize(
    ("exists", "expected"),
    [
        (False, Finding("graph index", True, "no index: run `trivium index PATH`")),
        (VersionMismatch("built as 'old'"), Finding("graph index", False, "built as 'old'", "follow the message")),
        (TimedOut("no answer"), Finding("graph index", False, "no answer", "follow the message")),
    ],
)
async def test_the_index_of_a_server(tmp_path: Path, exists: object, expected: Finding) -> None:
    health = service(tmp_path, servers={"graph": Server(exists=exists)})
    assert await finding(health, "graph index") == expected
    assert await finding(health, "graph clock") == Finding("graph clock", True, "+0.0 s from this machine")


async def test_an_index_that_is_divided_in_another_way_is_reported_with_what_changes_it(tmp_path: Path) -> None:
    differences = (Difference("1 shards, TRIVIUM_OPENSEARCH_SHARDS is 3", "index again"), Difference("b", "change b"))
    health = service(tmp_path, servers={"keyword": Server(differences=differences)})
    assert [each for each in await health.examine() if each.subject == "keyword layout"] == [
        Finding("keyword layout", False, each.observation, each.advice) for each in differences
    ]
    absent = service(tmp_path, servers={"keyword": Server(exists=False, differences=differences)})
    assert await finding(absent, "keyword layout") is None


@pytest.mark.parametrize(
    ("clock", "expected"),
    [
        (None, None),
        (NOW + 0.99, Finding("graph clock", True, "+1.0 s from this machine")),
        (
            NOW - 1.0,
            Finding("graph clock", False, "-1.0 s from this machine", "let both machines use the same time server"),
        ),
        (
            NOW + 90,
            Finding("graph clock", False, "+90.0 s from this machine", "let both machines use the same time server"),
        ),
        (Unavailable("no time"), Finding("graph clock", False, "no time", "check the server of TRIVIUM_GRAPH")),
    ],
)
async def test_the_clock_of_a_server(tmp_path: Path, clock: object, expected: Finding | None) -> None:
    """Sequence numbers of writes are times."""
    assert await finding(service(tmp_path, servers={"graph": Server(clock=clock)}), "graph clock") == expected


async def answer() -> None:
    """A search that succeeds."""


async def test_a_source_that_is_neither_embedded_nor_a_server_is_searched(tmp_path: Path) -> None:
    async def fail() -> None:
        raise Unavailable("connection refused")

    async def raise_unexpectedly() -> None:
        raise KeyError("a defect")

    for search, expected in (
        (answer, Finding("titles", True, "can be searched")),
        (fail, Finding("titles", False, "connection refused", "follow the message")),
        (raise_unexpectedly, Finding("titles", False, "internal error", "follow the message")),
    ):
        health = service(tmp_path, searches={"titles": search})
        assert await finding(health, "titles") == expected
        assert await health.by_source() == {"titles": "ok" if expected.is_well else expected.observation}


async def test_a_source_that_never_answers_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def stall() -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(health_module, "_PROBE_TIMEOUT_S", 0.01)
    health = service(tmp_path, searches={"titles": stall})
    assert await health.by_source() == {"titles": "timed out"}


@pytest.fixture
def replicas() -> dict[str, MemoryReplica]:
    return {"one": MemoryReplica(), "two": MemoryReplica()}


async def test_replicas_with_every_write(tmp_path: Path, replicas: dict[str, MemoryReplica]) -> None:
    replication = open_replication(tmp_path, replicas)
    await replication.write([vector_record("a")], [])
    health = service(tmp_path, replication=replication)
    assert await finding(health, "write log") == Finding("write log", True, "empty: every replica has every write")
    assert await finding(health, "documents") == Finding("documents", True, "one: 1, two: 1")


async def test_a_replica_that_lags(tmp_path: Path, replicas: dict[str, MemoryReplica]) -> None:
    replication = open_replication(tmp_path, replicas)
    replicas["two"].error = Unavailable("away")
    for id_ in ("a", "b"):
        await replication.write([vector_record(id_)], [])
    health = service(tmp_path, replication=replication)
    advice = "start the unavailable server: the service then applies the writes"
    assert await finding(health, "write log") == Finding("write log", False, "two lacks 2 writes", advice)
    assert await finding(health, "documents") == Finding("documents", False, "one: 2, two: away", FILL)


async def test_a_replica_that_missed_history(tmp_path: Path, replicas: dict[str, MemoryReplica]) -> None:
    await open_replication(tmp_path, {"one": replicas["one"]}).write([vector_record("a")], [])
    replication = open_replication(tmp_path, replicas)
    await replication.write([vector_record("b")], [])
    health = service(tmp_path, replication=replication)
    assert await finding(health, "one") is None
    assert await finding(health, "two") == Finding("two", False, "lacks writes from before it was added", FILL)
    assert await finding(health, "documents") == Finding("documents", False, "one: 2, two: 1", FILL)


@pytest.mark.parametrize(
    ("is_outdated", "agreement", "is_well", "observation"),
    [
        (False, None, True, "none, and too few documents to need one"),
        (False, 0.876, True, "finds 88% of the model's ten nearest documents"),
        (True, None, False, "none"),
        (True, 0.9, False, "fitted to less than half of the documents"),
    ],
)
async def test_the_static_encoder(
    tmp_path: Path, is_outdated: bool, agreement: float | None, is_well: bool, observation: str
) -> None:
    engine = Engine()
    engine.is_static_encoder_outdated = is_outdated
    found = await finding(service(tmp_path, engine=engine, agreement=agreement, query_encoders=BOTH), "static encoder")
    advice = "" if is_well else "run `trivium tidy`: until then the model encodes queries"
    assert found == Finding("static encoder", is_well, observation, advice)


async def test_a_static_encoder_that_no_query_uses_is_not_missed(tmp_path: Path) -> None:
    found = await finding(service(tmp_path, engine=Engine()), "static encoder")
    assert found == Finding("static encoder", True, "not used: TRIVIUM_QUERY_ENCODER is `model`")


@pytest.mark.parametrize(("generation", "outdated"), [(3, ""), (4, "; outdated since the newest writes")])
async def test_the_trust_of_the_graph(tmp_path: Path, generation: int, outdated: str) -> None:
    """The square root of 8 is halfway between the fifth and the two fifths of 32."""
    measured = TrustMeasurements(3, [ScopeTrust(SCOPE.tenant, SCOPE.environment, "normal", 8**0.5, 50, 32.0)])
    GraphTrust(tmp_path / TRUST_FILE).save(measured)
    found = await finding(service(tmp_path, generation=generation), "graph trust")
    assert found
    assert found.is_well
    expected = f"tenant default: 2.8 times chance over 50 passages, so the graph has 50% of its weight{outdated}"
    assert found.observation.startswith(expected)
    assert bool(outdated) is ("trivium tidy" in found.observation)


async def test_the_links_that_a_walk_follows_and_why(tmp_path: Path) -> None:
    links = [LinkStrength("part_of", 0.0, 1.0, "leads to a parent, by its name")]
    assert await finding(service(tmp_path, links=links), "links part_of") == Finding(
        "links part_of", True, "followed 0% to the target, 100% to the source: leads to a parent, by its name"
    )


async def test_examples_of_the_names_that_are_found(tmp_path: Path) -> None:
    extracted = Record("t", "e", Document(id="a", text="x"), ("Nolan", "Paris"))
    listed = Record("t", "e", Document(id="b", text="x", entities=("Nolan",)), ("Nolan",))
    sample = [extracted, listed, Record("t", "e", Document(id="c", text="x"), ())]
    assert await finding(service(tmp_path, links=(), sample=sample), "names") == Finding(
        "names",
        True,
        "67% of 3 sampled documents mention a name (1 list them): 'Nolan' in 2, 'Paris' in 1",
    )
    found = await finding(service(tmp_path, links=(), sample=sample[2:]), "names")
    assert found == Finding("names", True, "0% of 1 sampled documents mention a name")
    assert await finding(service(tmp_path, sample=sample), "names") is None  # without a graph


async def test_the_shared_cache(tmp_path: Path) -> None:
    counters = MemoryCounters()
    assert await finding(service(tmp_path, counters=counters), "cache") == Finding("cache", True, "Redis is available")
    without_password = await finding(service(tmp_path, counters=counters, is_cache_open=True), "cache")
    assert without_password.observation == "Redis is on another host and has no password"
    assert not without_password.is_well
    counters.is_available = False
    advice = "start Redis, or correct TRIVIUM_CACHE: the service works without it"
    expected = Finding("cache", False, "Redis is unavailable", advice)
    assert await finding(service(tmp_path, counters=counters), "cache") == expected


async def test_every_finding_that_is_not_well_has_advice(tmp_path: Path, replicas: dict[str, MemoryReplica]) -> None:
    counters = MemoryCounters()
    counters.is_available = False
    replicas["two"].error = Unavailable("away")
    replication = open_replication(tmp_path, replicas)
    await replication.write([vector_record("a")], [])
    engine = Engine(3, "built as 'old'", vector=2)
    engine.is_static_encoder_outdated = True
    servers = {"keyword": Server(Unavailable("away")), "graph": Server(exists=TimedOut("slow"), clock=0.0)}
    health = service(tmp_path, engine=engine, servers=servers, replication=replication, counters=counters)
    findings = await health.examine()
    ill = [each.subject for each in findings if not each.is_well]
    assert ill == [
        "index build", "vector", "keyword", "graph index", "graph clock", "write log", "documents", "static encoder",
        "cache",
    ]  # fmt: skip
    assert all(bool(each.advice) is not each.is_well for each in findings)


async def test_sources_are_in_their_order_and_probed_at_the_same_time(tmp_path: Path) -> None:
    both = asyncio.Barrier(2)

    class Waiting(Server):
        async def release(self) -> str:
            await both.wait()
            return await super().release()

    servers = {"keyword": Waiting(Unavailable("away")), "graph": Waiting()}
    states = await service(tmp_path, engine=Engine(vector=3), servers=servers).by_source()
    assert list(states.items()) == [("vector", "ok"), ("graph", "ok"), ("keyword", "away")]


async def test_a_server_that_prepares_itself_is_warming(tmp_path: Path) -> None:
    servers = {"keyword": Server(), "graph": Server()}
    health = service(tmp_path, servers=servers)
    servers["graph"].is_warming = True
    assert await health.by_source() == {"graph": "warming", "keyword": "ok"}
    servers["graph"].is_warming = False
    assert await health.by_source() == {"graph": "ok", "keyword": "ok"}


async def test_a_server_that_lost_documents_is_not_well(tmp_path: Path) -> None:
    counts = ReplicaCounts(replication=None)  # type: ignore[arg-type]  # nothing is counted here
    counts.problems = {"graph": "has 0 of 3 documents", "keyword": "has 1 of 3 documents"}
    servers = {"graph": Server(), "keyword": Server(release=Unavailable("away"))}
    health = service(tmp_path, servers=servers, replica_counts=counts)
    assert await health.by_source() == {"graph": "has 0 of 3 documents", "keyword": "away"}


async def test_many_requests_probe_a_server_once_in_a_while(tmp_path: Path) -> None:
    server = Server()
    health = service(tmp_path, servers={"keyword": server})
    states = await asyncio.gather(*(health.by_source() for _ in range(20)))
    assert states == [{"keyword": "ok"}] * 20
    assert server.calls == ["release"]


def test_a_folder_that_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / "new" / "data"
    assert examine_folder("data folder", path, "TRIVIUM_DATA_DIR") == Finding("data folder", True, str(path))
    assert not path.exists()


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The permissions are those of the nearest folder that exists. Root may write everywhere, hence the patch."""
    (tmp_path / "there").mkdir(mode=0o500)
    examined: list[object] = []

    def access(path: Path, mode: int) -> bool:
        examined.append(path)
        return bool(path.stat().st_mode & 0o200)

    monkeypatch.setattr(os, "access", access)
    path = tmp_path / "there" / "new" / "data"
    expected = Finding("data folder", False, f"{path} cannot be written", "set TRIVIUM_DATA_DIR to a folder that can")
    assert examine_folder("data folder", path, "TRIVIUM_DATA_DIR") == expected
    assert examined == [tmp_path / "there"]


async def test_refused_documents_are_counted_by_store_tenant_and_environment(
    tmp_path: Path, replicas: dict[str, MemoryReplica]
) -> None:
    replication = open_replication(tmp_path, replicas)
    replicas["two"].refused_ids = {"a", "b"}
    await replication.write([vector_record("a"), vector_record("b"), vector_record("c")], [])
    health = service(tmp_path, replication=replication)
    assert await finding(health, "one") is None
    assert await finding(health, "two") == Finding(
        "two",
        False,
        "refuses 2 documents of tenant 'default', environment 'default'",
        "see `trivium quarantine`; correct the documents and write them again",
    )
