"""What else the words of a query are called: from a file of synonyms, or from a function of the user's.

Only the keyword source is told: a vector knows what a word is like by itself, and would be moved off what was asked.
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from adapters import plugin
from adapters.document import trimmed
from adapters.errors import AdapterError, Rejected, Unavailable
from adapters.keyword.analysis import stems, unquoted
from adapters.port import Expander

NONE = "none://"
FILE = "synonyms://"
FORMS = f"{NONE}, {FILE}/path/of/file, {plugin.FORM}"
MAX_EXPANSIONS = 32
"""Of one query: what a search costs must not grow with what it might have been called."""


def expander(address: str) -> Expander | None:
    """The expander at an address.

    :raises ValueError: if that is none of :data:`FORMS`.
    :raises Unavailable: if the file cannot be read (the message names the line), or a function cannot be imported.
    """
    if address == NONE:
        return None
    if address.startswith(FILE):
        return Synonyms.read(Path(address.removeprefix(FILE)))
    return Function(plugin.function(address, FORMS), address)


class Synonyms:
    """Words and phrases by what they mean, whatever their ending or case.

    :param rules: what stands in a query, and what may stand for it.
    """

    def __init__(self, rules: Iterable[tuple[str, Iterable[str]]]) -> None:
        known: dict[tuple[str, ...], dict[str, None]] = defaultdict(dict)
        for text, others in rules:
            known[stems(text)].update(dict.fromkeys(others))
        self._known: Mapping[tuple[str, ...], tuple[str, ...]] = {
            key: tuple(held) for key, held in known.items() if key
        }
        self._longest = max(map(len, self._known), default=0)

    @classmethod
    def read(cls, path: Path) -> Synonyms:
        """A file in the form that Solr reads, without its escapes: ``car, automobile`` either for the other,
        ``tv => television`` the right for the left; a line each, comments begin with ``#``. Names are read as the
        keyword index reads texts, so that ``c++`` is ``c``.

        :raises Unavailable: if it cannot be read, or a line is neither.
        """
        try:
            lines = path.read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise Unavailable(f"{path} cannot be read: {error}") from error
        rules: list[tuple[str, Iterable[str]]] = []
        for number, line in enumerate(lines, start=1):
            text = line.strip()
            if not text or text.startswith("#"):
                continue
            left, arrow, right = text.partition("=>")
            names, others = trimmed(left.split(",")), trimmed(right.split(","))
            if not names or "=>" in right or (not others if arrow else len(names) < 2):
                raise Unavailable(f"{path}, line {number}: {text[:80]!r} is neither `a, b` nor `a => b`")
            rules += [(name, others or [each for each in names if each != name]) for name in names]
        return cls(rules)

    async def expand(self, text: str) -> tuple[str, ...]:
        """See :class:`adapters.port.Expander`. The longest name wins; what is quoted is meant as it is."""
        found: dict[str, None] = {}
        parts = [stems(part) for part in unquoted(text)]
        said = set().union(*parts)
        for words in parts:
            start = 0
            while start < len(words):
                for end in range(min(len(words), start + self._longest), start, -1):
                    if others := self._known.get(words[start:end]):
                        found.update((other, None) for other in others if not said.issuperset(stems(other)))
                        start = end
                        break
                else:
                    start += 1
        return tuple(found)[:MAX_EXPANSIONS]


class Function:
    """A function of the user's, from a text to a list of words and phrases; it may be a coroutine.

    It is called on the event loop, so one that waits should be a coroutine: it has a share of the sources' time.
    """

    def __init__(self, function: Callable[[str], Any], name: str) -> None:
        self._function = function
        self._name = name

    async def expand(self, text: str) -> tuple[str, ...]:
        """See :class:`adapters.port.Expander`. It is given what is not quoted."""
        asked = " ".join(" ".join(unquoted(text)).split())
        if not asked:
            return ()
        try:
            found = self._function(asked)
            if inspect.isawaitable(found):
                found = await found
        except AdapterError:
            raise
        except Exception as error:
            raise Rejected(f"{self._name} failed: {error}") from error
        if not isinstance(found, list | tuple) or not all(isinstance(each, str) for each in found):
            raise Rejected(f"{self._name} gave {type(found).__name__}, allowed are lists and tuples of texts")
        return trimmed(found)[:MAX_EXPANSIONS]
