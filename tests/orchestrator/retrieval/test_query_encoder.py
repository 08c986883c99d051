"""Which encoder encodes a query, and how often the model runs."""

from __future__ import annotations

import anyio
import numpy as np
import pytest

from orchestrator.retrieval.query_encoder import EncodedQuery, QueryEncoders
from tests.conftest import unit

pytestmark = pytest.mark.anyio


class CountingModel:
    """A model with a vector of its own, and the texts that it encoded."""

    dimension = 16

    def __init__(self) -> None:
        self.encoded: list[str] = []

    async def encode(self, text: str) -> np.ndarray:
        self.encoded.append(text)
        return unit(1)


class SomeWords:
    """A static encoder that knows all words but one."""

    def encode(self, text: str) -> np.ndarray | None:
        return None if text == "unknown" else unit(2)


def encoders(model: CountingModel) -> QueryEncoders:
    return QueryEncoders(model, SomeWords(), max_vectors=10)


async def test_the_model_needs_a_run_for_a_new_text_and_its_vector_is_cached() -> None:
    model = CountingModel()
    both = encoders(model)
    assert both.encode_now("text", "model") is None
    assert (await both.encode("text")).encoder_used == "model"
    cached = both.encode_now("text", "model")
    assert cached
    assert cached.encoder_used == "model"
    assert np.array_equal(cached.vector, unit(1))
    assert model.encoded == ["text"]


async def test_the_static_encoder_never_returns_a_vector_of_the_model() -> None:
    both = encoders(CountingModel())
    await both.encode("text")
    static = both.encode_now("text", "static")
    assert static
    assert static.encoder_used == "static"
    assert np.array_equal(static.vector, unit(2))


async def test_the_model_encodes_a_text_whose_words_the_static_encoder_does_not_know() -> None:
    both = encoders(CountingModel())
    assert both.encode_now("unknown", "static") is None
    await both.encode("unknown")
    known = both.encode_now("unknown", "static")
    assert known
    assert known.encoder_used == "model"


async def test_equal_texts_at_the_same_time_share_one_run_of_the_model() -> None:
    model = CountingModel()
    both = encoders(model)
    encoded: list[EncodedQuery] = []

    async def encode() -> None:
        encoded.append(await both.encode("text"))

    async with anyio.create_task_group() as group:
        for _ in range(100):
            group.start_soon(encode)
    assert len(encoded) == 100
    assert model.encoded == ["text"]


async def test_a_run_of_the_model_is_shared_before_its_result_is_awaited() -> None:
    model = CountingModel()
    both = encoders(model)
    first, second = both.encode("text"), both.encode("text")
    assert {(await second).encoder_used, (await first).encoder_used} == {"model"}
    assert model.encoded == ["text"]


async def test_an_error_reaches_the_waiters_and_is_not_cached() -> None:
    class FailingModel(CountingModel):
        async def encode(self, text: str) -> np.ndarray:
            await super().encode(text)
            raise RuntimeError("no")

    model = FailingModel()
    both = encoders(model)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no"):
            await both.encode("text")
    assert model.encoded == ["text", "text"]


class GatedModel(CountingModel):
    """A model whose runs wait for a gate."""

    def __init__(self) -> None:
        super().__init__()
        self.started, self.gate = anyio.Event(), anyio.Event()

    async def encode(self, text: str) -> np.ndarray:
        self.started.set()
        await self.gate.wait()
        return await super().encode(text)


async def test_cancelling_one_waiter_does_not_affect_the_others() -> None:
    model = GatedModel()
    both = encoders(model)
    encoded: list[EncodedQuery] = []

    async def encode() -> None:
        encoded.append(await both.encode("text"))

    async with anyio.create_task_group() as group:
        with anyio.CancelScope() as impatient:
            async with anyio.create_task_group() as inner:
                inner.start_soon(both.encode, "text")
                await model.started.wait()
                group.start_soon(encode)
                await anyio.wait_all_tasks_blocked()
                impatient.cancel()
        model.gate.set()
    assert [each.encoder_used for each in encoded] == ["model"]
    assert model.encoded == ["text"]


async def test_a_run_of_the_model_is_cancelled_with_its_last_waiter() -> None:
    """Its time limit is the waiter's: under load the model must not go on for a client that has left."""
    model = GatedModel()
    both = encoders(model)
    with anyio.CancelScope() as impatient:
        async with anyio.create_task_group() as group:
            group.start_soon(both.encode, "text")
            await model.started.wait()
            impatient.cancel()
    model.gate.set()
    assert (await both.encode("text")).encoder_used == "model"
    assert model.encoded == ["text"]
