"""When a request is repeated: only where that is safe, within the deadline and within a budget."""

from __future__ import annotations

import random
from dataclasses import dataclass
from threading import Lock

from orchestrator.client.errors import Overloaded, TriviumError, Unavailable, Unreachable

_REPEATED = (Unreachable, Overloaded, Unavailable)


@dataclass(frozen=True, slots=True)
class Retries:
    """How often and when requests are repeated.

    Every operation of the API may be repeated: searches and reads change nothing, and after a second write of the same
    documents, or a second delete, the index is as after the first. Only ``deleted`` of a repeated delete may be false
    because the first attempt deleted the document.

    :param attempts: of one request, the first one included; 1 for no repetition.
    :param first_delay_s: mean of the wait before the second attempt; it doubles with each attempt. The waits are
        random, so that clients do not return together (Brooker: "Exponential Backoff And Jitter", AWS, 2015).
    :param ratio: repetitions for each request in the long run: when many fail, repeating makes it worse.
    """

    attempts: int = 4
    first_delay_s: float = 0.1
    ratio: float = 0.2

    def __post_init__(self) -> None:
        if not (self.attempts >= 1 and self.first_delay_s >= 0 and self.ratio >= 0):
            raise ValueError(f"{self}: attempts is at least 1, first_delay_s and ratio are at least 0")


DEFAULT = Retries()


class RetryBudget:
    """The repetitions that a client may still make. May be used by several threads."""

    _BURST = 10.0
    """Repetitions that are saved up at most."""

    def __init__(self, retries: Retries) -> None:
        self._retries = retries
        self._tokens = self._BURST
        self._lock = Lock()

    def begin(self) -> None:
        """Count a request."""
        with self._lock:
            self._tokens = min(self._BURST, self._tokens + self._retries.ratio)

    def delay_s(self, error: TriviumError, attempt: int, remaining_s: float) -> float | None:
        """Seconds to wait before the next attempt; ``None`` if there is to be none.

        :param attempt: that failed, from 1.
        :param remaining_s: until the deadline of the request.
        """
        if attempt >= self._retries.attempts or not isinstance(error, _REPEATED):
            return None
        longest_s = 2 * self._retries.first_delay_s * 2 ** (attempt - 1)
        delay_s = random.uniform(0, longest_s)  # noqa: S311  # not for security
        if isinstance(error, Overloaded | Unavailable) and error.retry_after_s is not None:
            delay_s += error.retry_after_s
        if delay_s >= remaining_s:
            return None
        with self._lock:
            if self._tokens < 1:
                return None
            self._tokens -= 1
        return delay_s
