"""The conformance suite and the inspector of the protocol's authors, which npm has."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.orchestrator.served import Serve, environment

HERE = Path(__file__).parent
PACKAGES = (
    "node@22.23.3",
    "@modelcontextprotocol/conformance@0.1.16",
    "@modelcontextprotocol/inspector@0.15.0",
)
PASSED = {"server-initialize", "ping", "tools-list", "dns-rebinding-protection"}


@pytest.fixture(scope="module")
def node(program: Callable[[str, str], str], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Runs a program of the packages: its output."""
    npm = program("npm", "the package npm of Debian")
    folder = tmp_path_factory.mktemp("node")
    (folder / "package.json").write_text("{}")
    subprocess.run([npm, "install", "--no-audit", "--no-fund", *PACKAGES], cwd=folder, check=True, capture_output=True)
    modules = folder / "node_modules"
    path = f"{modules}/node/bin:{modules}/.bin:{os.environ['PATH']}"

    def run(*command: str) -> str:
        env = {**os.environ, "PATH": path}
        ended = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=300, check=False)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    return run


@pytest.fixture(scope="module")
def address(serve: Serve, tmp_path_factory: pytest.TempPathFactory, model_dir: Path) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("data")
    with serve(environment(data_dir=folder, model_dir=model_dir)) as (_, url):
        yield f"{url}/mcp"


def test_the_conformance_suite_passes_where_it_applies(node: Callable[..., str], address: str) -> None:
    output = node("conformance", "server", "--url", address, "--expected-failures", str(HERE / "expected-failures.yml"))
    passed = {line.split()[1].rstrip(":") for line in output.splitlines() if line.startswith("✓")}
    assert passed >= PASSED, output


def test_the_inspector_lists_and_calls_the_tools(node: Callable[..., str], address: str) -> None:
    inspect = ("mcp-inspector", "--cli", address, "--transport", "http", "--method")
    tools = json.loads(node(*inspect, "tools/list"))["tools"]
    assert [tool["name"] for tool in tools][:2] == ["hybrid_search", "memory_search"]
    arguments = ("id=a", "text=A document about sailing.", "collection=notes")
    stored = node(*inspect, "tools/call", "--tool-name", "store_document", *_arguments(*arguments))
    assert "Stored 'a'" in stored
    found = node(*inspect, "tools/call", "--tool-name", "hybrid_search", *_arguments("query=sailing", "limit=1"))
    assert "id: a" in json.loads(found)["content"][0]["text"]


def _arguments(*pairs: str) -> list[str]:
    return [part for pair in pairs for part in ("--tool-arg", pair)]
