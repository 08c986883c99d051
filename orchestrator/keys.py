"""API keys: who asks, known by a secret of which only a hash is kept.

A key is ``trivium_<id>_<secret>``. The id is public, and finds the line of the file; the secret has 256 random bits,
so its SHA-256 cannot be searched, and a slow hash would only slow us down (RFC 6750 has how a key is sent).
"""

from __future__ import annotations

import hmac
import logging
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from adapters import Scope, Sensitivity, files
from orchestrator.caller import Caller
from orchestrator.contract import Name

_log = logging.getLogger(__name__)

_BEARER = re.compile(r"bearer +trivium_([0-9a-f]{16})_([A-Za-z0-9_-]{43})", re.IGNORECASE)
_NOBODY = sha256(b"nobody").digest()
"""What the secret of an unknown id is compared with, so that it takes as long as that of a known one."""


class KeysError(ValueError):
    """The file of keys cannot be read, or says what is not allowed; the message names the line."""


class KeyUnknown(Exception):
    """The request brings no key, or none that is known."""


class Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """One line of the file: a key, as far as it is kept, and what it may. ``sha256`` is of the secret, in hex."""

    name: Name
    id: Annotated[str, Meta(pattern=r"^[0-9a-f]{16}$")]
    sha256: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$")]
    tenant: Name
    environment: Name = "default"
    clearance: Sensitivity = "normal"
    admin: bool = False


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a key stands for: what it is called in the log, what it may see, and whether it may write."""

    name: str
    caller: Caller
    admin: bool


class Keys:
    """The keys in ``path``, followed as the file is written anew: a key is given out or taken back without a restart.

    :raises KeysError: if the file cannot be read at first. Later, what was read last goes on to hold, and the log
        says so: nobody is locked out, and nobody let in, by half a file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: Mapping[str, tuple[bytes, Identity]] = {}
        self._seen: object = None
        """The stamp of the file that was read last."""
        self._told = ""
        """What is wrong with the one that is there now."""
        self._take()

    def identify(self, authorization: str) -> Identity:
        """Who sends this ``Authorization`` header.

        :raises KeyUnknown: if it is no key, or none of ours. The comparison takes the same time however near it is.
        """
        found = _BEARER.fullmatch(authorization)
        if found is None:
            raise KeyUnknown
        digest, identity = self._known.get(found[1].lower(), (_NOBODY, None))
        same = hmac.compare_digest(sha256(found[2].encode()).digest(), digest)
        if identity is None or not same:
            raise KeyUnknown
        return identity

    def refresh(self) -> None:
        """Read the file if it is another one than was read last; again and again, if it cannot be read."""
        try:
            if _stamp(self.path) != self._seen:
                self._take()
            self._told = ""
        except KeysError as error:
            if str(error) != self._told:
                _log.error("the keys that were read before go on to hold: %s", error)
            self._told = str(error)

    def _take(self) -> None:
        seen = _stamp(self.path)  # before it is read: what is written meanwhile is read the next time
        self._known = {
            line.id: (
                bytes.fromhex(line.sha256),
                Identity(line.name, Caller(Scope(line.tenant, line.environment), line.clearance), line.admin),
            )
            for line in read(self.path)
        }
        self._seen = seen


def _stamp(path: Path) -> object:
    """What changes when the file does, whoever writes it and however; the error's name where it cannot be looked at."""
    try:
        found = path.stat()
    except OSError as error:
        return type(error).__name__
    return found.st_mtime_ns, found.st_ino, found.st_size


def read(path: Path) -> list[Line]:
    """The lines of a file of keys; empty lines count as none.

    :raises KeysError: if it cannot be read, a line is not as it should be, or a name or an id stands twice.
    """
    try:
        written = path.read_bytes()
    except OSError as error:
        raise KeysError(f"{path} cannot be read: {error.strerror}") from error
    lines: dict[str, Line] = {}
    names = set()
    for number, text in enumerate(written.splitlines(), 1):
        if not text.strip():
            continue
        try:
            line = msgspec.json.decode(text, type=Line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise KeysError(f"{path}, line {number}: {error}") from error
        if line.id in lines or line.name in names:
            raise KeysError(f"{path}, line {number}: the name {line.name!r}, or its id, stands there twice")
        lines[line.id] = line
        names.add(line.name)
    return list(lines.values())


def add(path: Path, name: str, scope: Scope, clearance: str, admin: bool) -> str:
    """Make a key and write its line; the key itself, which cannot be had again.

    :raises KeysError: if the file cannot be read or written, or has the name already; or if a name is none.
    """
    id_, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
    told: dict[str, object] = {
        "name": name,
        "id": id_,
        "sha256": sha256(secret.encode()).hexdigest(),
        "tenant": scope.tenant,
    }
    told |= {"environment": scope.environment, "clearance": clearance, "admin": admin}
    try:
        line = msgspec.json.decode(msgspec.json.encode(told), type=Line)  # as strictly as it will be read
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        raise KeysError(f"not what a key can be called: {error}") from error
    with _alone(path):
        held = read(path) if path.exists() else []
        if any(each.name == name for each in held):
            raise KeysError(f"{path} has a key of the name {name!r} already: remove it first, or choose another")
        _write(path, [*held, line])
    return f"trivium_{id_}_{secret}"


def remove(path: Path, name: str) -> None:
    """Take a key back.

    :raises KeysError: if the file cannot be read or written, or has no such name.
    """
    with _alone(path):
        held = read(path)
        kept = [each for each in held if each.name != name]
        if len(kept) == len(held):
            raise KeysError(f"{path} has no key of the name {name!r}")
        _write(path, kept)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """With nobody else who changes the file.

    :raises KeysError: if it cannot be changed.
    """
    try:
        with files.exclusive(path.with_name(f"{path.name}.lock")):
            yield
    except OSError as error:
        raise KeysError(f"{path} cannot be written: {error.strerror}") from error


def _write(path: Path, lines: list[Line]) -> None:
    """Its owner's it stays, if root writes: a service that cannot read it goes on with keys that were taken back."""
    found = path.stat() if path.exists() and os.geteuid() == 0 else None
    owner = (found.st_uid, found.st_gid) if found else None
    files.replace(path, b"".join(msgspec.json.encode(line) + b"\n" for line in lines), mode=0o600, owner=owner)
