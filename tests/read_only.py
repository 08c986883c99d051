"""Processes for which a folder is on a read-only disk."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

_MOUNT = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'


def on_a_read_only_disk(folder: Path) -> list[str]:
    """What executes a command that cannot write to a folder. Skips the test where nothing can be mounted."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("only root may mount a read-only folder")
    if shutil.which("unshare") is None:
        pytest.skip("there is no unshare on this machine: the Debian package util-linux contains it")
    command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", _MOUNT, str(folder)]
    tried = subprocess.run([*command, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"this machine does not let root mount anything: {tried.stderr.strip()}")
    return command
