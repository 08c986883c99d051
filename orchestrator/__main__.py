"""``python -m orchestrator`` is ``trivium``."""

from orchestrator.cli import main

main()
