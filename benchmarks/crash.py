"""``make bench-crash``: kill -9 the service or a server at random moments of a bulk write, and count lost documents.

Three replicas: a real OpenSearch, a real Neo4j over Bolt, and a real Qdrant if there is one on the path, else the
embedded index, which ends with the service. After each kill everything is started again and the service applies the
write log. Then the replicas are compared with each other and with the acknowledged writes.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import anyio
from rich.console import Console

from adapters.graph.bolt import Bolt
from adapters.keyword import opensearch_client
from adapters.servers.server import GRAPH_SCHEMES, KEYWORD_SCHEMES, VECTOR_SCHEMES, Address, Limits
from adapters.vector import qdrant_connection
from benchmarks.servers import started_servers
from benchmarks.service import start_service
from orchestrator.bootstrap import open_service
from orchestrator.settings import load
from tests.servers.start import Server

_console = Console()
_DOCUMENTS = 400
_BATCH, _DELETES = 60, 3
"""Documents of a write, and deletes of one document each after it."""
_INDEX_NAME = "crash"
_LIMITS = Limits(read_timeout_s=30, write_timeout_s=60)
_LANGUAGE_TERM = "language\0t"

State = dict[str, str | None]
"""The number of the batch that wrote each document last; ``None`` if it was deleted after that."""


class KilledService:
    """The service under test, in a separate process; it gets another port at each start."""

    def __init__(self, settings: Mapping[str, object], log: Path) -> None:
        self._settings, self._log = settings, log
        self._server = start_service(settings, log)

    @property
    def port(self) -> int:
        """The current port."""
        return self._server.port

    def start(self) -> None:
        """Start it again, and wait until it is ready."""
        self._server = start_service(self._settings, self._log)

    def kill(self) -> None:
        """Kill it (SIGKILL), as a power failure would."""
        self._server.kill()


class Writer(threading.Thread):
    """Posts batches, and deletes single documents in between, until the connection fails.

    ``acknowledged``: all acknowledged writes; ``unacknowledged``: the write that was sent last, if its response has not
    been received.
    """

    def __init__(self, port: int, batch_number: int, rng: random.Random) -> None:
        super().__init__(daemon=True)
        self._url, self._rng = f"http://127.0.0.1:{port}/v1/documents", rng
        self.batch_number = batch_number
        self.acknowledged: State = {}
        self.unacknowledged: State = {}
        self.outcomes: Counter[str] = Counter()
        self.stopping = threading.Event()

    def run(self) -> None:
        """Post until ``stopping`` is set or a request fails."""
        while not self.stopping.is_set():
            self.batch_number += 1
            batch: State = {
                str(number): str(self.batch_number) for number in self._rng.sample(range(_DOCUMENTS), _BATCH)
            }
            lines = [
                json.dumps({"id": id_, "text": f"Document {id_} Name{id_}", "language": value})
                for id_, value in batch.items()
            ]
            if (report := self._send(batch, self._url, "POST", "\n".join(lines).encode())) is None:
                return
            self.outcomes.update(line["status"] for line in report["lines"])
            for id_ in self._rng.sample(range(_DOCUMENTS), _DELETES):
                if (report := self._send({str(id_): None}, f"{self._url}/{id_}", "DELETE")) is None:
                    return
                self.outcomes["deleted" if report["deleted"] else "not there"] += 1

    def _send(self, write: State, url: str, method: str, body: bytes | None = None) -> dict[str, Any] | None:
        """The response to a write; ``None`` if there is none."""
        self.unacknowledged = write
        request = urllib.request.Request(url, body, method=method)  # noqa: S310  # the service under test
        try:
            with urllib.request.urlopen(request, timeout=120) as response:  # noqa: S310
                report: dict[str, Any] = json.load(response)
        except (OSError, ValueError):
            self.outcomes["no response"] += 1
            return None
        self.acknowledged |= write
        self.unacknowledged = {}
        return report


def main() -> None:
    """Kill, restart and compare, several times."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as work, started_servers(Path(work)) as servers:
        settings = {"data_dir": f"{work}/data", "index_name": _INDEX_NAME}
        settings |= {source: server.url for source, server in servers.items()}
        service = KilledService(settings | {"replication_retry_ms": 200}, Path(work, "service.log"))
        try:
            _run(arguments.kills, rng, service, servers, settings)
        finally:
            service.kill()


