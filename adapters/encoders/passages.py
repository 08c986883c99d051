"""Splits a text into passages of a number of tokens, at the largest unit that fits: blocks of Markdown, sentences,
words.
"""

from __future__ import annotations

import re

from semantic_text_splitter import MarkdownSplitter, TextSplitter
from tokenizers import Tokenizer

_OVERLAP = 10
"""A passage begins with the last tenth of the one before, if whole sentences or lines fit into that."""
_MAX_CHARS = 16
"""Characters for each token that a passage may have: a long word without a break is a single token that means nothing,
and is cut."""
_WORD = re.compile(r"[^\W_]")
AROUND = 20
"""Tokens before and after a passage that are encoded with it."""


class Splitter:
    """See :class:`adapters.ports.encoders.TextSplitter`.

    :param tokens: of a passage, at most.
    :param around: tokens on each side of a passage that are encoded with it.
    """

    def __init__(self, tokenizer: Tokenizer, tokens: int, around: int = AROUND) -> None:
        self._tokenizer = tokenizer
        self._tokens = tokens
        self._around = around
        overlap = tokens // _OVERLAP
        self._markdown = MarkdownSplitter.from_huggingface_tokenizer(tokenizer, tokens, overlap=overlap)
        self._plain = TextSplitter.from_huggingface_tokenizer(tokenizer, tokens, overlap=overlap)

    def fits(self, text: str) -> bool:
        """Takes a tenth of the time of :meth:`split`."""
        if len(text) > self._tokens * _MAX_CHARS:
            return False
        return len(self._tokenizer.encode_batch_fast([text], add_special_tokens=False)[0].ids) <= self._tokens

    def split(self, text: str, is_markdown: bool = True) -> list[tuple[int, int]]:
        """The passages that have a letter or a digit, without the white space around them."""
        if self.fits(text):
            start, end = len(text) - len(text.lstrip()), len(text.rstrip())
            return [(start, end)] if _WORD.search(text) else []
        longest = self._tokens * _MAX_CHARS
        splitter = self._markdown if is_markdown else self._plain
        return [
            (part, end)
            for start, passage in splitter.chunk_indices(text)
            for part in range(start, start + len(passage), longest)
            if _WORD.search(text, part, end := min(part + longest, start + len(passage)))
        ]

    def around(self, text: str, start: int, end: int) -> tuple[str, str]:
        """See :class:`adapters.ports.encoders.TextSplitter`."""
        characters = self._around * _MAX_CHARS
        before, after = text[max(0, start - characters) : start], text[end : end + characters]
        of_before, of_after = self._tokenizer.encode_batch([before, after], add_special_tokens=False)
        first = of_before.offsets[-self._around :][0][0] if of_before.offsets else 0
        last = of_after.offsets[: self._around][-1][1] if of_after.offsets else 0
        return before[first:].strip(), after[:last].strip()
