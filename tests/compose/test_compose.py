"""The Compose files are checked against the rules of Compose and against the settings; no test runs them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from orchestrator.settings import load
from orchestrator.settings.loading import read_settings_file

ROOT = Path(__file__).parents[2]
COMPOSE = Path(sys.executable).with_name("docker-compose")
STORES = {"qdrant", "memgraph", "opensearch", "redis"}
INSTANCES = {"trivium-a", "trivium-b"}
ALL = STORES | INSTANCES | {"haproxy", "prometheus", "grafana"}


def config(*files: str, profiles: tuple[str, ...] = ()) -> dict[str, Any]:
    """The project as Compose reads it."""
    named = [argument for file in files for argument in ("-f", str(ROOT / "compose" / file))]
    chosen = [argument for profile in profiles for argument in ("--profile", profile)]
    command = [COMPOSE, *named, *chosen, "config", "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert not done.stderr, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def development() -> dict[str, Any]:
    return config("compose.yaml", profiles=("service", "monitoring"))


@pytest.fixture(scope="module")
def production() -> dict[str, Any]:
    return config("compose.yaml", "production.yaml", profiles=("service", "monitoring"))


def test_without_a_profile_there_are_the_four_stores_only() -> None:
    assert set(config("compose.yaml")["services"]) == STORES


@pytest.mark.parametrize("project", ["development", "production"])
def test_every_service_has_a_release_and_a_memory_limit(project: str, request: pytest.FixtureRequest) -> None:
    services = request.getfixturevalue(project)["services"]
    assert set(services) == ALL
    for name, service in services.items():
        assert re.search(r":v?\d+\.\d+", service["image"]), name
        assert int(service["mem_limit"]) > 0, name
        assert service["restart"] == "unless-stopped", name


@pytest.mark.parametrize("project", ["development", "production"])
def test_every_store_has_a_volume_and_a_health_check_that_the_service_waits_for(
    project: str, request: pytest.FixtureRequest
) -> None:
    services = request.getfixturevalue(project)["services"]
    for name in STORES:
        assert services[name]["volumes"][0]["type"] == "volume", name
        assert services[name]["healthcheck"]["test"], name
    for name in INSTANCES:
        assert {store: each["condition"] for store, each in services[name]["depends_on"].items()} == dict.fromkeys(
            STORES, "service_healthy"
        )


@pytest.mark.parametrize("project", ["development", "production"])
def test_the_service_may_do_no_more_than_it_needs(project: str, request: pytest.FixtureRequest) -> None:
    services = request.getfixturevalue(project)["services"]
    for name in INSTANCES:
        assert services[name]["read_only"] is True
        assert services[name]["cap_drop"] == ["ALL"]
        assert services[name]["security_opt"] == ["no-new-privileges:true"]


def test_the_memory_that_a_store_may_use_is_below_the_limit_of_its_container(production: dict[str, Any]) -> None:
    services = production["services"]
    heap = re.search(r"-Xmx(\d+)g", services["opensearch"]["environment"]["OPENSEARCH_JAVA_OPTS"])
    redis = re.search(r"--maxmemory (\d+)mb", " ".join(services["redis"]["command"]))
    memgraph = re.search(r"--memory-limit=(\d+)", " ".join(services["memgraph"]["command"]))
    assert heap
    assert redis
    assert memgraph
    assert int(heap[1]) * 2**30 <= int(services["opensearch"]["mem_limit"]) / 2
    assert int(redis[1]) * 2**20 <= int(services["redis"]["mem_limit"]) * 0.8
    assert int(memgraph[1]) * 2**20 <= int(services["memgraph"]["mem_limit"]) * 0.9


def test_in_development_no_port_is_open_to_other_machines(development: dict[str, Any]) -> None:
    ports = [port for service in development["services"].values() for port in service.get("ports", ())]
    assert len(ports) >= 8
    assert {port["host_ip"] for port in ports} == {"127.0.0.1"}


def test_in_production_only_the_proxy_is_open_to_other_machines(production: dict[str, Any]) -> None:
    services = production["services"]
    assert {name for name, each in services.items() if each.get("ports")} == {"haproxy", "prometheus", "grafana"}
    for name in ("prometheus", "grafana"):
        assert {port["host_ip"] for port in services[name]["ports"]} == {"127.0.0.1"}
    assert [port["published"] for port in services["haproxy"]["ports"]] == ["443"]
    assert production["networks"]["stores"]["internal"] is True
    for name in STORES:
        assert set(services[name]["networks"]) == {"stores"}


def test_in_production_passwords_are_files_and_in_no_environment(production: dict[str, Any]) -> None:
    for name, service in production["services"].items():
        for variable, value in service.get("environment", {}).items():
            is_secret = re.search(r"(?i)(password|key|secret)", variable)
            assert not is_secret or str(value).startswith(("/run/secrets/", "/data/")), name
    assert {each["source"] for each in production["services"]["trivium-a"]["secrets"]} == {"addresses"}
    assert all(secret["file"] for secret in production["secrets"].values())


def test_in_production_no_password_is_an_argument_and_redis_does_not_run_as_root(production: dict[str, Any]) -> None:
    (_, _, script) = production["services"]["redis"]["command"]
    assert "exec docker-entrypoint.sh redis-server" in script
    assert "--requirepass" not in script


def test_no_acknowledged_write_of_memgraph_waits_in_memory(production: dict[str, Any]) -> None:
    assert "--storage-wal-file-flush-every-n-tx=1" in production["services"]["memgraph"]["command"]


def test_the_variables_in_the_file_and_those_of_the_service_are_settings_and_name_ports_that_are_open(
    development: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    services = development["services"]
    named = dict(re.findall(r"export (TRIVIUM_\w+)=(\S+)", (ROOT / "compose" / "compose.yaml").read_text()))
    assert set(named) == {"TRIVIUM_VECTOR", "TRIVIUM_GRAPH", "TRIVIUM_KEYWORD"}
    for name, url in named.items():
        monkeypatch.setenv(name, url)
    sources = load().sources
    opened = {port["published"] for name in STORES for port in services[name]["ports"]}
    assert {url.rsplit(":", 1)[1] for url in (sources.vector, sources.graph, sources.keyword)} <= opened
    environment = services["trivium-a"]["environment"]
    for name, url in environment.items():
        if name != "TRIVIUM_KEYS_FILE":
            monkeypatch.setenv(name, url)
    settings = load()
    addresses = (settings.sources.vector, settings.sources.graph, settings.sources.keyword, settings.cache.url)
    assert {re.sub(r".*://(\w+):.*", r"\1", str(url)) for url in addresses} == STORES


def test_the_addresses_that_the_page_shows_are_settings(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "run-with-compose.md").read_text()
    shown = re.search(r"> compose/secrets/addresses <<.*?\n(.*?)\nEND", page, re.DOTALL)
    assert shown
    path = tmp_path / "addresses"
    path.write_text(shown[1])
    assert len(read_settings_file(path, "the page")) == 5


def test_the_files_that_are_mounted_exist(production: dict[str, Any]) -> None:
    mounted = [
        Path(volume["source"])
        for service in production["services"].values()
        for volume in service.get("volumes", ())
        if volume["type"] == "bind"
    ]
    assert len(mounted) >= 6
    assert [str(path) for path in mounted if not path.exists()] == []
