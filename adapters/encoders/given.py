"""For users who bring the vectors of their documents and queries."""

from __future__ import annotations

from collections.abc import Sequence

from adapters.model.errors import Rejected
from adapters.ports.encoders import EncodedText, Matrix, Vector


class GivenVectors:
    """Encodes nothing: a text without a vector is refused.

    :param dimension: of the vectors that are given.
    """

    encodes_texts = False

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension

    @property
    def identity(self) -> str:
        """See :class:`adapters.ports.TextEncoder`."""
        return f"none-{self.dimension}"

    def encode(self, text: str) -> Vector:
        """:raises Rejected: always."""
        raise Rejected(f"a text of {len(text)} characters has no vector, and none://{self.dimension} encodes no text")

    def encode_texts(self, texts: Sequence[EncodedText]) -> list[Matrix]:
        """:raises Rejected: if there are texts."""
        return [self.encode(each.text) for each in texts]
