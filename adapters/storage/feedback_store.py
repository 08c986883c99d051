"""Which documents were returned for a query, and what became of them, in one SQLite file for all processes.

It has a maximum size: then the oldest responses of the scope with the most bytes are deleted, with their feedback. What
is deleted is overwritten in the file (``secure_delete``); the log of SQLite beside it is emptied by
:meth:`FeedbackStore.delete`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

import msgspec

from adapters.model.document import Scope
from adapters.model.errors import Unavailable
from adapters.model.feedback import Feedback, Hit, ShownResponse
from adapters.model.protection import Viewer
from adapters.storage.files import file_stamp

_VERSION = 2
_BUSY_S = 2.0
"""How long a process waits while another one writes."""
_DELETED_AT_ONCE = 16
_MAX_LOG_BYTES = 4_194_304
"""Size to which the log of SQLite is cut when it was written back."""
_OPPOSITE = {"useful": "not_useful", "not_useful": "useful"}
_TABLES = """
CREATE TABLE scopes (
    scope INTEGER PRIMARY KEY, tenant TEXT NOT NULL, environment TEXT NOT NULL, bytes INTEGER NOT NULL DEFAULT 0,
    deleted_at REAL NOT NULL DEFAULT -1, UNIQUE (tenant, environment)
);
CREATE TABLE responses (
    response INTEGER PRIMARY KEY, query_id TEXT NOT NULL UNIQUE, scope INTEGER NOT NULL REFERENCES scopes,
    viewer TEXT NOT NULL, at REAL NOT NULL, query_hash TEXT NOT NULL, query TEXT, first INTEGER NOT NULL,
    hits BLOB NOT NULL, profiles TEXT NOT NULL, bytes INTEGER NOT NULL
);
CREATE INDEX responses_by_age ON responses (scope, at);
CREATE TABLE feedback (
    response INTEGER NOT NULL REFERENCES responses ON DELETE CASCADE, hit INTEGER NOT NULL, kind TEXT NOT NULL,
    position INTEGER NOT NULL, at REAL NOT NULL, PRIMARY KEY (response, hit, kind)
) WITHOUT ROWID;
CREATE TRIGGER added AFTER INSERT ON responses BEGIN
    UPDATE scopes SET bytes = bytes + new.bytes WHERE scope = new.scope;
END;
CREATE TRIGGER removed AFTER DELETE ON responses BEGIN
    UPDATE scopes SET bytes = bytes - old.bytes WHERE scope = old.scope;
END;
"""
_VIEW = """
CREATE VIEW named AS
    SELECT response, query_id, viewer, at, query_hash, query, first, hits, profiles, tenant, environment
    FROM responses JOIN scopes USING (scope);
