"""Batches by both clients: each search has one outcome, in order, whatever happens on the way."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from orchestrator.client import (
    AsyncClient,
    BadReply,
    BatchOutcome,
    Client,
    DeadlineExceeded,
    InvalidRequest,
    Retries,
    SearchRequest,
    Unauthenticated,
    Unreachable,
)
from orchestrator.client.batches import MAX_BYTES, MAX_LINES, Query, parts
from tests.orchestrator.client.scripted import refusing, scripted
from tests.orchestrator.http.test_metrics import eventually
from tests.orchestrator.served import Serve, environment
from tests.servers.start import free_port

QUICK = Retries(first_delay_s=0.001)
FILMS = [{"id": "prestige", "title": "The Prestige", "text": "A film by Christopher Nolan."}]


def by_client(url: str, queries: list[Query], timeout_s: float = 30.0) -> list[BatchOutcome]:
    with Client(url, retries=QUICK) as client:
        return list(client.search_batch(queries, timeout_s=timeout_s))


def by_async_client(url: str, queries: list[Query], timeout_s: float = 30.0) -> list[BatchOutcome]:
    async def run() -> list[BatchOutcome]:
        async with AsyncClient(url, retries=QUICK) as client:
            return [outcome async for outcome in client.search_batch(queries, timeout_s=timeout_s)]

    return anyio.run(run)


both = pytest.mark.parametrize("call", [by_client, by_async_client])


@pytest.fixture(scope="module")
def url(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serve(environment(data_dir=tmp_path_factory.mktemp("batches"), source_timeout_ms=10_000)) as (_, address):
        with Client(address, timeout_s=30.0) as client:
            client.index(FILMS)
        yield address


@both
def test_each_search_has_its_outcome_in_order(url: str, call: Callable[..., list[BatchOutcome]]) -> None:
    queries: list[Query] = [
        "who directed The Prestige?",
        {"query": "film", "limit": 1, "fields": ["title"]},
        SearchRequest(query="Nolan", mode="keyword"),
        {"query": ""},
        b'{"query": "director"}',
        b"nonsense",
        *(f"query {number}" for number in range(200)),
    ]
    outcomes = call(url, queries)
    assert [outcome.number for outcome in outcomes] == list(range(1, len(queries) + 1))
    assert [outcome.number for outcome in outcomes if outcome.error] == [4, 6]
    assert outcomes[0].result().hits[0].id == "prestige"
    assert outcomes[1].result().hits[0].text is msgspec.UNSET
    with pytest.raises(InvalidRequest, match="query: '', allowed are texts of 1 to 4096 characters"):
        outcomes[3].result()


def test_parts_are_small_and_complete() -> None:
    queries = [{"query": "x" * (n % 7) * 1_000} for n in range(300)]
    made = list(parts(queries))
    assert [json.loads(line.content) for part in made for line in part.lines] == queries
    assert [line.number for part in made for line in part.lines] == list(range(1, 301))
    assert all(len(part.lines) <= MAX_LINES for part in made)
    assert all(sum(len(line.content) for line in part.lines) <= MAX_BYTES for part in made)
    assert [len(part.lines) for part in parts([b"x" * 100_000, b"y"])] == [1, 1]


@both
def test_blank_lines_of_a_file_have_no_outcome(url: str, call: Callable[..., list[BatchOutcome]]) -> None:
    queries: list[Query] = [
        b'{"query": "film"}\n',
        b"\n",
        b'{"query": ""}\r\n',
        b'{"query": "x", "fi\\u0065lds": ["title"]}',
    ]
    outcomes = call(url, [*queries, b"  \n"])
    assert [outcome.number for outcome in outcomes] == [1, 3, 4]
    assert outcomes[0].result().hits[0].id == "prestige"
    assert outcomes[1].error is not None
    assert outcomes[2].result().hits[0].text is msgspec.UNSET


def lines(*numbers: int, cut: int = 0) -> bytes:
    """A response with these lines, as a service sends it; without its last bytes."""
    problem = {"title": "t", "status": 422, "detail": "d"}
    body = b"".join(
        b"%s\n" % json.dumps({"line": number, "status": 422, "problem": problem}).encode() for number in numbers
    )
    head = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(body)
    whole = head + body
    return whole[: len(whole) - cut]


@both
def test_after_a_cut_the_rest_is_sent_again(call: Callable[..., list[BatchOutcome]]) -> None:
    queries: list[Query] = [f"q{number}" for number in range(5)]
    with scripted([lines(1, 2, 3, cut=9), b"", refusing("503 x"), lines(1, cut=0), lines(1, 2)]) as (url, received):
        outcomes = call(url, queries)
    assert [outcome.number for outcome in outcomes] == [1, 2, 3, 4, 5]
    sent = [[json.loads(line)["query"] for line in each.partition(b"\r\n\r\n")[2].splitlines()] for each in received]
    rest = ["q2", "q3", "q4"]
    assert sent == [["q0", "q1", *rest], rest, rest, rest, ["q3", "q4"]]


@both
@pytest.mark.parametrize(
    ("answers", "kind"),
    [
        ([refusing("401 x")], Unauthenticated),
        ([b""], Unreachable),
        ([lines()], Unreachable),
        ([lines(1).replace(b'"status"', b'"stotus"')], BadReply),
        ([lines(2)], BadReply),
    ],
)
def test_what_cannot_be_sent_is_an_error(
    call: Callable[..., list[BatchOutcome]], answers: list[bytes], kind: type[Exception]
) -> None:
    with scripted(answers) as (url, _), pytest.raises(kind):
        call(url, ["a", "b"])


@both
def test_the_deadline_holds(call: Callable[..., list[BatchOutcome]]) -> None:
    with scripted([None]) as (url, _), pytest.raises(DeadlineExceeded):
        call(url, ["a"], timeout_s=0.3)


def test_a_service_that_is_restarted_loses_and_doubles_nothing(serve: Serve, tmp_path: Path) -> None:
    env, port = environment(data_dir=tmp_path, source_timeout_ms=10_000), free_port()
    patient = Retries(attempts=20, first_delay_s=0.05, ratio=10.0)
    outcomes: list[BatchOutcome] = []
    queries = [f"query {number}" for number in range(3_000)]

    def search() -> None:
        with Client(f"http://127.0.0.1:{port}", retries=patient) as client:
            for outcome in client.search_batch(queries):
                outcomes.append(outcome)  # noqa: PERF402  # another thread looks at it

    with ThreadPoolExecutor(1) as pool:
        with serve(env, port=port):
            searching = pool.submit(search)
            eventually(lambda: len(outcomes) >= 100, 60.0)
        assert len(outcomes) < len(queries)
        with serve(env, port=port):
            searching.result(120)
    assert [outcome.number for outcome in outcomes] == list(range(1, len(queries) + 1))
    assert all(outcome.response is not None for outcome in outcomes)


def test_an_iterator_is_read_as_it_is_sent(url: str) -> None:
    asked: list[int] = []

    def queries() -> Iterator[dict[str, Any]]:
        for number in range(1_000):
            asked.append(number)
            yield {"query": f"query {number}"}

    with Client(url) as client:
        for _, _ in zip(range(10), client.search_batch(queries()), strict=False):
            pass
    assert len(asked) <= MAX_LINES + 1
