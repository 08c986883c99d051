"""The service opens and searches with both ends of the range of every setting."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from annotated_types import Ge, Gt, Le, Lt

from orchestrator.bootstrap import open_service
from orchestrator.bootstrap.first_search import warm_up
from orchestrator.settings import Settings, setting_fields

pytestmark = pytest.mark.anyio

NEEDED = {"qdrant_write_consistency": {"replication_factor": 10}}
"""Other settings that a value needs."""


def ends() -> Iterator[tuple[str, float]]:
    """Each setting that has a range, with each end that belongs to it."""
    for name, (_, _, field) in setting_fields().items():
        for bound in field.metadata:
            if isinstance(bound, Ge | Le):
                yield name, bound.ge if isinstance(bound, Ge) else bound.le  # type: ignore[misc]


def test_most_settings_with_a_number_have_two_ends() -> None:
    bounds = [bound for _, _, field in setting_fields().values() for bound in field.metadata]
    assert len(list(ends())) > 40
    assert sum(isinstance(bound, Gt | Lt) for bound in bounds) < 20


@pytest.mark.parametrize(("name", "value"), list(ends()))
async def test_the_service_opens(chosen: Settings, name: str, value: float) -> None:
    async with open_service(chosen.changed(**NEEDED.get(name, {}), **{name: value})) as service:
        await warm_up(service)
