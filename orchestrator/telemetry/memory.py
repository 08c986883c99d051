"""The memory of this process and the limit of its container, as Linux reports them."""

from __future__ import annotations

from pathlib import Path

_STATUS = Path("/proc/self/status")
_COUNTED = ("RssAnon:", "RssShmem:")
LIMIT_FILES = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Memory limits of control groups, versions 2 and 1."""
_NO_LIMIT = 1 << 60


def used_bytes() -> int:
    """Resident memory without mapped files, which the kernel can drop; 0 where this is not Linux."""
    try:
        lines = _STATUS.read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1_024 for line in lines if line.startswith(_COUNTED))


def limit_bytes() -> int:
    """The memory limit of the container; 0 if there is none."""
    for path in LIMIT_FILES:
        try:
            text = path.read_text().strip()
        except OSError:
            continue
        limit = int(text) if text.isdecimal() else _NO_LIMIT
        return limit if limit < _NO_LIMIT else 0
    return 0
