"""The write log: the durable, ordered record of writes. ``port`` is the protocol, ``files`` keeps it in a folder."""

from orchestrator.indexing.log.files import FileWriteLog
from orchestrator.indexing.log.port import WriteLog
from orchestrator.indexing.log.write import Write

__all__ = ["FileWriteLog", "Write", "WriteLog"]
