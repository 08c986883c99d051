"""The settings: names, types, defaults, and how they are read.

Here: names, types, units, ranges, defaults and descriptions. Not here: what a setting does. ``python -m
docs.settings_table`` prints the tables of ``docs/reference/settings.md`` from these classes.
"""

from orchestrator.settings.backends import EMBEDDED, MEMORY
from orchestrator.settings.groups import Settings, setting_fields
from orchestrator.settings.loading import FILE_VARIABLE, SettingsError, load

__all__ = ["EMBEDDED", "FILE_VARIABLE", "MEMORY", "Settings", "SettingsError", "load", "setting_fields"]
