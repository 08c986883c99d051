"""Parts of the responses of OpenSearch."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias, TypeVar

import msgspec

from adapters.model.document import Record
from adapters.model.errors import AdapterError, Unavailable
from adapters.model.protection import Protection, Sensitivity, Visibility
from adapters.servers.server import error_of_status, named_kind, unreadable
from fusion.doc_ids import DEFAULT_COLLECTION, doc_id
from fusion.values import DocId

_OK = 200


class IdentifiedDocument(msgspec.Struct, frozen=True):
    """The part of a :class:`adapters.Document` that decides which callers may replace it."""

    id: str
    collection: str = DEFAULT_COLLECTION
    sensitivity: Sensitivity = "normal"
    visibility: Visibility = "tenant"
    owner: str | None = None
    team: str | None = None

    @property
    def protection(self) -> Protection:
        """See :attr:`adapters.Document.protection`."""
        return Protection(self.sensitivity, self.visibility, self.owner, self.team)


class IdentifiedRecord(msgspec.Struct, frozen=True):
    """The part of a :class:`adapters.Record` that decides which callers may replace it."""

    tenant: str
    environment: str
    document: IdentifiedDocument

    @property
    def doc_id(self) -> DocId:
        """See :func:`fusion.doc_ids.doc_id`."""
        return doc_id(self.document.id, self.document.collection)


IDENTIFYING_FIELDS = ",".join(
    (
        *("record.tenant", "record.environment"),
        *(f"record.document.{name}" for name in IdentifiedDocument.__struct_fields__),
    )
)
"""The fields of an :class:`IdentifiedRecord`."""
R = TypeVar("R", Record, IdentifiedRecord)


DocumentCount: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


class Bucket(msgspec.Struct, frozen=True):
    """The number of documents with a value."""

    key: str
    doc_count: DocumentCount


def search_responses(response: Any) -> list[Any]:
    """The response to each of the searches that were sent together, or the error of this one.

    :raises BadResponse: if these are not responses.
    """
    try:
        return [_response_or_error(each) for each in response["responses"]]
    except (KeyError, TypeError) as error:
        raise unreadable("opensearch's response to searches", error) from error


def _response_or_error(response: Any) -> Any:
    try:
        status = int(response["status"])
        if status == _OK:
            return response
        kind = response.get("error", {}).get("type")
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return unreadable("opensearch's response to a search", error)
    return status_error(status, kind)


def status_error(status: int, kind: object) -> AdapterError:
    """The error for a status.

    :param kind: of the error, as OpenSearch names it.
    """
    return error_of_status(status, f"opensearch returned status {status}", named_kind(kind))


def check_shards(response: Any) -> None:
    """Check that a response contains the results of all shards.

    :raises Unavailable: if a shard failed.
    """
    if response["_shards"]["failed"] != 0:
        raise Unavailable("some shards of opensearch failed")
