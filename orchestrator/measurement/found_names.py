"""The names that documents mention, as far as a sample of them shows: what an operator reads to see rubbish."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from adapters.model.document import Record

_MAX_EXAMPLES = 8
_MAX_CHARS = 40


def describe_names(records: Sequence[Record]) -> str:
    """How many of these documents mention a name, where the names are from, and the most frequent ones."""
    named = [record for record in records if record.entities]
    listed = sum(record.document.entities is not None for record in named)
    counts = Counter(name for record in named for name in dict.fromkeys(record.entities))
    examples = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:_MAX_EXAMPLES]
    shown = ", ".join(f"{name[:_MAX_CHARS]!r} in {count}" for name, count in examples)
    share = f"{len(named) / len(records):.0%} of {len(records)} sampled documents mention a name"
    return f"{share} ({listed} list them): {shown}" if named else share
