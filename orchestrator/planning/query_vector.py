"""The vector of a query, if the request has one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from orchestrator.planning.errors import BadRequest


def unit_vector(numbers: Sequence[float], dimension: int) -> bytes:
    """The vector scaled to unit length, as little-endian numbers of single precision.

    :param dimension: length of the documents' vectors.
    :raises BadRequest: if it has another length, is not finite, or is all zeros.
    """
    if len(numbers) != dimension:
        raise BadRequest(f"vector: {len(numbers)} numbers, the documents have {dimension}")
    vector = np.asarray(numbers, np.float64)
    largest = float(np.abs(vector).max(initial=0.0))
    if not np.isfinite(largest) or largest == 0.0:
        raise BadRequest("vector: must contain finite numbers, one of them not 0")
    vector /= largest  # so that no square overflows
    return (vector / np.linalg.norm(vector)).astype("<f4").tobytes()
