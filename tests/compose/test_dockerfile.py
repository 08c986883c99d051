"""The Dockerfile is linted, and copies what the wheel is built from. CI has no Docker: no test builds it."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "compose" / "Dockerfile"


def test_the_linter_finds_nothing() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    # DL3008: the base image pins the release of Debian; versions of its packages disappear with each security update.
    done = subprocess.run([hadolint, "--ignore", "DL3008", DOCKERFILE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_what_it_copies_is_in_the_context_and_is_all_that_the_wheel_needs() -> None:
    text = DOCKERFILE.read_text()
    copied = {name for line in re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.MULTILINE) for name in line.split()}
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {*packages["packages"], "pyproject.toml", "hatch_build.py", "README.md", "LICENSE", "NOTICE"}
    locks = {"requirements.lock", "compose/requirements.lock", "compose/build-requirements.lock"}
    assert copied - {"${LOCK}"} == needed | {"compose/build-requirements.lock"}
    assert needed | locks == allowed


def test_it_runs_as_a_user_without_rights_and_has_a_health_check() -> None:
    text = DOCKERFILE.read_text()
    assert re.search(r"^USER 10001:10001$", text, re.MULTILINE)
    assert "HEALTHCHECK" in text
    assert text.count("\nFROM base") == 2


def test_the_image_is_refused_without_any_of_the_compiled_modules() -> None:
    (imported,) = re.findall(r"python -c 'import (.+)'", DOCKERFILE.read_text("utf-8"))
    compiled = [
        path.relative_to(ROOT).with_suffix("") for path in (*ROOT.glob("fusion/*.pyx"), *ROOT.glob("adapters/*/*.pyx"))
    ]
    assert sorted(imported.split(", ")) == sorted(".".join(path.parts) for path in compiled)
