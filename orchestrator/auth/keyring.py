"""API keys. Only a hash of each key is stored.

A key is ``trivium_<id>_<secret>``. The id is public and finds the record; the secret has 256 random bits, so it
cannot be found from its SHA-256, and a slow hash would only cost time (RFC 6750 defines how a key is sent).
"""

from __future__ import annotations

import hmac
import logging
import re
import stat
from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from math import inf
from pathlib import Path
from time import time
from typing import Annotated

import msgspec
from msgspec import Meta

from adapters import Scope, Sensitivity
from adapters.model.protection import check_name
from orchestrator.auth.principal import Principal, Role, distinct
from orchestrator.schema.decode import decoded, describe_decode_error
from orchestrator.schema.search import Name

_log = logging.getLogger(__name__)

_BEARER = re.compile(r"bearer +trivium_([0-9a-f]{16})_([A-Za-z0-9_-]{43})", re.IGNORECASE)
_UNUSED_HASH = sha256(b"unused").digest()
"""Compared with the secret of an unknown id, so that the comparison takes as long as for a known one."""


class KeyFileError(ValueError):
    """The file of keys cannot be read, or has an invalid line; the message names the line."""


class UnknownKey(Exception):
    """The request has no API key, or an unknown or expired one."""


class KeyRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """One line of the file.

    :param sha256: the hash of the secret, in hexadecimal.
    :param operator: may also do what an administrator may.
    :param user: on whose behalf the key acts, and ``teams``: of the user; without both it sees every visibility.
    :param expires_at: from when on the key is refused; ``None``: never.
    """

    name: Name
    id: Annotated[str, Meta(pattern=r"^[0-9a-f]{16}$")]
    sha256: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$")]
    tenant: Name
    environment: Name = "default"
    clearance: Sensitivity = "normal"
    user: str | None = None
    teams: tuple[str, ...] = ()
    admin: bool = False
    operator: bool = False
    created_at: datetime | None = None
    expires_at: Annotated[datetime, Meta(tz=True)] | None = None

    def check_names(self) -> None:
        """Check the user and the teams.

        :raises ValueError: if a request could not name one of them.
        """
        for field, name in (("user", self.user), *(("teams", team) for team in self.teams)):
            if name is not None:
                check_name(field, name)

    @property
    def is_expired(self) -> bool:
        """Whether the key is refused because of its age."""
        return self.expires_at is not None and self.expires_at.timestamp() <= time()

    @property
    def role(self) -> Role:
        """What the key may do."""
        if self.operator:
            return "operator"
        return "admin" if self.admin else "reader"

    @property
    def principal(self) -> Principal:
        """The principal that the key authenticates."""
        scope = Scope(self.tenant, self.environment)
        return Principal(self.name, scope, self.clearance, self.role, self.user, distinct(self.teams))


class Keyring:
    """The keys in ``path``. The file is read again when it changes, so keys are added and removed without a restart.

    :raises KeyFileError: if the file cannot be read at the start. After a later error, which is logged, the keys that
        were read before stay valid.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._keys: Mapping[str, tuple[bytes, Principal, float]] = {}
        self._stamp: object = None
        """Stamp of the file that was read last."""
        self._last_error = ""
        self._read()

    def authenticate(self, authorization: str) -> Principal:
        """The principal of an ``Authorization`` header.

        :raises UnknownKey: if the header has no key, or an unknown or expired one. The comparison takes constant time.
        """
        match = _BEARER.fullmatch(authorization)
        if match is None:
            raise UnknownKey
        secret_hash, principal, expires_at = self._keys.get(match[1].lower(), (_UNUSED_HASH, None, inf))
        equal = hmac.compare_digest(sha256(match[2].encode()).digest(), secret_hash)
        if principal is None or not equal:
            raise UnknownKey
        if time() >= expires_at:
            raise UnknownKey(f"the key {principal.name!r} has expired")
        return principal

    def refresh(self) -> None:
        """Read the file if it has changed; after an error, at every call."""
        try:
            if _stamp(self.path) != self._stamp:
                self._read()
                log = _log.info if self._keys else _log.warning
                log("the file of API keys has changed: %d keys are valid now", len(self._keys))
            self._last_error = ""
        except KeyFileError as error:
            if str(error) != self._last_error:
                _log.error("the API keys that were read before stay valid: %s", error)
            self._last_error = str(error)

    def _read(self) -> None:
        stamp = _stamp(self.path)  # before reading, so that a change in between is found at the next call
        self._keys = {
            record.id: (
                bytes.fromhex(record.sha256),
                record.principal,
                record.expires_at.timestamp() if record.expires_at else inf,
            )
            for record in read_key_file(self.path)
        }
        self._stamp = stamp


def _stamp(path: Path) -> object:
    """A value that changes whenever the file changes; the name of the error if the file is not accessible."""
    try:
        status = path.stat()
    except OSError as error:
        return type(error).__name__
    return status.st_mtime_ns, status.st_ino, status.st_size


def read_key_file(path: Path) -> list[KeyRecord]:
    """The records of a file of keys; blank lines are skipped.

    :raises KeyFileError: if it cannot be read, every user may write it, a line is invalid, or a name or an id occurs
        twice.
    """
    try:
        content, mode = path.read_bytes(), path.stat().st_mode
    except OSError as error:
        raise KeyFileError(f"{path} cannot be read: {error.strerror}") from error
    if mode & stat.S_IWOTH:
        raise KeyFileError(f"{path} can be written by every user of this machine: chmod o-w it")
    records: dict[str, KeyRecord] = {}
    names = set()
    for number, line in enumerate(content.splitlines(), 1):
        if not line.strip():
            continue
        try:
            record = msgspec.json.decode(line, type=KeyRecord)
            record.check_names()
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            reason = describe_decode_error(error, KeyRecord, decoded(line))
            raise KeyFileError(f"{path}, line {number}: {reason}") from error
        except ValueError as error:
            raise KeyFileError(f"{path}, line {number}: {error}") from error
        if record.id in records or record.name in names:
            raise KeyFileError(f"{path}, line {number}: the name {record.name!r}, or its id, occurs twice")
        records[record.id] = record
        names.add(record.name)
    return list(records.values())
