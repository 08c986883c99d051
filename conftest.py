"""The examples in README.md, docs/architecture.md and docs/reference/python.md run as tests."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack, chdir
from typing import Any

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser


def _in_a_new_folder(namespace: dict[str, Any]) -> None:
    namespace["folder"] = stack = ExitStack()
    stack.enter_context(chdir(stack.enter_context(tempfile.TemporaryDirectory())))


def _leave(namespace: dict[str, Any]) -> None:
    namespace["folder"].close()


pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser()],
    patterns=["README.md", "architecture.md", "python.md"],
    setup=_in_a_new_folder,
    teardown=_leave,
).pytest()
