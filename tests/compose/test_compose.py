"""The Compose file is held against Compose's own rules and against the settings; it is run nowhere here."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from orchestrator.settings import read

ROOT = Path(__file__).parents[2]
COMPOSE = Path(sys.executable).with_name("docker-compose")


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    done = subprocess.run(
        [COMPOSE, "-f", ROOT / "compose" / "compose.yaml", "config", "--format", "json"],
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)["services"]
    return found


def test_every_server_is_pinned_bounded_kept_and_watched(services: dict[str, Any]) -> None:
    assert set(services) == {"qdrant", "memgraph", "opensearch", "redis"}
    for name, service in services.items():
        assert re.search(r":v?\d+\.\d+", service["image"]), name
        assert int(service["mem_limit"]) > 0, name
        assert service["healthcheck"]["test"], name
        assert service["volumes"][0]["type"] == "volume", name


def test_nothing_listens_to_other_machines(services: dict[str, Any]) -> None:
    for service in services.values():
        assert {port["host_ip"] for port in service["ports"]} == {"127.0.0.1"}


def test_the_three_lines_that_it_names_are_settings_and_ports_that_it_opens(
    services: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    named = dict(re.findall(r"export (TRIVIUM_\w+)=(\S+)", (ROOT / "compose" / "compose.yaml").read_text()))
    assert set(named) == {"TRIVIUM_VECTOR", "TRIVIUM_GRAPH", "TRIVIUM_KEYWORD"}
    for name, url in named.items():
        monkeypatch.setenv(name, url)
    settings = read()
    opened = {port["published"] for service in services.values() for port in service["ports"]}
    assert {url.rsplit(":", 1)[1] for url in (settings.vector, settings.graph, settings.keyword)} <= opened
