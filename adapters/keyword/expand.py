"""Query expansion, from a file of synonyms or by a user-supplied function.

Only the keyword source uses expansions: a query's vector is close to similar words already, and expansions would move
it away from the query.
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from adapters.keyword.analysis import stemmed_words
from adapters.model.document import trimmed
from adapters.model.errors import AdapterError, Rejected, Unavailable
from adapters.ports import plugin
from adapters.ports.expander import Expander
from adapters.text.quotes import unquoted

NONE = "none://"
FILE = "synonyms://"
FORMS = f"{NONE}, {FILE}/path/of/file, {plugin.FORM}"
MAX_EXPANSIONS = 32
"""Maximum number of expansions of one query. It bounds the cost of a search."""


def expander(address: str) -> Expander | None:
    """The expander at an address; ``None`` for ``none://``.

    :raises ValueError: if the address has none of the forms :data:`FORMS`.
    :raises Unavailable: if the file cannot be read (the message names the line), or a function cannot be imported.
    """
    if address == NONE:
        return None
    if address.startswith(FILE):
        return Synonyms.read(Path(address.removeprefix(FILE)))
    return FunctionExpander(plugin.import_function(address, FORMS), address)


class Synonyms:
    """Words and phrases with their synonyms. Matching ignores endings and case.

    :param rules: pairs of a word or phrase of a query and its synonyms.
    """

    def __init__(self, rules: Iterable[tuple[str, Iterable[str]]]) -> None:
        collected: dict[tuple[str, ...], dict[str, None]] = defaultdict(dict)
        for text, synonyms in rules:
            collected[stemmed_words(text)].update(dict.fromkeys(synonyms))
        self._synonyms: Mapping[tuple[str, ...], tuple[str, ...]] = {
            phrase: tuple(synonyms) for phrase, synonyms in collected.items() if phrase
        }
        self._max_words = max(map(len, self._synonyms), default=0)

    @classmethod
    def read(cls, path: Path) -> Synonyms:
        """Read a file in Solr's format, without its escapes.

        Each line is either ``car, automobile`` (each is a synonym of the others) or ``tv => television`` (the right
        side lists synonyms of the left side). Lines that begin with ``#`` are comments. Words are read as the keyword
        index reads texts, so ``c++`` is ``c``.

        :raises Unavailable: if the file cannot be read, or a line has neither form.
        """
        try:
            lines = path.read_text("utf-8").splitlines()
        except OSError as error:
            raise Unavailable(f"{path} cannot be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise Unavailable(f"{path} cannot be read: it is not UTF-8") from error
        rules: list[tuple[str, Iterable[str]]] = []
        for number, line in enumerate(lines, start=1):
            text = line.strip()
            if not text or text.startswith("#"):
                continue
            left, arrow, right = text.partition("=>")
            phrases, synonyms = trimmed(left.split(",")), trimmed(right.split(","))
            if not phrases or "=>" in right or (not synonyms if arrow else len(phrases) < 2):
                raise Unavailable(f"{path}, line {number}: {text[:80]!r} is neither `a, b` nor `a => b`")
            rules += [(phrase, synonyms or [each for each in phrases if each != phrase]) for phrase in phrases]
        return cls(rules)

    async def expand(self, text: str) -> tuple[str, ...]:
        """See :class:`adapters.ports.Expander`. The longest matching phrase wins; quoted text is not expanded."""
        expansions: dict[str, None] = {}
        texts = [stemmed_words(each) for each in unquoted(text)]
        in_query = set().union(*texts)
        for words in texts:
            start = 0
            while start < len(words):
                for end in range(min(len(words), start + self._max_words), start, -1):
                    if synonyms := self._synonyms.get(words[start:end]):
                        expansions.update(
                            (each, None) for each in synonyms if not in_query.issuperset(stemmed_words(each))
                        )
                        start = end
                        break
                else:
                    start += 1
        return tuple(expansions)[:MAX_EXPANSIONS]


class FunctionExpander:
    """A user-supplied function from a text to a list of words and phrases. It may be a coroutine.

    It is called on the event loop, so a function that waits should be a coroutine. Its time counts towards the time
    limit of the sources.

    :param name: of the function in error messages.
    """

    def __init__(self, function: Callable[[str], Any], name: str) -> None:
        self._function = function
        self._name = name

    async def expand(self, text: str) -> tuple[str, ...]:
        """See :class:`adapters.ports.Expander`. The function gets the query without its quoted text."""
        unquoted_text = " ".join(" ".join(unquoted(text)).split())
        if not unquoted_text:
            return ()
        try:
            returned = self._function(unquoted_text)
            if inspect.isawaitable(returned):
                returned = await returned
        except AdapterError:
            raise
        except Exception as error:
            raise Rejected(f"{self._name} failed", type(error).__name__) from error
        if not isinstance(returned, list | tuple) or not all(isinstance(each, str) for each in returned):
            raise Rejected(f"{self._name} returned {type(returned).__name__}, allowed are lists and tuples of texts")
        return trimmed(returned)[:MAX_EXPANSIONS]
