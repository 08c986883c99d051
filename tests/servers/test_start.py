"""The real servers of the tests: they respond, listen on this machine only, and stop with their parent."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from redis import Redis

from adapters.graph.bolt import Bolt
from adapters.keyword import opensearch_client
from adapters.servers.server import GRAPH_SCHEMES, KEYWORD_SCHEMES, Address, Limits
from tests.servers import start
from tests.servers.start import free_port

pytestmark = [pytest.mark.anyio, pytest.mark.server]
LIMITS = Limits(read_timeout_s=20.0, write_timeout_s=20.0, max_connections=2)


def test_redis_responds(server_url: Callable[[str], str]) -> None:
    with Redis.from_url(server_url("redis")) as client:
        assert client.ping()


async def test_opensearch_responds(server_url: Callable[[str], str]) -> None:
    client = opensearch_client.connect(Address.parse(server_url("opensearch"), KEYWORD_SCHEMES), LIMITS)
    assert (await client.info())["version"]["distribution"] == "opensearch"
    await client.close()


async def test_the_bolt_server_responds(server_url: Callable[[str], str]) -> None:
    bolt = Bolt(Address.parse(server_url("bolt"), GRAPH_SCHEMES), LIMITS)
    assert await bolt.read("RETURN 1 AS one", {}) == [{"one": 1}]
    await bolt.close()


@pytest.mark.parametrize("server", ["redis", "opensearch", "bolt"])
def test_no_other_machine_can_connect(server_url: Callable[[str], str], server: str) -> None:
    if os.environ.get(f"TRIVIUM_TEST_{server.upper()}_URL"):
        pytest.skip("this server was not started by the tests")
    port = int(server_url(server).rsplit(":", 1)[1])
    own = socket.gethostbyname(socket.gethostname())
    if own.startswith("127."):
        own = "127.0.0.2"
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) == 0
    with socket.socket() as probe:
        assert probe.connect_ex((own, port)) != 0


def test_a_java_server_stops_when_its_parent_is_killed(tmp_path: Path, server_url: Callable[[str], str]) -> None:
    server_url("bolt")  # skips the test if it cannot be started here
    code = (
        "import sys, time, pathlib\n"
        "from tests.servers.start import Java\n"
        "server = Java('bolt', pathlib.Path(sys.argv[1]))\n"
        "server.start()\n"
        "print(server.url, flush=True)\n"
        "time.sleep(600)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(start.__file__).parents[2]) as parent:
        assert parent.stdout is not None
        port = int(parent.stdout.readline().rsplit(":", 1)[1])
        parent.kill()
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                return
        time.sleep(0.1)
    pytest.fail("it is still listening after a minute")


def test_a_missing_program_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    for server in (start.opensearch, start.bolt, start.redis):
        with pytest.raises(start.NotAvailable, match=r"there is no .* on this machine"), server():
            pass
    assert free_port() != free_port()
