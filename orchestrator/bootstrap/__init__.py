"""Opens a configured service. The only folder that chooses implementations of ports.

Here: which adapter belongs to which setting, and how everything is connected. Not here: the behaviour of the parts.
"""

from orchestrator.bootstrap.service import open_service
from orchestrator.bootstrap.sources import SourceBinding

__all__ = ["SourceBinding", "open_service"]
