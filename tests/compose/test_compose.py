"""The Compose file is checked against the rules of Compose and against the settings; no test runs it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from orchestrator.settings import load

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


def test_every_server_has_a_release_a_memory_limit_a_volume_and_a_health_check(services: dict[str, Any]) -> None:
    assert set(services) == {"qdrant", "memgraph", "opensearch", "redis"}
    for name, service in services.items():
        assert re.search(r":v?\d+\.\d+", service["image"]), name
        assert int(service["mem_limit"]) > 0, name
        assert service["healthcheck"]["test"], name
        assert service["volumes"][0]["type"] == "volume", name


def test_no_port_is_open_to_other_machines(services: dict[str, Any]) -> None:
    for service in services.values():
        assert {port["host_ip"] for port in service["ports"]} == {"127.0.0.1"}


def test_the_three_variables_in_the_file_are_settings_and_name_ports_that_it_opens(
    services: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    named = dict(re.findall(r"export (TRIVIUM_\w+)=(\S+)", (ROOT / "compose" / "compose.yaml").read_text()))
    assert set(named) == {"TRIVIUM_VECTOR", "TRIVIUM_GRAPH", "TRIVIUM_KEYWORD"}
    for name, url in named.items():
        monkeypatch.setenv(name, url)
    sources = load().sources
    opened = {port["published"] for service in services.values() for port in service["ports"]}
    assert {url.rsplit(":", 1)[1] for url in (sources.vector, sources.graph, sources.keyword)} <= opened
