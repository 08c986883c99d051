"""`trivium index`, killed while it runs."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

_TIME_LIMIT = 120  # seconds


def kill_after(documents: int, command: Sequence[str], env: dict[str, str]) -> int:
    """
    Run a command that indexes, and kill it as soon as its index has more than a number of documents.

    :returns: the documents of the last commit; all of them if the command ended before.
    """
    manifest = Path(env["TRIVIUM_DATA_DIR"]) / "index" / "manifest.json"
    with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + _TIME_LIMIT
        while process.poll() is None and _documents(manifest) <= documents:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        process.kill()
    return _documents(manifest)


def _documents(manifest: Path) -> int:
    """The documents of the commit; 0 without one. (The first manifest of a new index has none.)"""
    return json.loads(manifest.read_text().partition("\n")[2])["documents"] if manifest.exists() else 0
