"""Schemathesis, every check on, against a service that runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

_HERE = Path(__file__).parent / "schemathesis"
_ROOT = Path(__file__).parents[3]


def conforms(port: int, examples: int, key: str, seed: int = 0) -> tuple[int, str]:
    """How many cases it made up, and its report if it found anything.

    :param examples: of each operation, at most, of each kind.
    :param key: an administrator's, for the paths that need one.
    """
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(_HERE / "config.toml")),
        *("run", f"http://127.0.0.1:{port}/openapi.json", "--max-examples", str(examples), "--seed", str(seed)),
        *("--continue-on-failure", "--header", f"Authorization: Bearer {key}"),
    ]
    env = os.environ | {
        "SCHEMATHESIS_HOOKS": "tests.orchestrator.api.schemathesis.hooks",
        "PYTHONPATH": str(_ROOT),
        "PYTHONIOENCODING": "utf-8",
    }
    with tempfile.TemporaryDirectory() as elsewhere:  # it leaves a folder where it is run
        done = subprocess.run(command, env=env, cwd=elsewhere, capture_output=True, encoding="utf-8", check=False)
    cases = re.search(r"(\d+) generated", done.stdout)
    return int(cases[1]) if cases else 0, done.stdout[-6_000:] + done.stderr[-2_000:] if done.returncode else ""
