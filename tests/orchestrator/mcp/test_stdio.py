"""``trivium mcp`` with the official client: the own index, and a running service."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from orchestrator.bootstrap import open_service
from orchestrator.settings import load
from tests.orchestrator.generations.helpers import built, switched
from tests.orchestrator.served import Serve, environment

pytestmark = pytest.mark.anyio

TOOLS = [
    "hybrid_search",
    "memory_search",
    "get_document",
    "list_collections",
    "explain_search",
    "store_document",
    "delete_document",
]


@asynccontextmanager
async def started(python: str, env: dict[str, str], *options: str, mode: str = "auto") -> AsyncIterator[Client]:
    command = StdioServerParameters(command=python, args=["-m", "orchestrator", "mcp", *options], env=env)
    async with Client(stdio_client(command), mode=mode) as client:
        yield client


async def use(client: Client) -> None:
    """Call every tool, with its effect."""
    assert [tool.name for tool in (await client.list_tools()).tools] == TOOLS

    async def text(tool: str, **arguments: object) -> str:
        (content,) = (await client.call_tool(tool, arguments)).content
        assert content.type == "text"
        return content.text

    assert "Stored 'tea'" in await text("store_document", id="tea", text="She likes tea.", collection="memory")
    assert "She likes tea." in await text("memory_search", query="tea")
    assert "She likes tea." in await text("get_document", id="tea", collection="memory")
    assert "memory: 1 documents" in await text("list_collections")
    assert "Nothing found." in await text("hybrid_search", query="tea")
    assert "why: " in await text("explain_search", query="tea", include_memory=True)
    assert "unknown argument 'qery'" in await text("hybrid_search", qery="tea")
    assert "Deleted 'tea'" in await text("delete_document", id="tea", collection="memory")
    assert "Nothing found." in await text("memory_search", query="tea")


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_own_index(python: str, tmp_path: Path, model_dir: Path, mode: str) -> None:
    async with started(python, environment(data_dir=tmp_path / "data", model_dir=model_dir), mode=mode) as client:
        await use(client)


async def test_the_tools_follow_the_live_generation(python: str, tmp_path: Path, model_dir: Path) -> None:
    env = environment(data_dir=tmp_path / "data", model_dir=model_dir, refresh_interval_ms=10)
    settings = load(data_dir=tmp_path / "data", model_dir=model_dir)
    async with started(python, env) as client:
        await client.call_tool("store_document", {"id": "tea", "text": "She likes tea."})
        generation = await built(settings)
        await switched(settings, generation.version)
        with anyio.fail_after(60):
            while (await client.call_tool("store_document", {"id": "new", "text": "A volcano."})).is_error:  # noqa: ASYNC110
                await anyio.sleep(0.05)  # nothing reports that it has opened the new generation
        (content,) = (await client.call_tool("hybrid_search", {"query": "volcano"})).content
        assert content.type == "text"
        assert "A volcano." in content.text
    async with open_service(settings) as service:
        assert await service.count() == 2


async def test_a_running_service(python: str, serve: Serve, tmp_path: Path, model_dir: Path) -> None:
    env = environment(data_dir=tmp_path / "data", model_dir=model_dir)
    with serve(env) as (_, address):
        async with started(python, env, "--url", address) as client:
            await use(client)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--url", "http://127.0.0.1:9"), "http://127.0.0.1:9 cannot be reached"),
        (("--url", "127.0.0.1:9"), "127.0.0.1:9 cannot be reached"),
        (("--key", "x"), "--key needs the file of API keys"),
        (("--key", "x", "--tenant", "t"), "a key has a tenant already"),
    ],
)
def test_a_start_that_fails_says_why_in_one_line(
    python: str, tmp_path: Path, model_dir: Path, options: tuple[str, ...], message: str
) -> None:
    command = [python, "-m", "orchestrator", "mcp", *options]
    env = environment(data_dir=tmp_path / "data", model_dir=model_dir)
    run = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert run.returncode in {1, 2}
    assert message in run.stderr
    assert "Traceback" not in run.stderr
    assert run.stdout == ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_with_a_signal(python: str, tmp_path: Path, model_dir: Path, number: signal.Signals) -> None:
    """Although a thread waits for standard input."""
    env = environment(data_dir=tmp_path / "data", model_dir=model_dir)
    command = [python, "-m", "orchestrator", "mcp"]
    with subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        process.stdin.flush()
        assert process.stdout.readline()
        process.send_signal(number)
        assert process.wait(10) == -number
