"""Checks the objects of a program: each is a valid document or not, and an invalid one has a reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from adapters import Document
from orchestrator.indexing.ndjson import InvalidLine, ParsedLine, ValidLine, checked, from_fields, size_error
from orchestrator.schema.arrays import with_lists
from orchestrator.schema.decode import describe_decode_error


def parse_objects(documents: Iterable[Document | Mapping[str, Any]]) -> Iterator[ParsedLine]:
    """One value for each document, in order; they are numbered from 1. Nothing is buffered.

    :param documents: objects, whose fields need not have the right types, or mappings with the fields of a line.
    :raises TypeError: if ``documents`` is one document, a text, or nothing that can be iterated over.
    """
    if isinstance(documents, (Document, Mapping, str, bytes)) or not isinstance(documents, Iterable):
        raise TypeError(f"documents is {repr(documents)[:80]}, allowed is a list of documents, or another iterable")
    return _parsed(documents)


def _parsed(documents: Iterable[Document | Mapping[str, Any]]) -> Iterator[ParsedLine]:
    for number, document in enumerate(documents, start=1):
        try:
            # The fields of a struct that a program makes are not checked, so it is converted, too.
            fields = msgspec.to_builtins(document) if isinstance(document, Document) else with_lists(document)
            converted = from_fields(fields)
            if too_large := size_error(len(msgspec.json.encode(converted))):
                yield InvalidLine(number, too_large)
            else:
                yield ValidLine(number, checked(converted))
        except msgspec.ValidationError as error:
            yield InvalidLine(number, describe_decode_error(error, Document, fields))
        except (TypeError, ValueError) as error:  # a value that JSON cannot have; a text that UTF-8 cannot have
            yield InvalidLine(number, str(error))
