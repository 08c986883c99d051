"""Requests with filters as callers write them: JSON, or the same fields in Python; filters in full or in short."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from adapters.model.dates import moment
from adapters.model.filter import And, Eq, Filter
from orchestrator.schema.decode import InvalidInput, decoded, describe_decode_error, syntax_error, with_whole_numbers
from orchestrator.schema.documents import DeleteManyRequest
from orchestrator.schema.feedback import FeedbackRequest
from orchestrator.schema.flat_filter import BOUNDS, in_full_form, is_flat, name_of_part
from orchestrator.schema.search import SearchRequest

T = TypeVar("T", bound=msgspec.Struct)

_search_decoder = msgspec.json.Decoder(SearchRequest)
_delete_decoder = msgspec.json.Decoder(DeleteManyRequest)
_feedback_decoder = msgspec.json.Decoder(FeedbackRequest)


def decode_search_request(content: bytes) -> SearchRequest:
    """The request of a body.

    :raises msgspec.DecodeError: if it is not JSON.
    :raises UnicodeDecodeError: if it is not UTF-8.
    :raises InvalidInput: if a field is unknown, or its value not allowed.
    """
    return _decoded(content, _search_decoder)


def decode_delete_request(content: bytes) -> DeleteManyRequest:
    """The request of a body: as :func:`decode_search_request`."""
    return _decoded(content, _delete_decoder)


def decode_feedback(content: bytes) -> FeedbackRequest:
    """The request of a body: as :func:`decode_search_request`."""
    return _decoded(content, _feedback_decoder)


def listed_filter(text: str | None, collection: str | None) -> Filter:
    """The filter of a list of documents: that of a text with JSON, and a collection, as far as they are given.

    :raises InvalidInput: if the text is not JSON, or not a filter.
    """
    conditions = [] if text is None else [filter_of(filter_from_json(text))]
    return And((*conditions, *([] if collection is None else [Eq("collection", collection)])))


def filter_from_json(text: str) -> object:
    """The fields of a filter in a text.

    :raises InvalidInput: if it is not JSON.
    """
    if (condition := decoded(text.encode("utf-8", "surrogatepass"))) is msgspec.UNSET:
        raise InvalidInput(f'filter: {text[:80]!r} is not JSON such as {{"language": "en"}}')
    return condition


def filter_of(condition: object) -> Filter:
    """The filter of these fields.

    :raises InvalidInput: if it is not a filter.
    """
    return _converted({"filter": condition}, DeleteManyRequest).filter


def search_request(fields: object) -> SearchRequest:
    """The request of these fields. Bounds of ranges may be plain dates.

    :raises InvalidInput: if a field is unknown, or its value not allowed.
    """
    return _converted(fields, SearchRequest)


def _decoded(content: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    try:
        return decoder.decode(content)
    except msgspec.ValidationError as error:
        if (fields := decoded(content)) is msgspec.UNSET:
            if syntax := syntax_error(content):
                raise syntax from error
            raise InvalidInput(describe_decode_error(error, decoder.type)) from error
        return _converted(fields, decoder.type)


def _converted(fields: object, kind: type[T]) -> T:
    given = fields.get("filter") if isinstance(fields, Mapping) else None
    if isinstance(fields, Mapping) and "filter" in fields:
        fields = {**fields, "filter": _with_moments(in_full_form(given))}
    try:
        return msgspec.convert(fields, kind)
    except msgspec.ValidationError as error:
        with suppress(msgspec.ValidationError):
            return msgspec.convert(with_whole_numbers(fields), kind)
        message = describe_decode_error(error, kind, fields)
        raise InvalidInput(_in_terms_of_flat(message, given) if is_flat(given) else message) from error


def _in_terms_of_flat(message: str, condition: Mapping[str, object]) -> str:
    """An error that names a part of a full filter, with the part of the flat filter that it was made from."""
    path, separator, reason = message.partition(": ")
    return f"{name_of_part(path, condition)}{separator}{reason}"


def _with_moments(condition: Any) -> Any:
    """A filter with the texts in bounds of ranges as moments, as far as they are dates."""
    match condition:
        case {"op": "range"}:
            return {key: _as_moment(value) if key in BOUNDS else value for key, value in condition.items()}
        case {"filters": list() as filters}:
            return {**condition, "filters": [_with_moments(each) for each in filters]}
        case {"filter": inner}:
            return {**condition, "filter": _with_moments(inner)}
        case _:
            return condition


def _as_moment(bound: object) -> object:
    if isinstance(bound, str):
        with suppress(ValueError):  # what is no date is refused when the request is converted
            return moment(bound)
    return bound
