"""``orchestrator/http/protocol.py`` overrides methods of uvicorn that are no public interface.

These tests fail when one of them is renamed, removed, or called in another way: then the subclass has to be compared
with the new uvicorn.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import textwrap
import tomllib
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import pytest
from packaging.requirements import Requirement
from starlette.types import Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from orchestrator.http import protocol
from orchestrator.http.protocol import LimitedHttpProtocol

PYPROJECT = Path(__file__).parents[3] / "pyproject.toml"

OVERRIDDEN = {
    "__init__": ["self", "config", "server_state", "app_state", "_loop"],
    "connection_made": ["self", "transport"],
    "connection_lost": ["self", "exc"],
    "pause_writing": ["self"],
    "resume_writing": ["self"],
    "data_received": ["self", "data"],
    "on_message_begin": ["self"],
    "on_headers_complete": ["self"],
    "on_body": ["self", "body"],
    "on_message_complete": ["self"],
    "_start_asgi_task": ["self", "cycle", "app"],
    "send_400_response": ["self", "msg"],
}
"""Methods of uvicorn's protocol that are overridden, with their parameters in uvicorn."""

CALLED_BY_UVICORN = {
    "data_received": {"send_400_response"},
    "on_headers_complete": {"_start_asgi_task"},
    "on_response_complete": {"_start_asgi_task"},
}
"""By method of uvicorn's protocol, the overridden methods that it has to call for the limits to work."""


def attributes_of(source: object, owner: str) -> set[str]:
    """Names of the attributes of a variable, or of an attribute of any object, of the name ``owner`` in the source."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(source)))  # type: ignore[arg-type]
    attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    return {
        node.attr
        for node in attributes
        if (isinstance(node.value, ast.Name) and node.value.id == owner)
        or (isinstance(node.value, ast.Attribute) and node.value.attr == owner)
    }


async def _app(scope: Scope, receive: Receive, send: Send) -> None:
    raise AssertionError("no request is sent")


def instance() -> HttpToolsProtocol:
    """uvicorn's own protocol before its first connection, configured as ``trivium serve`` does."""
    config = Config(_app, interface="asgi3", ws="none", log_config=None, proxy_headers=False)
    loop = asyncio.new_event_loop()
    try:
        return HttpToolsProtocol(config, ServerState(), {}, loop)
    finally:
        loop.close()


def test_the_installed_uvicorn_has_the_pinned_minor_version() -> None:
    requirements = map(Requirement, tomllib.loads(PYPROJECT.read_text("utf-8"))["project"]["dependencies"])
    (uvicorn,) = [each for each in requirements if each.name == "uvicorn"]
    (specifier,) = uvicorn.specifier
    assert (specifier.operator, specifier.version.count(".")) == ("==", 2)
    assert specifier.version.endswith(".*"), "the minor version is pinned, and nothing below it"
    assert uvicorn.specifier.contains(version("uvicorn"))


@pytest.mark.parametrize("name", OVERRIDDEN)
def test_an_overridden_method_has_the_parameters_that_are_relied_on(name: str) -> None:
    assert list(inspect.signature(vars(HttpToolsProtocol)[name]).parameters) == OVERRIDDEN[name]
    assert inspect.iscoroutinefunction(vars(HttpToolsProtocol)[name]) is False


def test_the_table_has_every_overridden_method() -> None:
    """Also fails if uvicorn renames one: then the subclass has a method that nothing calls."""
    methods = {name for name, value in vars(LimitedHttpProtocol).items() if inspect.isfunction(value)}
    assert methods & vars(HttpToolsProtocol).keys() == OVERRIDDEN.keys()


@pytest.mark.parametrize("name", CALLED_BY_UVICORN)
def test_uvicorn_calls_the_overridden_methods_where_it_did(name: str) -> None:
    assert CALLED_BY_UVICORN[name] <= attributes_of(vars(HttpToolsProtocol)[name], "self")


def test_new_methods_and_attributes_do_not_shadow_any_of_uvicorn() -> None:
    own = {name for name in vars(LimitedHttpProtocol) if not name.startswith("__")} - OVERRIDDEN.keys()
    assert own & (set(dir(HttpToolsProtocol)) | vars(instance()).keys()) == set()


def test_the_application_of_the_configuration_is_ours_and_not_wrapped() -> None:
    """The limits of connections are read from its state."""
    assert instance().config.loaded_app is _app


def test_the_protocol_has_every_attribute_that_the_subclass_reads() -> None:
    read = attributes_of(LimitedHttpProtocol, "self")
    own = set(vars(LimitedHttpProtocol)) | {"_limits"}
    set_while_parsing = attributes_of(HttpToolsProtocol.on_message_begin, "self")
    assert {"flow", "connections", "transport", "loop", "cycle", "pipeline", "headers", "url"} <= read
    assert read - own - vars(instance()).keys() - set_while_parsing == set()


def test_a_request_cycle_has_every_attribute_that_the_subclass_uses() -> None:
    used = attributes_of(protocol, "cycle") | attributes_of(protocol, "_last_cycle")
    assert {"response_complete", "response_started", "more_body", "keep_alive", "disconnected", "transport"} <= used
    assert used <= attributes_of(RequestResponseCycle.__init__, "self")


def test_a_request_cycle_uses_its_transport_only_as_the_substitute_allows() -> None:
    """A request writes to a substitute that discards unread data before it closes the connection."""
    substitute = protocol._ClosingTransport(SimpleNamespace(write=None, is_closing=None), lambda: None)  # type: ignore[arg-type]
    used = attributes_of(RequestResponseCycle, "transport")
    assert {"write", "close"} <= used <= vars(substitute).keys()


def test_a_request_cycle_waits_for_its_body_on_the_event_that_is_set_when_it_is_abandoned() -> None:
    receive = attributes_of(RequestResponseCycle.receive, "self")
    assert {"message_event", "disconnected", "response_complete"} <= receive
    assert "disconnected" in attributes_of(RequestResponseCycle.send, "self")


def test_flow_control_pauses_and_resumes_reading_as_is_relied_on() -> None:
    events: list[str] = []
    transport = SimpleNamespace(
        pause_reading=lambda: events.append("pause"), resume_reading=lambda: events.append("resume")
    )
    flow = FlowControl(transport)  # type: ignore[arg-type]
    assert flow.read_paused is False
    flow.pause_reading()
    flow.pause_reading()
    assert (flow.read_paused, events) == (True, ["pause"])
    flow.resume_reading()
    assert (flow.read_paused, events) == (False, ["pause", "resume"])


def test_the_observed_flow_control_reports_each_change_once() -> None:
    events: list[str] = []
    transport = SimpleNamespace(pause_reading=lambda: None, resume_reading=lambda: None)
    flow = protocol._ObservedFlowControl(
        transport,  # type: ignore[arg-type]
        lambda: events.append("paused"),
        lambda: events.append("resumed"),
    )
    flow.resume_reading()
    for _ in range(2):
        flow.pause_reading()
    for _ in range(2):
        flow.resume_reading()
    assert events == ["paused", "resumed"]
