from __future__ import annotations

from collections.abc import Callable

import pytest

from adapters import SourceQuery
from adapters.embedded import EmbeddedIndex
from adapters.filter import access, normal
from adapters.keyword.embedded import EmbeddedKeyword, KeywordComponent
from tests.conftest import SCOPE, vector_record

pytestmark = pytest.mark.anyio


async def searched(index: EmbeddedIndex, text: str) -> tuple[str, ...]:
    allowed = normal(access(SCOPE, "normal"))
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
