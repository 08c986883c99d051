"""The law of the write log: a write is read back in order until every replica has applied it."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from orchestrator.indexing.log.write import Write
from orchestrator.indexing.log.write_log import WriteLog
from tests.conftest import vector_record
from tests.orchestrator.indexing.replicas import MAX_LOG_BYTES, key

REPLICAS = ("one", "two")


class LogMachine(RuleBasedStateMachine):
    """What was appended and not applied is read back in order, whatever else happens in between."""

    @initialize()
    def open_first(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="trivium-log-"))
        self.count = 0
        self.sequences: list[int] = []
        self.applied = dict.fromkeys(REPLICAS, 0)
        self.truncated = 0
        self.reopen()

    @rule()
    def reopen(self) -> None:
        self.log = WriteLog(self.folder, MAX_LOG_BYTES)

    @rule(documents=st.integers(1, 3))
    def append(self, documents: int) -> None:
        write = Write.of([vector_record(f"{self.count} {n}") for n in range(documents)], [key(f"-{self.count}")])
        with self.log.exclusive():
            sequence = self.log.append(write, REPLICAS)
        assert sequence > max(self.sequences, default=0)
        self.sequences.append(sequence)
        self.count += 1

    @rule(replica=st.sampled_from(REPLICAS), count=st.integers(1, 3))
    def apply(self, replica: str, count: int) -> None:
        for sequence in self.log.unapplied(replica)[:count]:
            self.log.mark_applied(replica, sequence)
            self.applied[replica] += 1

    @rule(lines=st.binary(max_size=20))
    def crash_while_appending(self, lines: bytes) -> None:
        later = max(self.sequences, default=0) + 1
        (self.folder / f"{later:020d}.write.draft").write_bytes(lines)
        self.reopen()

    @precondition(lambda self: min(self.applied.values()) > self.truncated)
    @rule()
    def truncate(self) -> None:
        with self.log.exclusive():
            self.log.truncate(REPLICAS)
        self.truncated = min(self.applied.values())

    @invariant()
    def unapplied_writes_are_read_back_in_order(self) -> None:
        for replica, applied in self.applied.items():
            unapplied = self.log.unapplied(replica)
            assert unapplied == self.sequences[applied:]
            numbers = [self.log.read(sequence).deletes[0][-1] for sequence in unapplied]
            assert numbers == [f"-{number}" for number in range(applied, self.count)]

    @invariant()
    def the_summary_agrees(self) -> None:
        applied = [self.sequences[count - 1] for count in self.applied.values() if count]
        assert self.log.generation() == max(applied, default=0)
        assert self.log.applied_total() == sum(applied)
        assert self.log.newest() == max(self.sequences, default=0)
        assert self.log.is_empty() == (self.truncated == self.count)

    def teardown(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


TestLogMachine = LogMachine.TestCase
TestLogMachine.settings = settings(max_examples=25, stateful_step_count=25)
