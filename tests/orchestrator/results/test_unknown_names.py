"""Names in a request that no document has are named in the response, with the nearest that exist."""

from __future__ import annotations

from pathlib import Path
from time import process_time

import pytest

from adapters import Scope
from adapters.engine import EmbeddedIndex
from adapters.model.filter import And, Eq, Exists, Filter, In, Not, Range
from adapters.model.spelling import _MAX_COMPARED, close_names
from orchestrator.auth.principal import Principal
from orchestrator.service.search import SearchService
from tests.conftest import SCOPE, vector_record
from tests.orchestrator.services import PRINCIPAL, empty_index, search, search_service

pytestmark = pytest.mark.anyio

KEYS = ("author", "autor_secret", "year", "flags")


@pytest.fixture
async def index(tmp_path: Path) -> EmbeddedIndex:
    index = empty_index(tmp_path)
    metadata = {"author": "Ada", "year": 1843, "flags": [True]}
    await index.write(
        [
            vector_record("1", "alpha", seed=1, collection="films", metadata=metadata),
            vector_record("2", "alpha", seed=2, collection="plans", sensitivity="restricted",
                          metadata={"autor_secret": "x"}),
            vector_record("3", "alpha", seed=3, scope=Scope("other"), collection="filme"),
        ],
        (),
    )  # fmt: skip
    return index


def service_of(index: EmbeddedIndex) -> SearchService:
    service = search_service(index)
    service.known_keys = lambda _: KEYS
    return service


async def warnings(index: EmbeddedIndex, principal: Principal = PRINCIPAL, **fields: object) -> tuple[str, ...]:
    response = await search(service_of(index), "alpha", principal, **fields)
    assert not response.degraded
    return response.warnings


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, ()),
        ({"collections": ("films",)}, ()),
        ({"collections": ("filsm",)}, ("no document is in the collection 'filsm'; the nearest is 'films'",)),
        ({"collections": ("films", "nothing like it")}, ("no document is in the collection 'nothing like it'",)),
        ({"filter": Eq("metadata.author", "Grace")}, ()),
        (
            {"filter": Eq("metadata.auhtor", "")},
            ("no document has the metadata key 'auhtor'; the nearest is 'author'",),
        ),
        ({"filter": Not(Exists("metadata.zzz"))}, ("no document has the metadata key 'zzz'",)),
    ],
)  # fmt: skip
async def test_names_that_no_document_has(
    index: EmbeddedIndex, fields: dict[str, object], expected: tuple[str]
) -> None:
    assert await warnings(index, **fields) == expected


async def test_what_the_caller_may_not_see_does_not_exist(index: EmbeddedIndex) -> None:
    """Neither the collection and the key of a hidden document nor those of another tenant are named."""
    hidden = Eq("metadata.autor_secret", "x")
    assert await warnings(index, collections=("plans",)) == ("no document is in the collection 'plans'",)
    expected = ("no document has the metadata key 'autor_secret'; the nearest is 'author'",)
    assert await warnings(index, filter=hidden) in {expected, (expected[0].partition(";")[0],)}
    assert await warnings(index, collections=("filme",)) == (
        "no document is in the collection 'filme'; the nearest is 'films'",
    )
    assert await warnings(index, Principal("all", SCOPE, "restricted"), filter=hidden, collections=("plans",)) == ()


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (Eq("metadata.year", "1843"), ("no document has a text in 'metadata.year'",)),
        (Range("metadata.author", gt=3), ("no document has a number in 'metadata.author'",)),
        (In("metadata.year", (1, True)), ("no document has a truth in 'metadata.year'",)),
        (And((Eq("metadata.year", 1843), Eq("metadata.author", "Ada"), Eq("metadata.flags", True))), ()),
    ],
)
async def test_an_explanation_says_that_a_key_has_no_value_of_a_kind(
    index: EmbeddedIndex, condition: Filter, expected: tuple[str, ...]
) -> None:
    assert await warnings(index, filter=condition, explain=True) == expected
    assert await warnings(index, filter=condition) == ()


def test_the_nearest_of_very_many_long_names_is_found_in_time() -> None:
    """Names of few different letters take seconds each if all are compared."""
    names = [f"c{number:05}-{'a' * 70}" for number in range(20_000)]
    durations_s = {}
    for count in (_MAX_COMPARED, len(names)):
        start = process_time()
        assert close_names(f"c00007-{'a' * 69}b", names[:count], 1)
        durations_s[count] = process_time() - start
    assert durations_s[len(names)] < 5 * durations_s[_MAX_COMPARED]  # 40 times if all were compared
    assert close_names("fims", [*names, "films"], 1) == ["films"]
    assert close_names("x" * 81, ["x" * 81], 1) == []
