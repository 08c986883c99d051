"""Splits a text into passages of a number of tokens, at the largest unit that fits: blocks of Markdown, sentences,
words.
"""

from __future__ import annotations

from semantic_text_splitter import MarkdownSplitter
from tokenizers import Tokenizer

_OVERLAP = 10
"""A passage begins with the last tenth of the one before, if whole sentences or lines fit into that."""
_MAX_CHARS = 16
"""Characters for each token that a passage may have: a long word without a break is a single token that means nothing,
and is cut."""


class Splitter:
    """See :class:`adapters.ports.encoders.TextSplitter`.

    :param tokens: of a passage, at most.
    """

    def __init__(self, tokenizer: Tokenizer, tokens: int) -> None:
        self._tokenizer = tokenizer
        self._tokens = tokens
        self._markdown = MarkdownSplitter.from_huggingface_tokenizer(tokenizer, tokens, overlap=tokens // _OVERLAP)

    def fits(self, text: str) -> bool:
        """Takes a tenth of the time of :meth:`split`."""
        if len(text) > self._tokens * _MAX_CHARS:
            return False
        return len(self._tokenizer.encode_batch_fast([text], add_special_tokens=False)[0].ids) <= self._tokens

    def split(self, text: str) -> list[tuple[int, int]]:
        """The passages without the white space around them."""
        if self.fits(text):
            start, end = len(text) - len(text.lstrip()), len(text.rstrip())
            return [(start, end)] if start < end else []
        longest = self._tokens * _MAX_CHARS
        return [
            (part, min(part + longest, start + len(passage)))
            for start, passage in self._markdown.chunk_indices(text)
            for part in range(start, start + len(passage), longest)
        ]
