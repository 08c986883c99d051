"""What a process that answers requests sets of the interpreter and the allocator."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

_COUNT_ARENAS = """
import ctypes, sys, threading
from contextlib import nullcontext
from orchestrator.http.interpreter import tuned_for_serving

barrier = threading.Barrier(8)

def allocate():
    kept = [bytes(10_000) for _ in range(10)]
    barrier.wait()

with tuned_for_serving() if sys.argv[1] == "tuned" else nullcontext():
    threads = [threading.Thread(target=allocate) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
stdout = ctypes.c_void_p(libc.fopen(b"/dev/stdout", b"w"))
libc.malloc_info(0, stdout)
libc.fclose(stdout)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another allocator")
@pytest.mark.process
def test_threads_share_two_arenas() -> None:
    """One arena for each thread would leave half of the heap free but unusable."""
    assert _arenas("as it is") > 2
    assert _arenas("tuned") == 2


def _arenas(mode: str) -> int:
    command = [sys.executable, "-c", _COUNT_ARENAS, mode]
    env = {name: value for name, value in os.environ.items() if name != "MALLOC_ARENA_MAX"}
    root = Path(__file__).parents[3]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=root, env=env)
    return done.stdout.count("<heap ")
