"""The engine that the embedded sources share: files, versions, documents, masks."""

from adapters.embedded.catalog import Catalog, Mask
from adapters.embedded.library import Change, Library, Part, Snapshot

__all__ = ["Catalog", "Change", "Library", "Mask", "Part", "Snapshot"]
