"""The length of texts in tokens, counted on the text that is sent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, takewhile

from adapters.ports.encoders import TokenEnds

_CHARS_PER_TOKEN = 8
"""A token counts at least an eighth of its characters: a word of any length may be one unknown token."""
_SPECIAL_TOKENS = 2
"""[CLS] and [SEP], which count."""
_BACK_CHARS = 200
"""A text is cut at a space if there is one in so many characters before the limit."""


@dataclass(frozen=True, slots=True)
class Measure:
    """Counts tokens. Takes 1 µs for each, and holds the GIL for a fifth of that: call it off the event loop.

    :param token_ends: where each token of a text ends.
    """

    token_ends: TokenEnds

    def tokens(self, text: str) -> int:
        """The tokens of a text."""
        return _SPECIAL_TOKENS + max(len(self.token_ends(text)), -(-len(text) // _CHARS_PER_TOKEN))

    def max_chars(self, max_tokens: int) -> int:
        """The length in characters that no text of so many tokens exceeds."""
        return max_tokens * _CHARS_PER_TOKEN

    def cut(self, text: str, max_tokens: int) -> str:
        """The beginning of a text that has at most so many tokens, if possible as whole words."""
        room = max_tokens - _SPECIAL_TOKENS
        if room <= 0:
            return ""
        beginning = text[: room * _CHARS_PER_TOKEN]
        ends = self.token_ends(beginning)
        end = len(beginning) if len(ends) <= room else ends[room - 1]
        if end == len(text):
            return text
        space = max(beginning.rfind(" ", max(0, end - _BACK_CHARS), end), beginning.rfind("\n", 0, end))
        cut = beginning[: space if space >= end - _BACK_CHARS and space > 0 else end]
        return cut.rstrip() or cut

    def fitted(
        self, head: str, blocks: Sequence[str], max_tokens: int, on_cut: Callable[[int, int], str]
    ) -> tuple[str, int]:
        """Head and blocks as one text, without the last blocks if it would be too long, and the number of blocks in it.

        :param on_cut: of the number of blocks that are left, and the tokens of the whole text: what to say then.
        """
        whole = "\n\n".join((head, *blocks))
        needed = self.tokens(whole)
        if needed <= max_tokens:
            return whole, len(blocks)
        room = max_tokens - self.tokens(f"{head}\n\n{on_cut(len(blocks), needed)}")
        sizes = accumulate(map(self.tokens, blocks))  # each with its special tokens, so that no fewer than these fit
        fit = sum(1 for size in takewhile(lambda size: size <= room + _SPECIAL_TOKENS * len(blocks), sizes))
        for kept in range(min(fit, len(blocks) - 1), -1, -1):
            text = "\n\n".join((head, *blocks[:kept], on_cut(kept, needed)))
            if self.tokens(text) <= max_tokens:
                return text, kept
        return self.cut(f"{on_cut(0, needed)}\n\n{head}", max_tokens), 0
