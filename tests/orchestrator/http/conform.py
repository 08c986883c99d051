"""Schemathesis with every check, against a running service."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

_HERE = Path(__file__).parent / "schemathesis"
_ROOT = Path(__file__).parents[3]
_TIMEOUT_S = 60
"""Of a request. A search may wait for a write during half of its own time limit, which is at most as long."""


def conforms(port: int, examples: int, key: str, seed: int = 0) -> tuple[int, str]:
    """The number of generated cases, and the report of schemathesis, which is empty if it found nothing.

    :param examples: maximum for each operation and kind of case.
    :param key: of an administrator, for the paths that need one.
    """
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(_HERE / "config.toml")),
        *("run", f"http://127.0.0.1:{port}/openapi.json", "--max-examples", str(examples), "--seed", str(seed)),
        *("--continue-on-failure", "--request-timeout", str(_TIMEOUT_S)),
        *("--header", f"Authorization: Bearer {key}"),
    ]
    env = os.environ | {
        "SCHEMATHESIS_HOOKS": "tests.orchestrator.http.schemathesis.hooks",
        "PYTHONPATH": str(_ROOT),
        "PYTHONIOENCODING": "utf-8",
    }
    with tempfile.TemporaryDirectory() as working_directory:  # schemathesis leaves a folder where it runs
        run = subprocess.run(
            command, env=env, cwd=working_directory, capture_output=True, encoding="utf-8", check=False
        )
    cases = re.search(r"(\d+) generated", run.stdout)
    report = run.stdout[-6_000:] + run.stderr[-2_000:] if run.returncode else ""
    return int(cases[1]) if cases else 0, report
