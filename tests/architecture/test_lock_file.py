"""The lock files have a release, with its hashes, of everything that a service needs."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
_SERVICE = ("qdrant", "memgraph", "opensearch", "redis", "rerank", "tracing", "mcp", "documents")
BUILD = "compose/build-requirements.lock"
EXTRAS = {"requirements.lock": (*_SERVICE, "evaluate", "learn"), "compose/requirements.lock": _SERVICE}


def locked(name: str) -> dict[str, str]:
    """The release of each package."""
    lines = (ROOT / name).read_text().replace("\\\n", " ").splitlines()
    pinned = {}
    for line in lines:
        if not line.strip() or line.startswith("#"):
            continue
        requirement, *hashes = line.split(" --hash=")
        name, _, release = requirement.partition(";")[0].strip().partition("==")
        assert release, line
        assert hashes and all(each.strip().startswith("sha256:") for each in hashes), line
        pinned[canonicalize_name(name.partition("[")[0])] = release.strip()
    return pinned


@pytest.mark.parametrize("name", EXTRAS)
def test_every_requirement_of_a_service_has_a_locked_release_that_it_allows(name: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = EXTRAS[name]
    texts = [*project["dependencies"], *(each for extra in extras for each in project["optional-dependencies"][extra])]
    check(texts, locked(name))


def test_every_requirement_of_the_build_has_a_locked_release_that_it_allows_and_that_was_tested() -> None:
    pinned, tested = locked(BUILD), locked("requirements.lock")
    check(tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"], pinned)
    assert {name: pinned[name] for name in pinned.keys() & tested.keys()}.items() <= tested.items()


def check(texts: list[str], pinned: dict[str, str]) -> None:
    for requirement in map(Requirement, texts):
        package = canonicalize_name(requirement.name)
        assert package in pinned, f"{package} is not locked: make lock"
        release = pinned[package]
        assert requirement.specifier.contains(release), f"{package} {release} is not {requirement.specifier}"


def test_the_image_has_the_releases_that_were_tested() -> None:
    tested = locked("requirements.lock")
    image = locked("compose/requirements.lock")
    assert image.items() <= tested.items()
    assert len(image) < len(tested)
