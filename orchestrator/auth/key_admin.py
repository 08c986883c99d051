"""Adding and removing API keys."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import msgspec

from adapters import Scope
from adapters.storage import files
from orchestrator.auth.keyring import KeyFileError, KeyRecord, read_key_file
from orchestrator.auth.principal import distinct
from orchestrator.schema.decode import describe_decode_error

_MAX_DAYS = 36_500


def add_key(
    path: Path,
    name: str,
    scope: Scope,
    clearance: str,
    *,
    user: str | None = None,
    teams: Sequence[str] = (),
    admin: bool = False,
    operator: bool = False,
    expires_in_days: float | None = None,
) -> str:
    """Create a key and write its record. Returns the key, which is not stored.

    :param expires_in_days: after which it is refused; ``None``: never.
    :raises KeyFileError: if the file cannot be read or written, has the name already, or a value is not allowed.
    """
    id_, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
    now = datetime.now(UTC)
    if expires_in_days is not None and not 0 < expires_in_days <= _MAX_DAYS:
        raise KeyFileError(f"a key that expires in {expires_in_days:g} days, allowed are above 0 up to {_MAX_DAYS}")
    values: dict[str, object] = {
        "name": name,
        "id": id_,
        "sha256": sha256(secret.encode()).hexdigest(),
        "tenant": scope.tenant,
        "environment": scope.environment,
        "clearance": clearance,
        "user": user,
        "teams": distinct(teams),
        "admin": admin,
        "operator": operator,
        "created_at": now,
        "expires_at": None if expires_in_days is None else now + timedelta(days=expires_in_days),
    }
    try:
        record = msgspec.json.decode(msgspec.json.encode(values), type=KeyRecord)  # the checks of reading
        record.check_names()
    except msgspec.ValidationError as error:
        reason = describe_decode_error(error, KeyRecord, values)
        raise KeyFileError(f"a value of the key is not allowed: {reason}") from error
    except UnicodeEncodeError as error:
        raise KeyFileError("a value of the key is not allowed: it is not Unicode") from error
    except ValueError as error:
        raise KeyFileError(f"a value of the key is not allowed: {error}") from error
    with _locked(path):
        records = read_key_file(path) if path.exists() else []
        if any(each.name == name for each in records):
            raise KeyFileError(f"{path} already has a key named {name!r}: remove it first, or choose another name")
        _write(path, [*records, record])
    return f"trivium_{id_}_{secret}"


def remove_key(path: Path, name: str) -> None:
    """Revoke a key.

    :raises KeyFileError: if the file cannot be read or written, or has no such name.
    """
    with _locked(path):
        records = read_key_file(path)
        others = [each for each in records if each.name != name]
        if len(others) == len(records):
            raise KeyFileError(f"{path} has no key named {name!r}")
        _write(path, others)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Allow one writer at a time.

    :raises KeyFileError: if the folder cannot be written.
    """
    try:
        with files.exclusive(path.with_name(f"{path.name}.lock")):
            yield
    except OSError as error:
        raise KeyFileError(f"{path} cannot be written: {error.strerror}") from error


def _write(path: Path, records: list[KeyRecord]) -> None:
    """Write the records. The owner stays the same if root writes, so that the service can read the file."""
    status = path.stat() if path.exists() and os.geteuid() == 0 else None
    owner = (status.st_uid, status.st_gid) if status else None
    files.replace(path, b"".join(msgspec.json.encode(each) + b"\n" for each in records), mode=0o600, owner=owner)
