"""Which documents were returned for a query, and what became of them, in one SQLite file for all processes.

It has a maximum size: then the oldest responses of the scope with the most bytes are deleted, with their feedback. What
is deleted is overwritten (``secure_delete``).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Lock

import msgspec

from adapters.model.document import Scope
from adapters.model.errors import Unavailable
from adapters.model.feedback import Feedback, Hit, ShownResponse

_BUSY_S = 5.0
"""How long a process waits while another one writes."""
_DELETED_AT_ONCE = 256
_ROW_BYTES = 128
"""What a row needs beside its texts, about."""
_TABLES = """
CREATE TABLE responses (
    query_id TEXT PRIMARY KEY, tenant TEXT NOT NULL, environment TEXT NOT NULL, at REAL NOT NULL,
    query_hash TEXT NOT NULL, query TEXT, first INTEGER NOT NULL, hits BLOB NOT NULL, bytes INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX responses_by_age ON responses (tenant, environment, at);
CREATE TABLE feedback (
    query_id TEXT NOT NULL REFERENCES responses ON DELETE CASCADE, hit INTEGER NOT NULL, kind TEXT NOT NULL,
    position INTEGER NOT NULL, at REAL NOT NULL, PRIMARY KEY (query_id, hit, kind)
) WITHOUT ROWID;
CREATE TABLE scopes (
    tenant TEXT NOT NULL, environment TEXT NOT NULL, bytes INTEGER NOT NULL, PRIMARY KEY (tenant, environment)
) WITHOUT ROWID;
CREATE TRIGGER added AFTER INSERT ON responses BEGIN
    INSERT INTO scopes VALUES (new.tenant, new.environment, new.bytes)
    ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER removed AFTER DELETE ON responses BEGIN
    UPDATE scopes SET bytes = bytes - old.bytes WHERE tenant = old.tenant AND environment = old.environment;
END;
CREATE TRIGGER commented AFTER INSERT ON feedback BEGIN
    UPDATE responses SET bytes = bytes + 128 WHERE query_id = new.query_id;
END;
CREATE TRIGGER grown AFTER UPDATE OF bytes ON responses BEGIN
    UPDATE scopes SET bytes = bytes + new.bytes - old.bytes
    WHERE tenant = new.tenant AND environment = new.environment;
END;
PRAGMA user_version = 1;
"""
"""Version 1. Each feedback counts like a row, :data:`_ROW_BYTES`."""


class FeedbackStore:
    """Every method blocks, and may be called in any thread.

    :param max_bytes: of the rows, about.
    """

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._lock = Lock()
        self._connection: sqlite3.Connection | None = None

    def add(self, responses: Sequence[ShownResponse]) -> None:
        """Add responses, and delete the oldest ones if there is no room.

        :raises Unavailable: if the file cannot be written.
        """
        rows = []
        for each in responses:
            hits = msgspec.json.encode(each.hits)
            size = _ROW_BYTES + len(hits) + len((each.query or "").encode())
            rows.append(
                (
                    each.query_id,
                    each.scope.tenant,
                    each.scope.environment,
                    each.at,
                    each.query_hash,
                    each.query,
                    each.first,
                    hits,
                    size,
                )
            )
        with self._writing() as connection:
            connection.executemany("INSERT OR IGNORE INTO responses VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
            self._make_room(connection)

    def hits(self, scope: Scope, query_id: str) -> tuple[int, tuple[Hit, ...]] | None:
        """The position of the first hit of a response, and the hits; ``None`` if the scope has no such response.

        :raises Unavailable: if the file cannot be read.
        """
        with self._lock, self._reported():
            row = (
                self._opened()
                .execute(
                    "SELECT first, hits FROM responses WHERE query_id = ? AND tenant = ? AND environment = ?",
                    (query_id, scope.tenant, scope.environment),
                )
                .fetchone()
            )
        return None if row is None else (row[0], msgspec.json.decode(row[1], type=tuple[Hit, ...]))

    def record(self, feedback: Feedback) -> bool:
        """Record what became of a hit; the same again replaces it. Returns whether the response is still there.

        :raises Unavailable: if the file cannot be written.
        """
        values = (feedback.hit, feedback.kind, feedback.position, feedback.at, feedback.query_id)
        with self._writing() as connection:
            added = connection.execute(
                "INSERT INTO feedback SELECT query_id, ?, ?, ?, ? FROM responses WHERE query_id = ? "
                "ON CONFLICT DO UPDATE SET position = excluded.position, at = excluded.at",
                values,
            ).rowcount
            self._make_room(connection)
        return bool(added)

    def delete(self, scope: Scope) -> tuple[int, int]:
        """Delete everything of a scope. Returns the number of responses, and of feedback.

        :raises Unavailable: if the file cannot be written.
        """
        named = (scope.tenant, scope.environment)
        with self._writing() as connection:
            (feedback,) = connection.execute(
                "SELECT count(*) FROM feedback JOIN responses USING (query_id) WHERE tenant = ? AND environment = ?",
                named,
            ).fetchone()
            responses = connection.execute("DELETE FROM responses WHERE tenant = ? AND environment = ?", named).rowcount
            connection.execute("DELETE FROM scopes WHERE tenant = ? AND environment = ?", named)
        with self._lock, self._reported():
            self._opened().execute("PRAGMA wal_checkpoint(TRUNCATE)")  # the log has the old pages
        return responses, feedback

    def read(self, scope: Scope) -> Iterator[tuple[ShownResponse, list[Feedback]]]:
        """The responses of a scope, the oldest first, each with its feedback; as they are at this moment.

        :raises Unavailable: if the file cannot be read.
        """
        named = (scope.tenant, scope.environment)
        with self._reported(), closing(self._connect()) as connection:
            connection.execute("BEGIN")
            for row in connection.execute(
                "SELECT query_id, at, query_hash, query, first, hits FROM responses "
                "WHERE tenant = ? AND environment = ? ORDER BY at, query_id",
                named,
            ):
                query_id, at, query_hash, query, first, hits = row
                decoded = msgspec.json.decode(hits, type=tuple[Hit, ...])
                found = connection.execute(
                    "SELECT hit, kind, position, at FROM feedback WHERE query_id = ? ORDER BY hit, kind", (query_id,)
                )
                response = ShownResponse(query_id, scope, at, query_hash, query, first, decoded)
                yield response, [Feedback(query_id, *each) for each in found]

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._connection:
                self._connection.close()
            self._connection = None

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction of this process at a time."""
        with self._lock, self._reported():
            connection = self._opened()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    @contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise Unavailable("feedback cannot be stored", f"{self._path}: {error}") from error

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self._path, _BUSY_S, isolation_level=None, check_same_thread=False)
        try:
            for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "foreign_keys = ON", "secure_delete = ON"):
                connection.execute(f"PRAGMA {pragma}")
            connection.execute("BEGIN IMMEDIATE")
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if not version:
                for statement in _statements(_TABLES):
                    connection.execute(statement)
            connection.execute("COMMIT")
        except BaseException:
            connection.close()
            raise
        return connection

    def _make_room(self, connection: sqlite3.Connection) -> None:
        while True:
            (size,) = connection.execute("SELECT coalesce(sum(bytes), 0) FROM scopes").fetchone()
            if size <= self._max_bytes:
                return
            tenant, environment = connection.execute(
                "SELECT tenant, environment FROM scopes ORDER BY bytes DESC, tenant, environment LIMIT 1"
            ).fetchone()
            excess, oldest = size - self._max_bytes, []
            for query_id, bytes_ in connection.execute(
                "SELECT query_id, bytes FROM responses WHERE tenant = ? AND environment = ? ORDER BY at LIMIT ?",
                (tenant, environment, _DELETED_AT_ONCE),
            ):
                oldest.append((query_id,))
                excess -= bytes_
                if excess <= 0:
                    break
            connection.executemany("DELETE FROM responses WHERE query_id = ?", oldest)


def _statements(script: str) -> Iterator[str]:
    """The statements of a script: ``executescript`` would end the transaction."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
