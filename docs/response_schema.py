"""``python -m docs.response_schema`` writes the JSON schema of a search response, and a test compares the two.

Its version is that of :data:`orchestrator.schema.search.SCHEMA_VERSION`.
"""

from __future__ import annotations

import json
from inspect import cleandoc
from pathlib import Path
from typing import Any

import msgspec

from adapters.model.sources import SOURCES
from orchestrator.schema.hits import ALWAYS_RETURNED
from orchestrator.schema.search import AUTO, HYBRID, SCHEMA_VERSION, SearchResponse

PATH = Path(__file__).parent / "schemas" / f"search-response.v{SCHEMA_VERSION}.json"


def schema() -> dict[str, Any]:
    """JSON Schema 2020-12. The type allows any text as ``mode``, because sources are data; here are the modes."""
    described = msgspec.json.schema(SearchResponse)
    modes = sorted((AUTO, HYBRID, *(source.name for source in SOURCES)))
    described["$defs"]["SearchResponse"]["properties"]["mode"] = {"enum": modes}
    described["$defs"]["SearchHit"]["required"] = list(ALWAYS_RETURNED)
    for definition in described["$defs"].values():
        if "description" in definition:  # a docstring, indented as in the source before CPython 3.13
            definition["description"] = cleandoc(definition["description"])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:trivium:search-response:v{SCHEMA_VERSION}",
        **described,
    }


if __name__ == "__main__":
    PATH.write_text(json.dumps(schema(), indent=2, ensure_ascii=False) + "\n", "utf-8")
