"""What can be set, and how it is read."""

from orchestrator.settings.fields import EMBEDDED, MEMORY, Settings
from orchestrator.settings.read import FILE, SettingsError, read

__all__ = ["EMBEDDED", "FILE", "MEMORY", "Settings", "SettingsError", "read"]
