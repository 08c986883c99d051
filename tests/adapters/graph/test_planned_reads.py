"""Statements are planned by reads of their own, which no search waits for longer than it may."""

from __future__ import annotations

import asyncio

import pytest

from adapters.graph.bolt import Row
from adapters.graph.planned_reads import PlannedReads
from adapters.model.errors import Unavailable, Warming

pytestmark = pytest.mark.anyio

WALK, NAMES = "UNWIND $requests AS walk", "UNWIND $requests AS names"


class Server:
    """A graph server that plans a statement when ``may_plan`` is set, and forgets plans when it is stopped."""

    read_timeout_s = 0.2
    """Searches wait for half of it: a busy machine may stop for some milliseconds."""

    def __init__(self) -> None:
        self.may_plan = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.is_stopped = False
        self.slow_reads = 0
        self.hanging_reads = 0
        self.planned: list[str] = []
        self.parameters: list[Row] = []

    async def read(self, statement: str, parameters: Row, planning: bool = False) -> list[Row]:
        if self.is_stopped:
            raise Unavailable("the graph server cannot be reached")
        if planning:
            await self.may_plan.wait()
            if self.hanging_reads:
                self.hanging_reads -= 1
                await asyncio.Event().wait()
            self.planned.append(statement)
            self.parameters.append(parameters)
            if len(self.planned) <= self.slow_reads:
                await asyncio.sleep(self.read_timeout_s)
        else:
            await self.may_answer.wait()
        return [{"number": each["number"]} for each in parameters["requests"]]


@pytest.fixture
async def server() -> Server:
    return Server()


@pytest.fixture
async def reads(server: Server) -> PlannedReads:
    return PlannedReads(server)  # type: ignore[arg-type]


async def eventually_read(reads: PlannedReads, request: Row) -> Row:
    """The row, once the server has planned the statement."""
    while True:
        try:
            return await reads.read(WALK, request, {})
        except Warming:
            pass


async def test_a_search_waits_for_a_plan_for_half_of_its_time_and_the_planning_goes_on(
    server: Server, reads: PlannedReads
) -> None:
    for _ in range(2):
        with pytest.raises(Warming, match="planning its statements"):
            await reads.read(WALK, {}, {})
    assert reads.is_planning
    server.may_plan.set()
    assert await eventually_read(reads, {}) == {"number": 0}
    assert (set(server.planned), reads.is_planning) == ({WALK}, False)


@pytest.mark.parametrize(("slow_reads", "most_reads"), [(3, 99), (1_000, 100)])
async def test_a_server_reads_until_it_is_fast_before_searches_use_it(
    server: Server, reads: PlannedReads, slow_reads: int, most_reads: int
) -> None:
    server.read_timeout_s, server.slow_reads = 0.02, slow_reads
    server.may_plan.set()
    reads.start_planning(WALK, {"of": "nothing"}, {})
    with pytest.raises(Warming):
        await reads.read(WALK, {"of": "a search"}, {})
    assert await eventually_read(reads, {"of": "another"}) == {"number": 0}
    assert min(slow_reads, most_reads) <= len(server.planned) <= most_reads
    assert server.parameters[-1]["requests"][0]["of"] in ("a search", "another")


async def test_a_statement_does_not_wait_for_the_plan_of_another(server: Server, reads: PlannedReads) -> None:
    server.may_plan.set()
    await reads.read(NAMES, {}, {})
    server.may_plan.clear()
    reads.start_planning(WALK, {}, {})
    assert await reads.read(NAMES, {}, {}) == {"number": 0}
    await reads.close()


async def test_a_server_that_was_stopped_plans_again(server: Server, reads: PlannedReads) -> None:
    server.may_plan.set()
    await reads.read(WALK, {}, {})
    server.planned.clear()
    server.is_stopped = True
    for _ in range(2):  # the second time it does not get as far
        with pytest.raises(Unavailable):
            await reads.read(WALK, {}, {})
    server.is_stopped = False
    await reads.read(WALK, {}, {})
    assert set(server.planned) == {WALK}


async def test_one_slow_read_means_nothing_and_two_that_the_server_plans_again(
    server: Server, reads: PlannedReads
) -> None:
    server.may_plan.set()
    await reads.read(WALK, {}, {})
    for planned in (1, 2):
        server.may_answer.clear()
        for _ in range(planned):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(reads.read(WALK, {}, {}), 0.01)
        server.may_answer.set()
        await reads.read(WALK, {}, {})
        assert len(server.planned) == planned


async def test_a_read_for_a_plan_that_hangs_is_sent_again(server: Server, reads: PlannedReads) -> None:
    """As after packets were lost: the connection looks alive."""
    server.may_plan.set()
    await reads.read(WALK, {}, {})
    server.may_answer.clear()
    for _ in range(2):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reads.read(WALK, {}, {}), 0.01)
    server.may_answer.set()
    server.hanging_reads = 1
    assert await asyncio.wait_for(eventually_read(reads, {}), 5.0) == {"number": 0}
    assert not reads.is_planning


async def test_closing_ends_the_planning(server: Server, reads: PlannedReads) -> None:
    reads.start_planning(WALK, {}, {})
    await reads.close()
    assert (server.planned, reads.is_planning) == ([], False)
