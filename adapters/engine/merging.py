"""The choice of the segments that a write merges."""

from __future__ import annotations

from collections.abc import Sequence

from adapters.engine.columns import Flags


def count_unmerged(dead: Sequence[Flags], incoming: int) -> int:
    """The number of first segments that stay unchanged; the later ones are merged with the incoming documents.

    The logarithmic method (Bentley, Saxe 1980): a segment is merged when the segments after it have grown to half its
    size, so there are O(log n) segments and a document is written O(log n) times. A segment of which more than half is
    deleted is merged too.

    :param dead: by segment and row, whether the row is deleted.
    """
    unmerged = len(dead)
    for index, flags in enumerate(dead):
        if 2 * int(flags.sum()) > len(flags):
            unmerged = index
            break
    after = incoming + sum(int((~flags).sum()) for flags in dead[unmerged:])
    while unmerged and int((~dead[unmerged - 1]).sum()) <= 2 * after:
        unmerged -= 1
        after += int((~dead[unmerged]).sum())
    return unmerged
