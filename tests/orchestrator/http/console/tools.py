"""What drives the browser, from npm."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
PACKAGES = ("playwright-core@1.65.1", "axe-core@4.14.1")


def install(npm: str, folder: Path) -> None:
    """Install the packages in a folder."""
    (folder / "package.json").write_text("{}")
    subprocess.run([npm, "install", "--no-audit", "--no-fund", *PACKAGES], cwd=folder, check=True, capture_output=True)


def run(command: Sequence[str], chromium: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run Node with variables, whose names begin with ``CONSOLE_``."""
    given = {"browser": chromium, "tools": str(folder), **variables}
    env = {**os.environ, **{f"CONSOLE_{name.upper()}": value for name, value in given.items()}}
    return subprocess.run(["node", *command], env=env, capture_output=True, text=True, timeout=600, check=False)
