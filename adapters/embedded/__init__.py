"""The common engine of the embedded sources.

Here: segments, commits, filterable columns, documents by id. Not here: any source.
"""

from adapters.embedded.component import Delta, IndexComponent
from adapters.embedded.index import EmbeddedIndex, pinned_view
from adapters.embedded.segment_set import Mask, SegmentSet
from adapters.embedded.view import IndexView

__all__ = ["Delta", "EmbeddedIndex", "IndexComponent", "IndexView", "Mask", "SegmentSet", "pinned_view"]
