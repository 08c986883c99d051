"""Settings of the interpreter and the allocator of a process that answers requests."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_GC_THRESHOLDS = (10_000, 20, 100)
"""Of :mod:`gc`. With Python's own (700, 10, 10) full collections, which visit everything that is cached, are frequent:
the slowest of a thousand responses took two to three times as long as without any."""
_SWITCH_INTERVAL_S = 0.0005
"""Of :func:`sys.setswitchinterval`: how long the event loop waits for a thread that prepares a write, each time a
search returns from a library that released the interpreter. With Python's own 5 ms, searches beside large writes took
30 % longer at the 95th percentile."""
_M_ARENA_MAX, _ARENAS = -8, 2
"""Of ``mallopt`` in glibc: parts of the heap, each for some threads. Memory that is free in one is of no use to
another, and by default there are eight for each core: after 1,000 large requests, half of the heap was free."""


@contextmanager
def tuned_for_serving() -> Iterator[None]:
    """Short stops, and memory that stays the same. All but the limit of arenas ends with the context."""
    _limit_arenas()
    # Objects that are open now stay: a full collection over them would stop every request for 100 ms. A program that
    # has frozen its own decides for itself.
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
    """Where the allocator is glibc's, and the environment does not set its number."""
    if sys.platform == "linux" and "MALLOC_ARENA_MAX" not in os.environ:
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
        if mallopt is not None:
            mallopt(_M_ARENA_MAX, _ARENAS)