def _run(
    kills: int, rng: random.Random, service: KilledService, servers: Mapping[str, Server], settings: Mapping[str, str]
) -> None:
    processes: dict[str, KilledService | Server] = {"service": service, **servers}
    expected: State = {}
    batch_number, wrong = 0, 0
    killed: Counter[str] = Counter()
    outcomes: Counter[str] = Counter()
    for number in range(1, kills + 1):
        name = rng.choice(sorted(processes))
        writer = Writer(service.port, batch_number, rng)
        writer.start()
        time.sleep(rng.uniform(0.2, 3.0))
        processes[name].kill()
        killed[name] += 1
        time.sleep(rng.uniform(0.0, 1.0))  # the other processes continue to write
        writer.stopping.set()
        writer.join(150)
        service.kill()
        if name != "service":
            processes[name].start()
        service.start()
        _wait_until_applied(Path(settings["data_dir"], "write-log"))
        states = anyio.run(_stored, settings)
        batch_number = writer.batch_number
        outcomes += writer.outcomes
        expected |= writer.acknowledged
        if all(states["vector"].get(id_) == value for id_, value in writer.unacknowledged.items()):
            expected |= writer.unacknowledged  # it was in the write log, so it has to be in every replica
        differences = {replica: _differences(expected, state) for replica, state in states.items()}
        wrong += sum(differences.values())
        documents = sum(each is not None for each in expected.values())
        _console.print(
            f"{number:3} killed {name:10} {documents} documents, wrong by replica: {differences}",
            soft_wrap=True,
            highlight=False,
        )
    _console.print(
        f"{kills} kills {dict(killed)}; lines by outcome: {dict(outcomes)}; documents lost or wrong: {wrong}",
        soft_wrap=True,
        highlight=False,
    )
    raise SystemExit(1 if wrong else 0)


def _differences(expected: State, stored: State) -> int:
    return sum(expected.get(id_) != stored.get(id_) for id_ in expected.keys() | stored.keys())


def _wait_until_applied(write_log: Path) -> None:
    """Wait until the running service has applied the write log to every replica."""
    deadline = time.monotonic() + 120
    while any(write_log.glob("*.write")):
        if time.monotonic() > deadline:
            log = write_log.parent.with_name("service.log").read_text()[-3_000:]
            raise SystemExit(f"the write log is not empty after two minutes; the log of the service: {log}")
        time.sleep(0.05)


async def _stored(settings: Mapping[str, str]) -> dict[str, State]:
    """The documents of each replica."""
    states: dict[str, State] = {}
    opensearch = opensearch_client.connect(Address.parse(settings["keyword"], KEYWORD_SCHEMES), _LIMITS)
    body = {"query": {"match_all": {}}, "size": 10_000}
    found = (await opensearch.search(index=_INDEX_NAME, body=body))["hits"]["hits"]
    await opensearch.close()
    states["keyword"] = _languages(hit["_source"]["record"]["document"] for hit in found)
    bolt = Bolt(Address.parse(settings["graph"], GRAPH_SCHEMES), _LIMITS)
    rows = await bolt.read(
        "MATCH (d:Document {index: $index}) WHERE d.present RETURN d.id AS id, d.filter_terms AS terms",
        {"index": _INDEX_NAME},
    )
    await bolt.close()
    states["graph"] = {row["id"]: _language(row["terms"]) for row in rows}
    if "vector" in settings:
        qdrant = qdrant_connection.connect(Address.parse(settings["vector"], VECTOR_SCHEMES), None, _LIMITS)
        points, _ = await qdrant.scroll(_INDEX_NAME, limit=10_000, with_payload=["record"])
        await qdrant.close()
        states["vector"] = _languages(json.loads((point.payload or {})["record"])["document"] for point in points)
    else:
        async with open_service(load(**settings, source_timeout_ms=30_000)) as service:
            ids = [str(id_) for id_ in range(_DOCUMENTS)]
            documents = await service.documents.get_many(ids, service.anonymous)
        states["vector"] = {id_: str(document.language) for id_, document in documents.items()}
    return states


def _languages(documents: Iterable[Mapping[str, Any]]) -> State:
    return {document["id"]: document["language"] for document in documents}


def _language(terms: list[str]) -> str:
    return next(term.removeprefix(_LANGUAGE_TERM) for term in terms if term.startswith(_LANGUAGE_TERM))


if __name__ == "__main__":
    main()
