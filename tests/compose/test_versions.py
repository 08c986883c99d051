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


def test_images_and_actions_are_pinned_to_what_they_contain() -> None:
    """By digest and by commit. For one image no digest is known here; the chart values name tags."""
    files = [*(ROOT / "compose").glob("*.yaml"), *(ROOT / "k8s").rglob("*.yaml")]
    named = {image for path in files for image in re.findall(r"image: *[\"']?([^\s\"'{]+)", path.read_text())}
    without = {image.partition(":")[0] for image in named if not re.search(r"@sha256:[0-9a-f]{64}$", image)}
    ours = {"trivium", "trivium-evaluation"}
    assert without == {*ours, "memgraph/memgraph"}
    dockerfile = (ROOT / "compose" / "Dockerfile").read_text()
    images = re.findall(r"^FROM (?!base\b)(\S+)", dockerfile, re.MULTILINE)
    assert images
    assert all(re.fullmatch(r"\S+@sha256:[0-9a-f]{64}", image) for image in images)
    for workflow in (ROOT / ".github" / "workflows").glob("*.yaml"):
        for action in re.findall(r"uses: (.*)", workflow.read_text()):
            assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", action), workflow


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
