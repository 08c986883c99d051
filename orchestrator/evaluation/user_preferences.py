"""Which of two profiles users prefer, from what they did with responses that mix the hits of both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct
from scipy.stats import binomtest

from adapters.model.feedback import Feedback, ShownResponse

_PREFERRED = frozenset({"used", "useful"})


class Preference(Struct, frozen=True):
    """Two profiles, in alphabetical order, over the responses of which a hit was used.

    :param wins: responses of which more hits of ``profile`` were used; ``losses``: of ``other``; ``ties``: as many.
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

    A hit counts once for the profile that it is of, whatever is said of it, and however often. Each page of a query is
    a response of its own. A response counts if the profile of each of its two rankings is on it.
    """
    outcomes: dict[tuple[str, str], Counter[int]] = {}
    for response, feedback in recorded:
        used = {each.hit for each in feedback if each.kind in _PREFERRED}
        match sorted({profile for profile in response.profiles if profile is not None}):
            case [profile, other]:
                counts = Counter(response.profiles[hit] for hit in used)
                difference = counts[profile] - counts[other]
                if counts[profile] or counts[other]:
                    outcomes.setdefault((profile, other), Counter())[(difference > 0) - (difference < 0)] += 1
    found = []
    for (profile, other), counted in sorted(outcomes.items()):
        wins, losses = counted[1], counted[-1]
        p = float(binomtest(wins, wins + losses).pvalue) if wins + losses else 1.0
        found.append(Preference(profile, other, wins, losses, counted[0], p))
    return found
