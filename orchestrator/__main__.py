"""``python -m orchestrator`` is ``trivium``."""

from orchestrator.cli.main import main

main()
