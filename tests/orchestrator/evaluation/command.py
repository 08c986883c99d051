"""Running a command in this process."""

from __future__ import annotations

from typer.testing import CliRunner

from orchestrator.cli.main import main


def run(*arguments: object, stdin: str = "") -> tuple[int, str, str]:
    """Exit code, output and errors of ``trivium`` with these arguments."""
    result = CliRunner().invoke(main, [str(each) for each in arguments], input=stdin, catch_exceptions=False)
    return result.exit_code, result.stdout, result.stderr
