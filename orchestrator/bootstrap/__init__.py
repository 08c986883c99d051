"""Opens a service as the settings say. The only room that names implementations of ports.

Here: which adapter belongs to which setting, and how everything is connected. Not here: what any of it does.
"""

from orchestrator.bootstrap.assembly import open_service
from orchestrator.bootstrap.sources import SourceBinding

__all__ = ["SourceBinding", "open_service"]
