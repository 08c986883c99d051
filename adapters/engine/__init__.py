"""The common engine of the embedded sources.

Here: segments, commits, filterable columns, documents by id. Not here: any source.
"""

from adapters.engine.component import Delta, IndexComponent
from adapters.engine.index import EmbeddedIndex, pinned_view
from adapters.engine.segment_set import Mask, SegmentSet
from adapters.engine.view import IndexView

__all__ = ["Delta", "EmbeddedIndex", "IndexComponent", "IndexView", "Mask", "SegmentSet", "pinned_view"]
