"""What the client needs beside the packages of the service."""

from __future__ import annotations

try:
    import httpx2
except ImportError as error:
    raise ImportError("httpx2 is not installed: pip install 'trivium[client]'") from error

__all__ = ["httpx2"]
