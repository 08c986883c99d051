from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters import Query
from adapters.embedded import Library
from adapters.filter import access, normal
from adapters.keyword.embedded import EmbeddedKeyword, KeywordPart
from adapters.labels import _sortable
from tests.conftest import SCOPE, entry

pytestmark = pytest.mark.anyio


async def found(library: Library, text: str) -> tuple[str, ...]:
    allowed = normal(access(SCOPE, "normal"))
    return (await EmbeddedKeyword(library, KeywordPart()).search(Query(text, 10, SCOPE, allowed, allowed))).ids


@pytest.fixture
async def library(open_library: Callable[[], Library]) -> Library:
    opened = open_library()
    texts = {
        "loop": "The event loop runs callbacks",
        "pool": "a loop over an event, over and over",
        "cafe": "Cafés and a naïve run",
        "hamlet": "to be or not to be that is the question",
    }
    await opened.write([entry(id_, text, title=f"On {id_}") for id_, text in texts.items()], ())
    return opened


async def test_inflections_match(library: Library) -> None:
    assert await found(library, "running callback") == ("loop", "cafe")
    assert await found(library, "cafe") == ("cafe",)


async def test_a_phrase_must_stand_as_it_is_quoted(library: Library) -> None:
    assert set(await found(library, "event loop")) == {"loop", "pool"}
    assert await found(library, '"event loop"') == ("loop",)
    assert await found(library, '"loop event"') == ()
    assert (await found(library, 'what is an "event loop" for'))[0] == "loop"


async def test_a_phrase_of_stop_words_is_found(library: Library) -> None:
    assert await found(library, '"to be or not to be"') == ("hamlet",)


async def test_the_title_is_searched_too(library: Library) -> None:
    assert await found(library, "hamlet") == ("hamlet",)


async def test_what_is_nowhere_is_not_found(library: Library) -> None:
    assert await found(library, "xylophone") == ()
    assert await found(library, "???") == ()


@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_numbers_are_written_in_their_order(one: float, other: float) -> None:
    assert (one < other) == (_sortable(one) < _sortable(other))
    assert (one == other) == (_sortable(one) == _sortable(other))
