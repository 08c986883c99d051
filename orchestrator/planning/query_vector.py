"""The vector of a query, if the request has one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from adapters.model.vectors import unit
from fusion.source import Source
from orchestrator.planning.errors import BadRequest
from orchestrator.planning.routing import compares_vectors


def unit_vector(numbers: Sequence[float], dimension: int) -> bytes:
    """The vector scaled to unit length, as little-endian numbers of single precision.

    :param dimension: length of the documents' vectors.
    :raises BadRequest: if it has another length, is not finite, or is all zeros.
    """
    if len(numbers) != dimension:
        raise BadRequest(f"vector: {len(numbers)} numbers, the documents have {dimension}")
    try:
        return unit(numbers).tobytes()
    except ValueError as error:
        raise BadRequest(f"vector: {error}") from error


def require_vector(sources: Iterable[Source], dimension: int) -> None:
    """Check that a request without a vector can be answered although nothing encodes its text.

    :param sources: that it searches.
    :raises BadRequest: if one of them compares vectors.
    """
    if any(map(compares_vectors, sources)):
        raise BadRequest(
            f"vector: missing, and TRIVIUM_EMBEDDER is none://{dimension}, which encodes no text; give {dimension} "
            'numbers, or the mode "auto", which leaves out what needs them'
        )
