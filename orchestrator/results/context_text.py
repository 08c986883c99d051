"""The hits of a page as one text for the prompt of a language model, and their texts within a number of tokens."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from orchestrator.results.hit_fields import with_text
from orchestrator.results.tokens import Measure
from orchestrator.schema.search import ContextText, SearchHit

_MIN_CHARS = 80
"""Of the text of a passage: less is not worth its citation."""
_CITATION = re.compile(r"(?:^|(?<=[\r\v\f\x85\u2028\u2029]))\[(?=\s*\d+\s*\])", re.MULTILINE)
"""What begins a passage. A line of a document that begins so is indented by a space."""


def as_context(hits: Sequence[SearchHit], max_tokens: int, measure: Measure) -> ContextText:
    """The passages of the hits, best first, numbered from 1 in the order of the hits, with at most ``max_tokens``.

    The first passage that has no room is cut, and the ones after it are left out. Blocks.
    """
    blocks: list[str] = []
    used, is_cut = 0, False
    for head, text in _passages(hits):
        block = f"{head}\n{text}"
        size = measure.tokens(block)
        if used + size > max_tokens:
            is_cut = True
            block = measure.cut(block, max_tokens - used)
            if len(block) < len(head) + _MIN_CHARS:
                break
        blocks.append(block)
        if is_cut:
            break
        used += size
    text = "\n\n".join(blocks)
    return ContextText(text, measure.tokens(text) if text else 0, len(blocks), is_cut)


def within_tokens(hits: Iterable[SearchHit], max_tokens: int, measure: Measure) -> tuple[SearchHit, ...]:
    """The hits with at most ``max_tokens`` of text together: the first texts are whole, the one after them is cut, and
    the others are empty. Blocks.
    """
    limited = []
    for hit in hits:
        text = measure.cut(hit.text, max_tokens)
        is_whole = len(text) == len(hit.text)
        limited.append(hit if is_whole else with_text(hit, len(text)))
        if not is_whole:
            max_tokens = 0
        elif text:
            max_tokens -= measure.tokens(text)
    return tuple(limited)


def _passages(hits: Iterable[SearchHit]) -> Iterator[tuple[str, str]]:
    """The head of each passage, and its text."""
    for number, hit in enumerate(hits, start=1):
        names = " > ".join(filter(None, dict.fromkeys((hit.title, *hit.heading_path))))
        lines = (" ".join(names.split()), hit.url or f"{hit.collection}/{hit.id}")
        head = "\n".join(filter(None, lines))
        yield f"[{number}] {head}", _CITATION.sub(" [", hit.text.strip())
