from __future__ import annotations

import anyio
import numpy as np
import pytest

from orchestrator.encode import Encoded, Encoding
from tests.conftest import unit

pytestmark = pytest.mark.anyio


class Counting:
    """A model that is told apart by what it answers, and counts how often it is asked."""

    dimension = 16

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def encode(self, text: str) -> np.ndarray:
        self.asked.append(text)
        return unit(1)


class Table:
    def encode(self, text: str) -> np.ndarray | None:
        return None if text == "unknown" else unit(2)


def encoding(policy: str) -> tuple[Encoding, Counting]:
    model = Counting()
    return Encoding(model, Table(), policy, busy=3, memo_entries=10), model  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("policy", "in_flight", "by"),
    [
        ("model", 99, "model"),
        ("table", 1, "table"),
        ("adaptive", 2, "model"),
        ("adaptive", 3, "table"),
    ],
)
async def test_the_policy_decides(policy: str, in_flight: int, by: str) -> None:
    made, _ = encoding(policy)
    encoded = await made.encode("text", in_flight)
    assert encoded.by == by
    assert np.array_equal(encoded.vector, unit(1 if by == "model" else 2))
    assert encoded.ms >= 0


async def test_what_the_model_has_said_is_said_again_whatever_the_load() -> None:
    made, model = encoding("adaptive")
    for in_flight in (1, 1, 99):
        assert (await made.encode("text", in_flight)).by == "model"
    assert model.asked == ["text"]


async def test_what_the_table_has_said_is_not_remembered() -> None:
    made, _ = encoding("adaptive")
    assert (await made.encode("text", 99)).by == "table"
    assert (await made.encode("text", 1)).by == "model"


async def test_where_the_table_has_nothing_to_say_the_model_does() -> None:
    made, _ = encoding("table")
    assert (await made.encode("unknown", 99)).by == "model"


async def test_who_asks_the_same_at_the_same_time_gets_the_same_from_one_run_of_the_model() -> None:
    made, model = encoding("adaptive")
    encoded: list[Encoded] = []

    async def ask(in_flight: int) -> None:
        encoded.append(await made.encode("text", in_flight))

    async with anyio.create_task_group() as group:
        for in_flight in range(1, 101):
            group.start_soon(ask, in_flight)
    assert {each.by for each in encoded} == {"model"}
    assert model.asked == ["text"]


async def test_who_asks_the_same_joins_before_the_first_has_begun_to_wait() -> None:
    made, model = encoding("adaptive")
    first, second = made.encode("text", 1), made.encode("text", 99)
    assert {(await second).by, (await first).by} == {"model"}
    assert model.asked == ["text"]


async def test_a_failure_is_for_those_who_wait_and_is_not_remembered() -> None:
    class Failing(Counting):
        async def encode(self, text: str) -> np.ndarray:
            await super().encode(text)
            raise RuntimeError("no")

    model = Failing()
    made = Encoding(model, Table(), "adaptive", busy=3, memo_entries=10)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no"):
            await made.encode("text", 1)
    assert model.asked == ["text", "text"]


async def test_who_gives_up_leaves_the_others_theirs() -> None:
    gate, asked = anyio.Event(), anyio.Event()

    class Slow(Counting):
        async def encode(self, text: str) -> np.ndarray:
            asked.set()
            await gate.wait()
            return await super().encode(text)

    model = Slow()
    made = Encoding(model, Table(), "adaptive", busy=3, memo_entries=10)
    with anyio.CancelScope() as impatient:
        async with anyio.create_task_group() as group:
            group.start_soon(made.encode, "text", 1)
            await asked.wait()
            impatient.cancel()
    gate.set()
    assert (await made.encode("text", 99)).by == "model"
    assert model.asked == ["text"]
