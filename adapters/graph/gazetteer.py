"""The names of the files of a folder, and where a text mentions them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from adapters.graph.names import MAX_WORDS, has_only_stop_words, normalize, words

_WORD = re.compile(r"[\w.+#-]*\w")
_MIN_CHARS = 3


class Gazetteer:
    """Finds names in texts: those of several words in any case; of the others only those that are no ordinary words,
    such as ``useEffect`` or ``HTTP2``, in their own case. Capitalised names are found by the rules of extraction, too.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._phrases: dict[str, str] = {}
        self._longest: dict[str, int] = {}
        self._words: set[str] = set()
        for name in sorted(set(names)):
            in_name = normalize(name).split()
            if 1 < len(in_name) <= MAX_WORDS and not has_only_stop_words(" ".join(in_name)):
                self._phrases.setdefault(" ".join(in_name), name)
                self._longest[in_name[0]] = max(self._longest.get(in_name[0], 0), len(in_name))
            elif len(in_name) == 1 and _is_special(name):
                self._words.add(name)

    def __len__(self) -> int:
        return len(self._phrases) + len(self._words)

    def mentioned(self, text: str) -> list[str]:
        """The names in a text, each once, in the order of their first occurrence. Blocks: 10 MB take a second."""
        found: dict[str, None] = {}
        tokens = words(text)
        for start, token in enumerate(tokens):
            for length in range(self._longest.get(token, 0), 1, -1):
                if name := self._phrases.get(" ".join(tokens[start : start + length])):
                    found.setdefault(name)
                    break
        if self._words:
            found |= dict.fromkeys(sorted(self._words.intersection(_WORD.findall(text))))
        return list(found)


def _is_special(name: str) -> bool:
    """Whether a word has a digit, or capitals elsewhere than at its beginning."""
    return len(name) >= _MIN_CHARS and (any(each.isdigit() for each in name) or name[1:] != name[1:].lower())
