"""Bulk writes to OpenSearch: the lines of a request, and the check of its response."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypeAlias

import msgspec

from adapters.keyword import analysis
from adapters.keyword.opensearch_index import Candidate
from adapters.model.document import Record, fields, rank_fields
from adapters.model.errors import AdapterError, BadResponse, ExecutionFailed, Rejected, Unavailable
from adapters.model.index_terms import filter_terms, value_terms
from adapters.ports.replica import Key, VectorRecord
from adapters.servers.fingerprints import fingerprint
from adapters.servers.server import INTERNAL_SERVER_ERROR, named_kind, unreadable
from adapters.text.languages import language_of

Body: TypeAlias = dict[str, Any]

BULK_PARAMETERS = {
    "refresh": "wait_for",  # the response comes once searches see the write: at most one refresh interval later
    "require_alias": "true",  # else a bulk to an index that does not exist would create one with default mappings
}
_REJECTED_STATUSES = frozenset({400, 413})
"""Statuses of an invalid document. All others may be transient errors of the server or its index."""
_CONFLICT = 409
"""The document has this version already, or a newer one."""
_MAX_VERSION = 2**53
"""Versions are microseconds of a clock: this one is in the year 2255. After a larger one all writes would fail."""
_EXISTING_VERSION = re.compile(r"current version \[(\d{1,19})\]")


def bulk_lines(sequence: int, batch: Sequence[VectorRecord | Key]) -> list[bytes]:
    """For each record or key the lines of a bulk request that index or delete it."""
    return [b"".join(msgspec.json.encode(line) + b"\n" for line in _lines(sequence, each)) for each in batch]


def _lines(sequence: int, each: VectorRecord | Key) -> list[Body]:
    if isinstance(each, VectorRecord):
        return [{"index": _address(each.record.key, sequence)}, _source(each.record)]
    return [{"delete": _address(each, sequence)}]


def check_bulk(response: Any, sequence: int, batch: Sequence[VectorRecord | Key]) -> set[int]:
    """Check each line of a bulk's response: its status is 200 even if lines have failed.

    :param batch: what was written.
    :returns: the versions of the documents that have a newer one than ``sequence``, and were not changed.
    :raises Rejected: if all failed lines failed because of their documents.
    :raises ExecutionFailed: if some failed with an internal error, which their documents may have caused.
    :raises Unavailable: if some line failed for another reason.
    :raises BadResponse: if the response cannot be understood.
    """
    try:
        outcomes = [next(iter(each.items())) for each in response["items"]]
        are_of_batch = [outcome["_id"] for _, outcome in outcomes] == [fingerprint(*_key(each)) for each in batch]
        failed = [outcome for action, outcome in outcomes if not _is_done(action, outcome)]
        statuses = {outcome["status"] for outcome in failed}
        versions = {_existing_version(outcome) for _, outcome in outcomes if outcome["status"] == _CONFLICT}
    except (KeyError, TypeError, AttributeError, StopIteration) as error:
        raise unreadable("opensearch's response to a bulk", error) from error
    if not are_of_batch or not all(sequence <= version <= _MAX_VERSION for version in versions):
        raise BadResponse("opensearch's response to a bulk does not match the written documents")
    if failed:
        first = failed[0].get("error")
        kind = named_kind(first.get("type")) if isinstance(first, dict) else ""
        message = f"opensearch did not accept {len(failed)} of {len(outcomes)} documents"
        raise _error_of(statuses)(f"{message}, first: {kind or 'no reason'}")
    return {version for version in versions if version > sequence}


def _error_of(statuses: set[int]) -> type[AdapterError]:
    """The error for the statuses of failed lines."""
    if statuses <= _REJECTED_STATUSES:
        return Rejected
    return ExecutionFailed if statuses <= _REJECTED_STATUSES | {INTERNAL_SERVER_ERROR} else Unavailable


def _existing_version(conflict: Body) -> int:
    """The version of a document that a write did not replace; OpenSearch reports it in a sentence."""
    found = _EXISTING_VERSION.search(conflict["error"]["reason"])
    if found is None:
        raise KeyError("version")
    return int(found[1])


def _key(each: VectorRecord | Key) -> Key:
    return each.record.key if isinstance(each, VectorRecord) else each


def _address(key: Key, sequence: int) -> Body:
    return {"_id": fingerprint(*key), "version": sequence, "version_type": "external"}


def _source(record: Record) -> Body:
    terms, values = analysis.document_terms(record.document), fields(record)
    return {
        "collection": record.document.collection,
        "filter_terms": filter_terms(values),
        "identity": record.doc_id,
        "values": value_terms(values),
        "words": terms.words,
        "exact": terms.exact,
        "language": language_of(record.document.language),
        "candidate": msgspec.json.encode(Candidate(record.doc_id, rank_fields(record.document))).decode(),
        "record": msgspec.to_builtins(record),
    }


def _is_done(action: str, outcome: Body) -> bool:
    status = outcome["status"]
    deleted_nothing = action == "delete" and status == 404 and outcome.get("result") == "not_found"
    return 200 <= status < 300 or status == _CONFLICT or deleted_nothing
