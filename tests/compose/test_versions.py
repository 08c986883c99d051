"""The servers that Compose starts, and the clients in the image."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
Version = tuple[int, ...]


def servers() -> dict[str, Version]:
    """The version of each image in ``compose.yaml``, by its name without the publisher."""
    text = (ROOT / "compose" / "compose.yaml").read_text()
    found = re.findall(r"image: (?:[\w-]+/)?([\w-]+):v?(\d+(?:\.\d+)*)", text)
    return {name: version(release) for name, release in found}


def client(name: str) -> Version:
    """The locked version of a client."""
    lock = (ROOT / "compose" / "requirements.lock").read_text()
    found = re.search(rf"^{name}==([\d.]+)", lock, re.MULTILINE)
    assert found, name
    return version(found[1])


def version(text: str) -> Version:
    return tuple(map(int, text.rstrip(".").split(".")))


def test_qdrant_is_one_of_the_last_three_minor_versions_of_its_client() -> None:
    """Qdrant tests its clients with these only, and moves storage by one minor version at a time."""
    major, minor, *_ = client("qdrant-client")
    assert servers()["qdrant"][:2] in {(major, minor), (major, minor - 1), (major, minor - 2)}


@pytest.mark.parametrize(
    ("server", "client_name", "clients", "first", "end"),
    [
        # The driver supports Bolt 5.2, Memgraph's newest; 3.1.1 mended what a walk needs.
        ("memgraph", "neo4j", (6,), (3, 1, 1), (4,)),
        ("opensearch", "opensearch-py", (3,), (2,), (4,)),
        ("redis", "redis", (8,), (7, 2), (9,)),
    ],
)
def test_a_server_has_a_version_that_its_client_supports(
    server: str, client_name: str, clients: Version, first: Version, end: Version
) -> None:
    assert client(client_name)[0] in clients, "look the versions up that this client supports"
    assert first <= servers()[server] < end
