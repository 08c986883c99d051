"""``make bench-crash``: kill -9 the service or a store at random moments of a bulk write, and count what was lost.

Three stores: vectors in the embedded engine (so they die with the service), keywords in a real OpenSearch, the graph
in a real Neo4j over Bolt. After every kill everything is started again, what the journal holds is replayed, and the
three are compared with each other and with what was acknowledged.
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
from collections.abc import Mapping
from pathlib import Path

import anyio
from rich.console import Console

from adapters.graph.bolt import Bolt
from adapters.keyword import opensearch
from adapters.server import GRAPH, KEYWORD, Address, Limits
from benchmarks.service import service
from orchestrator.settings import read
from orchestrator.wiring import opened
from tests.servers.start import Java

_console = Console()
_IDS = 400
_BATCH = 60
_INDEX = "crash"
_LIMITS = Limits(read_s=30, write_s=60)

State = dict[str, str]


class Victim:
    """The service under test, in a process of its own; on another port whenever it starts."""

    def __init__(self, settings: Mapping[str, object], log: Path) -> None:
        self._settings, self._log = settings, log
        self._running = service(settings, log)

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._running.port

    def start(self) -> None:
        """Start it again, and wait until it is ready."""
        self._running = service(self._settings, self._log)

    def kill(self) -> None:
        """End it as a power cut would."""
        self._running.kill()


class Writer(threading.Thread):
    """Posts batches until the connection breaks; knows what was acknowledged and what was left hanging."""

    def __init__(self, port: int, revision: int, dice: random.Random) -> None:
        super().__init__(daemon=True)
        self._url, self._dice = f"http://127.0.0.1:{port}/v1/documents", dice
        self.revision = revision
        self.acknowledged: State = {}
        self.hanging: State = {}
        self.outcomes: Counter[str] = Counter()
        self.stopping = threading.Event()

    def run(self) -> None:
        """Post until told to stop, or until nobody answers."""
        while not self.stopping.is_set():
            self.revision += 1
            batch = {str(n): str(self.revision) for n in self._dice.sample(range(_IDS), _BATCH)}
            lines = [
                json.dumps({"id": id_, "text": f"Document {id_} Name{id_}", "language": revision})
                for id_, revision in batch.items()
            ]
            self.hanging = batch
            request = urllib.request.Request(self._url, "\n".join(lines).encode())  # noqa: S310  # our own service
            try:
                with urllib.request.urlopen(request, timeout=120) as answer:  # noqa: S310
                    told = json.load(answer)
            except (OSError, ValueError):
                self.outcomes["no answer"] += 1
                return
            self.outcomes.update(line["status"] for line in told["lines"])
            self.acknowledged |= {line["id"]: batch[line["id"]] for line in told["lines"]}
            self.hanging = {}


def main() -> None:
    """Kill, restart, compare; as often as asked."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--kills", type=int, default=30)
    arguments.add_argument("--seed", type=int, default=0)
    chosen = arguments.parse_args()
    dice = random.Random(chosen.seed)
    with tempfile.TemporaryDirectory() as work:
        folders = {name: Path(work, name) for name in ("opensearch", "bolt")}
        for folder in folders.values():
            folder.mkdir()
        with Java("opensearch", folders["opensearch"]) as keyword, Java("bolt", folders["bolt"]) as graph:
            stores = {"data_dir": f"{work}/data", "keyword": keyword.url, "graph": graph.url, "index_name": _INDEX}
            victim = Victim(stores | {"write_timeout_ms": 5_000, "replay_ms": 200}, Path(work, "service.log"))
            victims: dict[str, Victim | Java] = {"service": victim, "opensearch": keyword, "bolt": graph}
            try:
                _run(chosen.kills, dice, victims, victim, stores)
            finally:
                victim.kill()


def _run(
    kills: int, dice: random.Random, victims: dict[str, Victim | Java], victim: Victim, stores: dict[str, str]
) -> None:
    expected: State = {}
    revision, wrong = 0, 0
    killed: Counter[str] = Counter()
    outcomes: Counter[str] = Counter()
    for number in range(1, kills + 1):
        name = dice.choice(sorted(victims))
        writer = Writer(victim.port, revision, dice)
        writer.start()
        time.sleep(dice.uniform(0.2, 3.0))
        victims[name].kill()
        killed[name] += 1
        time.sleep(dice.uniform(0.0, 1.0))  # the others go on writing for a moment
        writer.stopping.set()
        writer.join(150)
        victim.kill()
        if name != "service":
            victims[name].start()
        victim.start()
        _wait_for_replay(Path(stores["data_dir"], "journal"))
        held = anyio.run(_held, stores)
        revision = writer.revision
        outcomes += writer.outcomes
        expected |= writer.acknowledged
        if all(held["embedded"].get(id_) == mark for id_, mark in writer.hanging.items()):
            expected |= writer.hanging  # never acknowledged, and there: it was in the journal
        bad = {store: _differences(expected, state) for store, state in held.items()}
        wrong += sum(bad.values())
        _console.print(
            f"{number:3} killed {name:10} documents held {len(expected)}, wrong by store {bad}", highlight=False
        )
    _console.print(f"{kills} kills {dict(killed)}; lines by outcome {dict(outcomes)}; documents lost or wrong: {wrong}")
    raise SystemExit(1 if wrong else 0)


def _differences(expected: State, held: State) -> int:
    return sum(expected.get(id_) != held.get(id_) for id_ in expected.keys() | held.keys())


def _wait_for_replay(journal: Path) -> None:
    """The service is running again: it is it that replays."""
    until = time.monotonic() + 120
    while any(journal.glob("*.write")):
        if time.monotonic() > until:
            log = journal.parent.with_name("service.log").read_text()[-3_000:]
            raise SystemExit(f"the journal is not empty after two minutes; the service said: {log}")
        time.sleep(0.05)


async def _held(stores: dict[str, str]) -> dict[str, State]:
    """What each store holds, by id."""
    async with opened(read(**stores, source_timeout_ms=30_000)) as opened_:
        ids = [str(n) for n in range(_IDS)]
        records = await opened_.documents.fetch(opened_.caller.scope, ids)
    client = opensearch.connect(Address.parse(stores["keyword"], KEYWORD), _LIMITS)
    found = (await client.search(index=_INDEX, body={"query": {"match_all": {}}, "size": 10_000}))["hits"]["hits"]
    await client.close()
    bolt = Bolt(Address.parse(stores["graph"], GRAPH), _LIMITS)
    rows = await bolt.read(
        "MATCH (d:Document {index: $index}) WHERE d.present RETURN d.id AS id, d.labels AS labels", {"index": _INDEX}
    )
    await bolt.close()
    return {
        "embedded": {id_: str(record.document.language) for id_, record in records.items()},
        "keyword": {hit["_source"]["id"]: hit["_source"]["record"]["document"]["language"] for hit in found},
        "graph": {row["id"]: _language(row["labels"]) for row in rows},
    }


def _language(labels: list[str]) -> str:
    return next(label.removeprefix("language\0t") for label in labels if label.startswith("language\0t"))


if __name__ == "__main__":
    main()
