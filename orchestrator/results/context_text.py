"""The hits of a page as one text for the prompt of a language model, and their texts within a number of tokens."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from orchestrator.results.hit_fields import with_text
from orchestrator.results.lines import one_line
from orchestrator.results.tokens import Measure
from orchestrator.schema.hits import ContextText, SearchHit

_MIN_CHARS = 80
"""Of the text of a passage that is cut, but the first: less is not worth its citation."""
_NAME_CHARS, _PLACE_CHARS = 160, 400
"""Of the title and the headings of a passage, and of its url or its collection and id."""
_INVISIBLE = r"[\u00ad\u200b-\u200f\u2060\ufeff]*"
_CITATION = re.compile(rf"(?:^|(?<=[\r\v\f\x85\u2028\u2029]))(?={_INVISIBLE}\[\s*\d+\s*\])", re.MULTILINE)
"""Where a line of a document looks like the beginning of a passage: it is indented by a space."""


def as_context(hits: Sequence[SearchHit], max_tokens: int, measure: Measure) -> ContextText:
    """The passages of the hits, best first, numbered from 1 in the order of the hits, with at most ``max_tokens``.

    The first passage that has no room is cut, and the ones after it are left out. Blocks.
    """
    blocks: list[str] = []
    used, is_cut = 0, False
    for head, text in _passages(hits, measure.max_chars(max_tokens)):
        whole = f"{head}\n{text}"
        block = measure.cut(whole, max_tokens - used)
        is_cut = len(block) < len(whole)
        if is_cut and blocks and len(block) < len(head) + _MIN_CHARS:
            break
        blocks.append(block)
        if is_cut:
            break
        used += measure.tokens(block)
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


def _passages(hits: Iterable[SearchHit], max_chars: int) -> Iterator[tuple[str, str]]:
    """The head of each passage, and the first characters of its text."""
    for number, hit in enumerate(hits, start=1):
        names = " > ".join(filter(None, dict.fromkeys((hit.title, *hit.heading_path))))
        is_short = hit.url is not None and len(hit.url) <= _PLACE_CHARS
        place = hit.url if hit.url and is_short else f"{hit.collection}/{hit.id}"
        head = "\n".join(filter(None, (one_line(names, _NAME_CHARS), one_line(place, _PLACE_CHARS))))
        yield f"[{number}] {head}", _CITATION.sub(" ", hit.text.strip()[: max_chars + 1])
