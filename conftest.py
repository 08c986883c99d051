"""The examples in README.md and docs/architecture.md run as tests."""

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

pytest_collect_file = Sybil(parsers=[PythonCodeBlockParser()], patterns=["README.md", "architecture.md"]).pytest()
