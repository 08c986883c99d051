"""Vectors that users bring."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

MAX_DIMENSION = 4_096
"""The most numbers that a vector may have."""
_STORED = np.dtype("<f4")


def unit(numbers: Sequence[float]) -> npt.NDArray[np.float32]:
    """The vector scaled to unit length: vectors are compared by their cosine, so their lengths do not matter.

    :raises ValueError: if a number is not finite, or all are 0.
    """
    vector = np.asarray(numbers, np.float64)
    largest = float(np.abs(vector).max(initial=0.0))
    if not np.isfinite(largest) or largest == 0.0:
        raise ValueError("must contain finite numbers, one of them not 0")
    vector /= largest  # so that no square overflows
    return (vector / np.linalg.norm(vector)).astype(_STORED)


def packed(numbers: Sequence[float]) -> bytes:
    """The numbers as they are stored: little-endian, of single precision.

    :raises ValueError: if a number is not finite in single precision, or all are 0.
    """
    with np.errstate(over="ignore"):
        stored = np.asarray(numbers, np.float64).astype(_STORED)
    try:
        unit(stored.tolist())
    except ValueError as error:
        raise ValueError(f"{error}, in single precision") from error
    return stored.tobytes()


def unpacked(stored: bytes) -> tuple[float, ...]:
    """The numbers of :func:`packed`, each as the shortest decimal number that is stored in the same way."""
    return tuple(float(str(number)) for number in np.frombuffer(stored, _STORED))
