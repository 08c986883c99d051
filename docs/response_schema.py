"""``python -m docs.response_schema`` writes the JSON schema of a search's answer, which a test holds it to.

A field that is added keeps the version; one that goes, or means something else, makes the next one.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from orchestrator.contract import SearchResponse

VERSION = 1
PATH = Path(__file__).parent / "schemas" / f"search-response.v{VERSION}.json"


def schema() -> dict[str, Any]:
    """JSON Schema 2020-12."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:trivium:search-response:v{VERSION}",
        **msgspec.json.schema(SearchResponse),
    }


if __name__ == "__main__":
    PATH.write_text(json.dumps(schema(), indent=2, ensure_ascii=False) + "\n", "utf-8")
