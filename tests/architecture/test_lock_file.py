"""``requirements.lock`` has a release, with its hashes, of everything that a service needs."""

from __future__ import annotations

import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
_EXTRAS = ("qdrant", "memgraph", "opensearch", "redis", "rerank", "evaluate")


def locked() -> dict[str, str]:
    """The release of each package."""
    lines = (ROOT / "requirements.lock").read_text().replace("\\\n", " ").splitlines()
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


def test_every_requirement_of_a_service_has_a_locked_release_that_it_allows() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    texts = [*project["dependencies"], *(each for extra in _EXTRAS for each in project["optional-dependencies"][extra])]
    pinned = locked()
    for requirement in map(Requirement, texts):
        name = canonicalize_name(requirement.name)
        assert name in pinned, f"{name} is not locked: make lock"
        assert requirement.specifier.contains(pinned[name]), f"{name} {pinned[name]} is not {requirement.specifier}"
