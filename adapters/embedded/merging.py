"""Which segments a write leaves as they are."""

from __future__ import annotations

from collections.abc import Sequence

from adapters.embedded.columns import Flags
from adapters.embedded.segment import Segment


def worth_keeping(segments: Sequence[Segment], dead: Sequence[Flags], incoming: int) -> int:
    """How many of the first segments stay as they are; the later ones are merged with what comes in.

    The logarithmic method (Bentley, Saxe 1980): a segment is merged when what comes after it has grown to half
    its size, so there are O(log n) segments and a document is written O(log n) times. A segment that is more
    than half dead is merged too.
    """
    kept = len(segments)
    for index, flags in enumerate(dead):
        if 2 * int(flags.sum()) > len(flags):
            kept = index
            break
    after = incoming + sum(int((~flags).sum()) for flags in dead[kept:])
    while kept and int((~dead[kept - 1]).sum()) <= 2 * after:
        kept -= 1
        after += int((~dead[kept]).sum())
    return kept
