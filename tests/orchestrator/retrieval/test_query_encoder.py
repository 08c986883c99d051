"""Which encoder encodes a query, and how often the model runs."""

from __future__ import annotations

import anyio
import numpy as np
import pytest

from orchestrator.retrieval.query_encoder import EncodedQuery, PolicyName, QueryEncoderPolicy
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


class Load:
    """The number of requests that are running or waiting."""

    def __init__(self, requests: int = 1) -> None:
        self.requests = requests

    def __call__(self) -> int:
        return self.requests


def policy_of(
    name: PolicyName, load: Load, model: CountingModel | None = None
) -> tuple[QueryEncoderPolicy, CountingModel]:
    model = model or CountingModel()
    return QueryEncoderPolicy(model, SomeWords(), name, load, busy_from=3, max_vectors=10), model


@pytest.mark.parametrize(
    ("name", "requests", "encoder"),
    [
        ("model", 99, "model"),
        ("static", 1, "static"),
        ("adaptive", 2, "model"),
        ("adaptive", 3, "static"),
    ],
)
async def test_the_policy_chooses_the_encoder(name: PolicyName, requests: int, encoder: str) -> None:
    policy, _ = policy_of(name, Load(requests))
    encoded = await policy.encode("text")
    assert encoded.encoder_used == encoder
    assert np.array_equal(encoded.vector, unit(1 if encoder == "model" else 2))
    assert encoded.ms >= 0


@pytest.mark.parametrize("name", ["adaptive", "model", "static"])
@pytest.mark.parametrize("encoder", ["model", "static"])
async def test_the_encoder_of_an_earlier_page_is_used_whatever_the_policy(name: PolicyName, encoder: str) -> None:
    policy, _ = policy_of(name, Load(99))
    assert (await policy.encode("text", encoder)).encoder_used == encoder


async def test_a_vector_of_the_model_is_used_at_any_load() -> None:
    load = Load()
    policy, model = policy_of("adaptive", load)
    for load.requests in (1, 1, 99):
        assert (await policy.encode("text")).encoder_used == "model"
    assert model.encoded == ["text"]


async def test_a_vector_of_the_static_encoder_is_not_cached() -> None:
    load = Load(99)
    policy, _ = policy_of("adaptive", load)
    assert (await policy.encode("text")).encoder_used == "static"
    load.requests = 1
    assert (await policy.encode("text")).encoder_used == "model"


async def test_the_model_encodes_a_text_whose_words_the_static_encoder_does_not_know() -> None:
    policy, _ = policy_of("static", Load(99))
    assert (await policy.encode("unknown")).encoder_used == "model"


async def test_equal_texts_at_the_same_time_share_one_run_of_the_model() -> None:
    load = Load()
    policy, model = policy_of("adaptive", load)
    encoded: list[EncodedQuery] = []

    async def encode(requests: int) -> None:
        load.requests = requests
        encoded.append(await policy.encode("text"))

    async with anyio.create_task_group() as group:
        for requests in range(1, 101):
            group.start_soon(encode, requests)
    assert len(encoded) == 100
    assert {each.encoder_used for each in encoded} == {"model"}
    assert model.encoded == ["text"]


async def test_a_run_of_the_model_is_shared_before_its_result_is_awaited() -> None:
    load = Load()
    policy, model = policy_of("adaptive", load)
    first = policy.encode("text")
    load.requests = 99
    second = policy.encode("text")
    assert {(await second).encoder_used, (await first).encoder_used} == {"model"}
    assert model.encoded == ["text"]


async def test_an_error_reaches_the_waiters_and_is_not_cached() -> None:
    class FailingModel(CountingModel):
        async def encode(self, text: str) -> np.ndarray:
            await super().encode(text)
            raise RuntimeError("no")

    policy, model = policy_of("adaptive", Load(), FailingModel())
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no"):
            await policy.encode("text")
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
    model, load = GatedModel(), Load()
    policy, _ = policy_of("adaptive", load, model)
    encoded: list[EncodedQuery] = []

    async def encode() -> None:
        encoded.append(await policy.encode("text"))

    async with anyio.create_task_group() as group:
        with anyio.CancelScope() as impatient:
            async with anyio.create_task_group() as inner:
                inner.start_soon(policy.encode, "text")
                await model.started.wait()
                load.requests = 99
                group.start_soon(encode)
                await anyio.wait_all_tasks_blocked()
                impatient.cancel()
        model.gate.set()
    assert [each.encoder_used for each in encoded] == ["model"]
    assert model.encoded == ["text"]


async def test_a_run_of_the_model_is_cancelled_with_its_last_waiter() -> None:
    """Its time limit is the waiter's: under load the model must not go on for a client that has left."""
    model = GatedModel()
    policy, _ = policy_of("adaptive", Load(), model)
    with anyio.CancelScope() as impatient:
        async with anyio.create_task_group() as group:
            group.start_soon(policy.encode, "text")
            await model.started.wait()
            impatient.cancel()
    model.gate.set()
    assert (await policy.encode("text")).encoder_used == "model"
    assert model.encoded == ["text"]
