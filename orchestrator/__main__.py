"""``python -m orchestrator`` runs ``trivium``."""

from orchestrator.cli.main import main

main()
