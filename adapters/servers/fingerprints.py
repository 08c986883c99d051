"""Names for servers that do not allow free text in the names of documents and indexes."""

from __future__ import annotations

import re
from collections.abc import Callable
from hashlib import blake2b

_BUILD_NAME = re.compile(r"[\w-]{1,255}-[0-9a-f]{8}")


def fingerprint(*texts: str) -> str:
    """128 bits of BLAKE2b (RFC 7693) over the texts, written as a UUID. Equal texts have equal fingerprints."""
    return prefixed_fingerprint(*texts[:-1])(texts[-1])


def prefixed_fingerprint(*prefix: str) -> Callable[[str], str]:
    """A function of a text: the fingerprint of ``prefix`` and that text. The prefix is hashed once."""
    hashed = blake2b(b"".join(map(_framed, prefix)), digest_size=16)

    def of(text: str) -> str:
        hasher = hashed.copy()
        hasher.update(_framed(text))
        digits = hasher.hexdigest()
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"

    return of


def build_name(name: str, build_id: str) -> str:
    """The name on a server of an index as ``build_id`` built it; ``name`` itself is an alias of one of these."""
    return f"{name}-{fingerprint(build_id)[:8]}"


def shown_build(name: str) -> str:
    """A name from a server, if it may be one of :func:`build_name`; otherwise it may be any text, and is not shown."""
    return name if _BUILD_NAME.fullmatch(name) else "another"


def _framed(text: str) -> bytes:
    """A text with its length, so that no two lists of texts have the same bytes."""
    encoded = text.encode()
    return len(encoded).to_bytes(8, "big") + encoded
