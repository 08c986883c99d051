"""The engine that the embedded sources share: files, versions, documents, masks."""

from adapters.embedded.catalog import Catalog, Mask
from adapters.embedded.library import Library, Snapshot
from adapters.embedded.part import Change, Part

__all__ = ["Catalog", "Change", "Library", "Mask", "Part", "Snapshot"]