"""
_FROM_VERSION_1 = """
DROP VIEW named;
ALTER TABLE responses ADD COLUMN viewer TEXT NOT NULL DEFAULT '{}';
UPDATE responses SET viewer = json_object('clearance', clearance);
ALTER TABLE responses DROP COLUMN clearance;
ALTER TABLE responses ADD COLUMN profiles TEXT NOT NULL DEFAULT '[]';
"""
"""Version 1 had a clearance where there is a viewer now, and no profiles."""


class FeedbackStore:
    """Every method blocks, and may be called in any thread.

    :param max_bytes: of the file.
    """

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._lock = Lock()
        self._connection: sqlite3.Connection | None = None
        self._inode = 0

    def add(self, responses: Sequence[ShownResponse]) -> None:
        """Add responses, but those from before a deletion of their scope; the oldest ones make room.

        :raises Unavailable: if the file cannot be written.
        """
        with self._writing() as connection:
            for scope in {each.scope for each in responses}:
                named = (scope.tenant, scope.environment)
                connection.execute("INSERT OR IGNORE INTO scopes (tenant, environment) VALUES (?, ?)", named)
            for each in responses:
                hits, profiles, query = msgspec.json.encode(each.hits), _json(each.profiles), each.query
                size = len(hits) + len(profiles) + len((query or "").encode())
                connection.execute(
                    "INSERT OR IGNORE INTO responses "
                    "(query_id, scope, viewer, at, query_hash, query, first, hits, profiles, bytes) "
                    "SELECT ?, scope, ?, ?, ?, ?, ?, ?, ?, ? FROM scopes "
                    "WHERE tenant = ? AND environment = ? AND deleted_at < ?",
                    (
                        *(each.query_id, _json(each.viewer), each.at, each.query_hash),
                        *(query, each.first, hits, profiles, size),
                        *(each.scope.tenant, each.scope.environment, each.at),
                    ),
                )
            self._make_room(connection)

    def find(self, scope: Scope, query_id: str) -> ShownResponse | None:
        """A response; ``None`` if the scope has none with this id.

        :raises Unavailable: if the file cannot be read.
        """
        with self._lock, self._reported("read"):
            row = (
                self._opened()
                .execute(
                    "SELECT * FROM named WHERE query_id = ? AND tenant = ? AND environment = ?",
                    (query_id, scope.tenant, scope.environment),
                )
                .fetchone()
            )
        return None if row is None else _response(row)

    def record(self, feedback: Feedback) -> bool:
        """Record what became of a hit. The same again replaces it, and a vote the opposite one. Returns whether the
        response is still there.

        :raises Unavailable: if the file cannot be written.
        """
        with self._writing() as connection:
            row = connection.execute(
                "SELECT response FROM responses WHERE query_id = ?", (feedback.query_id,)
            ).fetchone()
            if row is None:
                return False
            replaced = (*row, feedback.hit, feedback.kind, _OPPOSITE.get(feedback.kind))
            connection.execute("DELETE FROM feedback WHERE response = ? AND hit = ? AND kind IN (?, ?)", replaced)
            values = (*row, feedback.hit, feedback.kind, feedback.position, feedback.at)
            connection.execute("INSERT INTO feedback VALUES (?, ?, ?, ?, ?)", values)
            self._make_room(connection)
        return True

    def delete(self, scope: Scope, now: float) -> tuple[int, int]:
        """Delete everything of a scope; what was returned before ``now`` is not added any more. Returns the number of
        responses, and of feedback.

        :raises Unavailable: if the file cannot be written; or if all is deleted, but a reader keeps the log of SQLite,
            which still has it.
        """
        named = (scope.tenant, scope.environment)
        with self._writing() as connection:
            connection.execute(
                "INSERT INTO scopes (tenant, environment, deleted_at) VALUES (?, ?, ?) "
                "ON CONFLICT DO UPDATE SET deleted_at = excluded.deleted_at",
                (*named, now),
            )
            (number,) = connection.execute(
                "SELECT scope FROM scopes WHERE tenant = ? AND environment = ?", named
            ).fetchone()
            (feedback,) = connection.execute(
                "SELECT count(*) FROM feedback JOIN responses USING (response) WHERE scope = ?", (number,)
            ).fetchone()
            responses = connection.execute("DELETE FROM responses WHERE scope = ?", (number,)).rowcount
        with self._lock, self._reported("stored"):
            (is_busy, *_) = self._opened().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if is_busy:
            raise Unavailable("it is deleted, but the log of a reader still has it: delete again when that has ended")
        return responses, feedback

    def read(self, scope: Scope) -> Iterator[tuple[ShownResponse, list[Feedback]]]:
        """The responses of a scope, the oldest first, each with its feedback; as they are at this moment.

        :raises Unavailable: if the file cannot be read.
        """
        address = f"{self._path.absolute().as_uri()}?mode=ro"
        with self._reported("read"), closing(sqlite3.connect(address, uri=True)) as connection:
            connection.execute("BEGIN")
            for row in connection.execute(
                "SELECT * FROM named WHERE tenant = ? AND environment = ? ORDER BY at, query_id",
                (scope.tenant, scope.environment),
            ):
                response = _response(row)
                found = connection.execute(
                    "SELECT hit, kind, position, at FROM feedback WHERE response = ? ORDER BY hit, kind", row[:1]
                )
                yield response, [Feedback(response.query_id, *each) for each in found]

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._connection:
                self._connection.close()
            self._connection = None

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction of this process at a time."""
        with self._lock, self._reported("stored"):
            connection = self._opened()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                if connection.in_transaction:  # some errors, such as a full disk, have ended it
                    connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    @contextmanager
    def _reported(self, done: str) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError, UnicodeError) as error:
            raise Unavailable(f"feedback cannot be {done}", f"{self._path}: {error}") from error

    def _opened(self) -> sqlite3.Connection:
        """The connection; a new one if the file was replaced or deleted."""
        if self._connection is not None and _inode(self._path) != self._inode:
            self._connection.close()
            self._connection = None
        if self._connection is None:
            self._connection = self._connect()
            self._inode = _inode(self._path)
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self._path, _BUSY_S, isolation_level=None, check_same_thread=False)
        try:
            for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "foreign_keys = ON", "secure_delete = ON"):
                connection.execute(f"PRAGMA {pragma}")
            connection.execute(f"PRAGMA journal_size_limit = {_MAX_LOG_BYTES}")
            connection.execute("BEGIN IMMEDIATE")
            _prepare_tables(connection)
            connection.execute("COMMIT")
        except BaseException:
            connection.close()
            raise
        return connection

    def _make_room(self, connection: sqlite3.Connection) -> None:
        while _used_bytes(connection) > self._max_bytes:
            (largest,) = connection.execute("SELECT scope FROM scopes ORDER BY bytes DESC, scope LIMIT 1").fetchone()
            deleted = connection.execute(
                "DELETE FROM responses WHERE response IN "
                "(SELECT response FROM responses WHERE scope = ? ORDER BY at LIMIT ?)",
                (largest, _DELETED_AT_ONCE),
            ).rowcount
            if not deleted:
                return


def _response(row: tuple[Any, ...]) -> ShownResponse:
    """The response of a row of ``named``."""
    _, query_id, encoded, at, query_hash, query, first, hits, profiles, tenant, environment = row
    return ShownResponse(
        query_id,
        Scope(tenant, environment),
        msgspec.json.decode(encoded, type=Viewer),
        at,
        query_hash,
        query,
        first,
        msgspec.json.decode(hits, type=tuple[Hit, ...]),
        msgspec.json.decode(profiles, type=tuple[str | None, ...]),
    )


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _prepare_tables(connection: sqlite3.Connection) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    script = {0: _TABLES, 1: _FROM_VERSION_1}.get(version)
    if script is not None:
        for statement in _statements(script + _VIEW):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {_VERSION}")
    elif version != _VERSION:
        raise sqlite3.DatabaseError(f"it is of version {version}, this release reads {_VERSION}")


def _used_bytes(connection: sqlite3.Connection) -> int:
    (pages,), (free,), (size,) = (
        connection.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)


def _inode(path: Path) -> int:
    stamp = file_stamp(path)
    return stamp[1] if stamp else 0


def _statements(script: str) -> Iterator[str]:
    """The statements of a script: ``executescript`` would end the transaction."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
