"""Which encoder encodes a query, and how often the model runs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor

import numpy as np
import pytest

from orchestrator.retrieval.query_encoder import QueryEncoders
from tests.conftest import unit

pytestmark = pytest.mark.anyio


class CountingModel:
    """A model with a vector of its own, and the texts that it encoded."""

    dimension = 16
    encodes_texts = True

    def __init__(self) -> None:
        self.encoded: list[str] = []

    def encode(self, text: str) -> np.ndarray:
        self.encoded.append(text)
        return unit(1)


class SomeWords:
    """A static encoder that knows all words but one."""

    def encode(self, text: str) -> np.ndarray | None:
        return None if text == "unknown" else unit(2)


@pytest.fixture(params=["event loop", "thread"])
def thread(request: pytest.FixtureRequest) -> Iterator[Executor | None]:
    """Where the model runs."""
    if request.param == "event loop":
        yield None
    else:
        with ThreadPoolExecutor(1) as pool:
            yield pool


def encoders(model: CountingModel, thread: Executor | None) -> QueryEncoders:
    return QueryEncoders(model, SomeWords(), max_vectors=10, thread=thread)


async def test_the_model_runs_once_for_a_text(thread: Executor | None) -> None:
    model = CountingModel()
    both = encoders(model, thread)
    assert both.without_model("text", "model", "one") is None
    for _ in range(2):
        encoded = await both.encode("text", "model", "one")
        assert encoded.encoder_used == "model"
        assert np.array_equal(encoded.vector, unit(1))
    assert model.encoded == ["text"]
    assert both.without_model("text", "model", "one")


async def test_the_model_runs_once_for_requests_with_the_same_text() -> None:
    model = CountingModel()
    with ThreadPoolExecutor(1) as thread:
        both = encoders(model, thread)
        await asyncio.gather(*(both.encode("text", "model", "one") for _ in range(5)))
    assert model.encoded == ["text"]


async def test_the_static_encoder_never_returns_a_vector_of_the_model(thread: Executor | None) -> None:
    both = encoders(CountingModel(), thread)
    await both.encode("text", "model", "one")
    static = both.without_model("text", "static", "one")
    assert static
    assert static.encoder_used == "static"
    assert np.array_equal(static.vector, unit(2))


async def test_the_model_encodes_a_text_whose_words_the_static_encoder_does_not_know(thread: Executor | None) -> None:
    assert (await encoders(CountingModel(), thread).encode("unknown", "static", "one")).encoder_used == "model"


async def test_an_error_is_not_cached(thread: Executor | None) -> None:
    class FailingModel(CountingModel):
        def encode(self, text: str) -> np.ndarray:
            super().encode(text)
            raise RuntimeError("no")

    model = FailingModel()
    both = encoders(model, thread)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no"):
            await both.encode("text", "model", "one")
    assert model.encoded == ["text", "text"]


async def test_how_long_encoding_takes_does_not_tell_what_another_tenant_searched_for(
    thread: Executor | None,
) -> None:
    model = CountingModel()
    both = encoders(model, thread)
    for tenant in ("one", "two", "one"):
        await both.encode("text", "model", tenant)
    assert model.encoded == ["text", "text"]


class StoppedModel(CountingModel):
    """It encodes nothing before it is resumed."""

    def __init__(self) -> None:
        super().__init__()
        self.resumed = threading.Event()

    def encode(self, text: str) -> np.ndarray:
        assert self.resumed.wait(10)
        return super().encode(text)


async def test_the_event_loop_runs_while_the_model_does_in_a_thread() -> None:
    model = StoppedModel()
    with ThreadPoolExecutor(1) as thread:
        encoding = asyncio.create_task(encoders(model, thread).encode("text", "model", "one"))
        await asyncio.sleep(0)
        model.resumed.set()
        await encoding
    assert model.encoded == ["text"]


async def test_many_encodings_of_one_tenant_do_not_delay_those_of_another() -> None:
    model = StoppedModel()
    with ThreadPoolExecutor(1) as thread:
        both = encoders(model, thread)
        texts = [("one", f"one {number}") for number in range(20)] + [("other", "other")]
        encodings = [asyncio.create_task(both.encode(text, "model", tenant)) for tenant, text in texts]
        await asyncio.sleep(0)  # now all are waiting
        model.resumed.set()
        await asyncio.gather(*encodings)
    assert model.encoded.index("other") <= 2
    assert len(model.encoded) == 21


async def test_one_that_was_cancelled_is_not_encoded() -> None:
    model = StoppedModel()
    with ThreadPoolExecutor(1) as thread:
        both = encoders(model, thread)
        texts = ("first", "cancelled", "last")
        first, cancelled, last = (asyncio.create_task(both.encode(text, "model", "one")) for text in texts)
        await asyncio.sleep(0)
        cancelled.cancel()
        model.resumed.set()
        await asyncio.gather(first, last)
    assert model.encoded == ["first", "last"]
