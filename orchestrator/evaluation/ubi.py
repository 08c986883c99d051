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
_SHOWN = "impression"
_APPLICATION = "trivium"


def write_ubi(recorded: Iterable[tuple[ShownResponse, Sequence[Feedback]]], folder: Path) -> tuple[int, int]:
    """Write a line for each response, and one for each hit that was shown and each feedback. Returns their numbers.

    The text of a query that is not recorded is empty; its hash is in ``query_attributes``.

    :raises OSError: if a file exists, or cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    queries = events = 0
    with (folder / QUERIES_FILE).open("xb") as of_queries, (folder / EVENTS_FILE).open("xb") as of_events:
        for response, feedback in recorded:
            _write(of_queries, _query(response))
            queries += 1
            shown = [
                _event(response, number, _SHOWN, response.first + number, response.at)
                for number in range(len(response.hits))
            ]
            used = [_event(response, each.hit, _ACTIONS[each.kind], each.position, each.at) for each in feedback]
            for event in (*shown, *used):
                _write(of_events, event)
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
        "query_response_hit_ids": [id_ for _, id_, _ in response.hits],
    }


def _event(response: ShownResponse, hit: int, action: str, position: int, at: float) -> dict[str, object]:
    collection, id_, _ = response.hits[hit]
    return {
        "application": _APPLICATION,
        "action_name": action,
        "query_id": response.query_id,
        "timestamp": rfc3339(at),
        "event_attributes": {
            "object": {"object_id": id_, "object_id_field": "id", "collection": collection},
            "position": {"ordinal": position},
        },
    }


def _write(file: IO[bytes], line: object) -> None:
    file.write(msgspec.json.encode(line) + b"\n")
