"""Settings of the interpreter and the allocator of a process that serves requests."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_GC_THRESHOLDS = (10_000, 20, 100)
"""Thresholds of :mod:`gc`. With the default (700, 10, 10) full collections, which visit everything that is cached, are
frequent: the p99.9 of responses is two to three times as high as without them."""
_SWITCH_INTERVAL_S = 0.0005
"""Value of :func:`sys.setswitchinterval`: how long the event loop waits for the GIL if another thread prepares a write,
each time a search returns from a library that released it. With the default of 5 ms, the p95 of searches during large
writes is 30 % higher."""
_M_ARENA_MAX, _ARENAS = -8, 2
"""Parameter and value of ``mallopt`` in glibc: the number of arenas. Free memory of one arena is not used by another:
with the default of eight for each core, half of the heap is free after 1,000 large requests."""


@contextmanager
def tuned_for_serving() -> Iterator[None]:
    """Set the garbage collector, the switch interval and the allocator. At the end all but the allocator is reset."""
    _limit_arenas()
    # Objects that exist now stay: a full collection over them would stop every request for 100 ms. Not if
    # the program has frozen objects itself.
    is_frozen_here = gc.get_freeze_count() == 0
    if is_frozen_here:
        gc.collect()
        gc.freeze()
    thresholds, switch_interval_s = gc.get_threshold(), sys.getswitchinterval()
    gc.set_threshold(*_GC_THRESHOLDS)
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    try:
        yield
    finally:
        sys.setswitchinterval(switch_interval_s)
        gc.set_threshold(*thresholds)
        if is_frozen_here:
            gc.unfreeze()


def _limit_arenas() -> None:
    """Limit the arenas if the allocator is glibc's and the environment does not set their number."""
    if sys.platform == "linux" and "MALLOC_ARENA_MAX" not in os.environ:
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
        if mallopt is not None:
            mallopt(_M_ARENA_MAX, _ARENAS)
