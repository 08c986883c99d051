"""The arguments of the tools: their types, their JSON schemas, and the errors of wrong ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct

from orchestrator.schema.decode import InvalidInput, describe_decode_error
from orchestrator.schema.search import DEFAULT_TOKENS, MAX_COLLECTIONS, MAX_TOKENS, MIN_TOKENS, Name

T = TypeVar("T", bound=Struct)

_Query = Annotated[
    str, Meta(description="what to search for; text in quotes has to occur word for word, except in a sentence")
]
_Limit = Annotated[int, Meta(ge=1, le=50, description="maximum number of hits, 1 to 50; 10 by default")]
_Filters = Annotated[
    dict[str, Any],
    Meta(
        description="conditions on the documents, all of which have to be true: a field with its value, a list of "
        'values, or bounds: {"language": "en", "tags": ["a", "b"], "created_at": {"gte": "2024-01-01"}, "year": '
        '{"lt": 2020}}; names that are no field are keys of the metadata; list_collections shows the fields'
    ),
]
_MinConfidence = Annotated[
    float,
    Meta(ge=0, le=1, description="0 to 1: return nothing if it is less sure that the documents answer the query"),
]
_MaxTokens = Annotated[
    int, Meta(ge=MIN_TOKENS, le=MAX_TOKENS, description="maximum length of the answer in tokens, 100 to 32000")
]
_Structured = Annotated[
    bool, Meta(description="return only ids, scores and urls, as structured content instead of text")
]
_Collection = Annotated[
    Name, Meta(description="of the document; needed if documents of several collections have the id")
]


class _Arguments(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Unknown arguments are refused."""


class SearchArguments(_Arguments, frozen=True, kw_only=True):
    """What all searches have."""

    query: _Query
    limit: _Limit | None = None
    filters: _Filters | None = None
    min_confidence: _MinConfidence | None = None
    max_tokens: _MaxTokens = DEFAULT_TOKENS
    structured: _Structured = False


class HybridSearch(SearchArguments, frozen=True, kw_only=True):
    """``hybrid_search`` and ``explain_search``."""

    collections: (
        Annotated[
            tuple[Name, ...],
            Meta(
                min_length=1,
                max_length=MAX_COLLECTIONS,
                description="names of the collections to search; all but memory and history by default",
            ),
        ]
        | None
    ) = None
    include_memory: Annotated[bool, Meta(description="search the collection memory, too")] = False
    expand_neighbors: Annotated[
        int, Meta(ge=0, le=10, description="show the text of each hit with so many chunks before and after it")
    ] = 0


class MemorySearch(SearchArguments, frozen=True, kw_only=True):
    """``memory_search``."""


class GetDocument(_Arguments, frozen=True, kw_only=True):
    """``get_document``."""

    id: Annotated[Name, Meta(description="of the document, as a search shows it")]
    collection: _Collection | None = None
    start: Annotated[int, Meta(ge=0, description="character of the text to begin with, from 0")] = msgspec.field(
        name="from", default=0
    )
    max_tokens: _MaxTokens = DEFAULT_TOKENS


class ListCollections(_Arguments, frozen=True, kw_only=True):
    """``list_collections``: none."""


class DeleteDocument(_Arguments, frozen=True, kw_only=True):
    """``delete_document``."""

    id: Annotated[Name, Meta(description="of the document")]
    collection: _Collection | None = None
    with_chunks: Annotated[bool, Meta(description="delete the chunks of the document, too")] = True


def arguments_of(kind: type[T], sent: Mapping[str, Any]) -> T:
    """The arguments of a call, as clients send them: a null is as if the argument was not there, and 5.0 is 5.

    :raises InvalidInput: if one is unknown or missing, or its value is not allowed.
    """
    sent = {name: _whole(value) for name, value in sent.items() if value is not None}
    if sent and not kind.__struct_fields__:
        raise InvalidInput(f"unknown argument {next(iter(sent))[:80]!r}, there are none")
    try:
        return msgspec.convert(sent, kind)
    except msgspec.ValidationError as error:
        message = describe_decode_error(error, kind, sent)
        raise InvalidInput(message.replace("unknown field", "unknown argument", 1)) from error


def _whole(value: Any) -> Any:
    """A number without a fraction as a whole number, which it is in JSON Schema."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def input_schema(kind: type[Struct]) -> dict[str, Any]:
    """The JSON schema of arguments, as MCP expects it: an object, not a reference to one."""
    _, components = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    schema: dict[str, Any] = _without_null(components.pop(kind.__name__))
    shown = {name: value for name, value in schema.items() if name not in ("title", "description")}
    return {**shown, **({"$defs": _without_null(components)} if components else {})}


def _without_null(schema: Any) -> Any:
    """The schema without null beside one other type: some clients do not know the type of what may also be null."""
    match schema:
        case {"anyOf": [inner, {"type": "null"}], **others}:
            return {**inner, **{name: value for name, value in others.items() if name != "default"}}
        case dict():
            return {name: _without_null(value) for name, value in schema.items()}
        case list():
            return [_without_null(each) for each in schema]
        case _:
            return schema
