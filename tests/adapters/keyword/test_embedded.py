from __future__ import annotations

from collections.abc import Callable

import pytest

from adapters import Viewer
from adapters.engine import EmbeddedIndex
from adapters.keyword import embedded
from adapters.keyword.component import KeywordComponent
from adapters.keyword.embedded import EmbeddedKeyword
from adapters.model.filter import Or, Range, access, normal
from adapters.model.index_terms import max_terms
from adapters.ports import SourceQuery
from tests.conftest import SCOPE, vector_record

pytestmark = pytest.mark.anyio


async def searched(index: EmbeddedIndex, text: str) -> tuple[str, ...]:
    allowed = normal(access(SCOPE, Viewer("normal")))
    query = SourceQuery(text, 10, SCOPE, allowed, allowed)
    return (await EmbeddedKeyword(index, KeywordComponent()).search(query)).ids


@pytest.fixture
async def index(open_index: Callable[[], EmbeddedIndex]) -> EmbeddedIndex:
    opened = open_index()
    texts = {
        "loop": "The event loop runs callbacks",
        "pool": "a loop over an event, over and over",
        "cafe": "Cafés and a naïve run",
        "hamlet": "to be or not to be that is the question",
    }
    await opened.write([vector_record(id_, text, title=f"On {id_}") for id_, text in texts.items()], ())
    return opened


async def test_inflections_match(index: EmbeddedIndex) -> None:
    assert await searched(index, "running callback") == ("loop", "cafe")
    assert await searched(index, "cafe") == ("cafe",)


async def test_a_query_of_quoted_text_requires_the_phrase(index: EmbeddedIndex) -> None:
    assert set(await searched(index, "event loop")) == {"loop", "pool"}
    assert await searched(index, '"event loop"') == ("loop",)
    assert await searched(index, '"loop event"') == ()
    assert (await searched(index, 'what is an "event loop" for'))[0] == "loop"


async def test_a_phrase_of_stop_words_is_found(index: EmbeddedIndex) -> None:
    assert await searched(index, '"to be or not to be"') == ("hamlet",)


async def test_the_title_is_searched_too(index: EmbeddedIndex) -> None:
    assert await searched(index, "hamlet") == ("hamlet",)


async def test_unknown_words_have_no_results(index: EmbeddedIndex) -> None:
    assert await searched(index, "xylophone") == ()
    assert await searched(index, "???") == ()


@pytest.mark.parametrize("depth", [1, 5, 40])
@pytest.mark.parametrize("passing", [1, 7, 60])
@pytest.mark.parametrize("searched", [20, 20_000])
async def test_a_filter_of_thousands_of_terms_finds_what_a_small_one_does(
    open_index: Callable[[], EmbeddedIndex],
    passing: int,
    depth: int,
    searched: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(embedded, "_MAX_SEARCHED", searched)
    index = open_index()
    documents = [vector_record(str(n), "Alpha " * (1 + n % 9) + "beta", importance=n / 10) for n in range(60)]
    index.write_blocking(documents)
    small = normal(Range("importance", lt=passing / 10))
    ranges = tuple(Range("importance", gte=n / 10, lt=(n + 1) / 10) for n in range(passing))
    large = normal(Or((*ranges, *(Range("metadata.absent", gt=n) for n in range(5)))))
    assert max_terms(large) > 1_000 > max_terms(small)
    source = EmbeddedKeyword(index, KeywordComponent())
    expected, found = [
        await source.search(SourceQuery("alpha", depth, SCOPE, condition, condition)) for condition in (small, large)
    ]
    assert found.ids == expected.ids
    assert found.scores.tolist() == expected.scores.tolist()
    assert len(found.ids) == min(depth, passing)
