"""Which of two profiles users prefer, from what they did with responses that mix the hits of both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct
from scipy.stats import binomtest

from adapters.model.feedback import Feedback, ShownResponse

_PREFERRED = frozenset({"used", "useful"})


class Preference(Struct, frozen=True):
    """Two profiles, in alphabetical order, over the queries of which a hit was used.

    :param wins: queries of which more hits of ``profile`` were used; ``losses``: of ``other``; ``ties``: as many.
    :param p: how likely a difference as large is by chance (two-sided sign test without the ties).
    """

    profile: str
    other: str
    wins: int
    losses: int
    ties: int
    p: float


def preferences(recorded: Iterable[tuple[ShownResponse, Sequence[Feedback]]]) -> list[Preference]:
    """The preferences of a scope, one for each pair of profiles.

    A hit counts once for the profile that it is of, whatever is said of it, and however often. All responses to a query
    count as one, because they have the same draft: those to a frequent query are not independent.
    """
    more_used: dict[tuple[str, str], Counter[str]] = {}
    for response, feedback in recorded:
        used = {each.hit for each in feedback if each.kind in _PREFERRED}
        match sorted({profile for profile in response.profiles if profile is not None}):
            case [profile, other]:
                counts = Counter(response.profiles[hit] for hit in used)
                if counts[profile] or counts[other]:
                    by_query = more_used.setdefault((profile, other), Counter())
                    by_query[response.query_hash] += counts[profile] - counts[other]
    found = []
    for (profile, other), by_query in sorted(more_used.items()):
        signs = Counter((difference > 0) - (difference < 0) for difference in by_query.values())
        wins, losses = signs[1], signs[-1]
        p = float(binomtest(wins, wins + losses).pvalue) if wins + losses else 1.0
        found.append(Preference(profile, other, wins, losses, signs[0], p))
    return found
