"""Documents that match a filter, without a query: in an order, and counted by the values of their fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from msgspec import Struct

from adapters.model.document import Scope
from adapters.model.facets import Facet
from adapters.model.filter import Filter
from fusion.columns import Documents

MAX_LISTED_HITS = 10_000
"""Documents that are listed at most: as many as one search of OpenSearch returns by default."""


class SortKey(Struct, frozen=True, gc=False):
    """The field that documents are ordered by: truth values, then numbers, then texts; those without a value last.

    Of several values the first in this order counts. Texts of more than 512 characters come first among texts.
    """

    field: str
    descending: bool = False


class Listing(NamedTuple):
    """The first documents in an order, and how many there are in all."""

    documents: Documents
    total: int


class DocumentLister(Protocol):
    """Documents that pass a filter in normal form."""

    async def ordered(self, condition: Filter, sort: SortKey | None, count: int) -> Listing:
        """The first documents, equal ones by id, as all are without ``sort``.

        :param count: maximum number of documents, at most :data:`MAX_LISTED_HITS`.
        """
        ...

    async def facets(
        self, scope: Scope, sizes: Mapping[str, int], condition: Filter, within: Documents | None = None
    ) -> dict[str, Facet]:
        """The number of documents by value of each field.

        :param scope: of the documents.
        :param sizes: by field, the maximum number of values, and of ranges.
        :param within: only these documents are counted, as far as they pass.
        """
        ...
