"""Responses and feedback with the names of User Behavior Insights (version 1.3.0), for tools that read these."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO

import msgspec

from adapters.model.feedback import Feedback, ShownResponse
from orchestrator.telemetry.times import rfc3339

QUERIES_FILE, EVENTS_FILE = "ubi_queries.ndjson", "ubi_events.ndjson"

_ACTIONS = {"used": "click", "useful": "useful", "not_useful": "not_useful"}
_APPLICATION = "trivium"


def write_ubi(recorded: Iterable[tuple[ShownResponse, Sequence[Feedback]]], folder: Path) -> tuple[int, int]:
    """Write a line for each response, and one for each feedback. Returns their numbers.

    The text of a query that is not recorded is empty; its hash is in ``query_attributes``.

    :raises OSError: if a file exists, or cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    queries = events = 0
    with (folder / QUERIES_FILE).open("xb") as of_queries, (folder / EVENTS_FILE).open("xb") as of_events:
        for response, feedback in recorded:
            _write(of_queries, _query(response))
            queries += 1
            for each in feedback:
                _write(of_events, _event(response, each))
                events += 1
    return queries, events


def _query(response: ShownResponse) -> dict[str, object]:
    return {
        "application": _APPLICATION,
        "query_id": response.query_id,
        "user_query": response.query or "",
        "query_attributes": {
            "tenant": response.scope.tenant,
            "environment": response.scope.environment,
            "query_hash": response.query_hash,
            "first": response.first,
        },
        "object_id_field": "id",
        "timestamp": rfc3339(response.at),
        "query_response_id": response.query_id,
        "query_response_hit_ids": [id_ for _, id_ in response.hits],
    }


def _event(response: ShownResponse, feedback: Feedback) -> dict[str, object]:
    collection, id_ = response.hits[feedback.hit]
    return {
        "application": _APPLICATION,
        "action_name": _ACTIONS[feedback.kind],
        "query_id": feedback.query_id,
        "timestamp": rfc3339(feedback.at),
        "event_attributes": {
            "object": {"object_id": id_, "object_id_field": "id", "collection": collection},
            "position": {"ordinal": feedback.position},
        },
    }


def _write(file: IO[bytes], line: object) -> None:
    file.write(msgspec.json.encode(line) + b"\n")
