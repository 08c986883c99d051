"""``trivium compare`` on a small data set and the real engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from orchestrator.bootstrap import open_service
from orchestrator.evaluation.comparison import SIGNIFICANCE
from orchestrator.evaluation.dataset import read_dataset
from orchestrator.evaluation.settings_comparison import Variant, compare_settings
from orchestrator.evaluation.workspace import Workspace
from orchestrator.schema.search import SearchRequest, SearchResponse
from orchestrator.service.search import SearchService
from orchestrator.settings import load
from tests.orchestrator.evaluation.command import run

pytestmark = pytest.mark.usefixtures("evaluation_environment")


def settings_file(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_of_two_settings_the_better_ones_are_named_with_a_p_value(folder: Path, tmp_path: Path) -> None:
    """The graph alone finds the subject of a query and no more; the files override the environment."""
    good = settings_file(tmp_path / "good.env", "TRIVIUM_PROFILE=joint")
    bad = settings_file(tmp_path / "bad.env", "TRIVIUM_WEIGHTS=keyword=0,vector=0")
    for first, second in ((good, bad), (bad, good)):
        code, out, err = run("compare", folder, "--settings", first, "--settings", second, "--json")
        assert code == 0, err
        outcome = json.loads(out)
        assert outcome["winner"] == str(good)
        assert (outcome["documents"], outcome["queries"]) == (40, 30)
        quality = outcome["quality"]
        assert (quality["run"], quality["against"]) == (str(second), str(first))
        assert (quality["difference"] > 0) is (second == good)
        assert quality["p"] < SIGNIFICANCE
        assert set(outcome["median_ms"]) == {str(good), str(bad)}
    code, out, _ = run("compare", folder, "--settings", good, "--settings", bad)
    assert "".join(out.split()).endswith(f"{good}isbetter")


def test_equal_settings_have_no_winner(folder: Path, tmp_path: Path) -> None:
    first, second = (settings_file(tmp_path / name, "TRIVIUM_WINDOW_RADIUS=2") for name in ("a.env", "b.env"))
    outcome = json.loads(run("compare", folder, "--settings", first, "--settings", second, "--json")[1])
    assert (outcome["winner"], outcome["quality"]["difference"], outcome["quality"]["p"]) == (None, 0.0, 1.0)


async def _search_order(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """The fusion and the query of each search of a comparison."""
    dataset = read_dataset(folder)
    workspace = Workspace.of(load(), dataset)
    searched: list[tuple[str, str]] = []
    search = SearchService.search

    async def recorded(self: SearchService, request: SearchRequest, *more: Any) -> SearchResponse:
        searched.append((self.settings.requests.profile, request.query))
        return await search(self, request, *more)

    monkeypatch.setattr(SearchService, "search", recorded)
    variants = [Variant(name, workspace.settings.changed(profile=name)) for name in ("joint", "rrf")]
    await workspace.index(open_service, lambda _: None)
    await compare_settings(open_service, *variants, dataset, 40, lambda _: None)
    return searched


def test_the_settings_take_turns(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    searched = anyio.run(_search_order, folder, monkeypatch)
    assert [profile for profile, _ in searched] == ["joint", "rrf", "rrf", "joint"] * 15
    assert [query for _, query in searched[::2]] == [query for _, query in searched[1::2]]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ((("TRIVIUM_PROFILE=rrf",),), "--settings is given 1 times, it must be given twice"),
        ((("TRIVIUM_CENTRALITY=degree",), ("TRIVIUM_CENTRALITY=none",)), "an index has one centrality"),
        (
            (("TRIVIUM_QDRANT_ON_DISK=true",), ()),
            "TRIVIUM_QDRANT_ON_DISK differs, and a comparison cannot show its effect",
        ),
        ((("TRIVIUM_DEFAULT_COLLECTIONS=a",), ()), "TRIVIUM_DEFAULT_COLLECTIONS differs"),
        ((("TRIVIUM_NOTHING=1",), ()), "there is no setting 'TRIVIUM_NOTHING'"),
        ((("TRIVIUM_PROFILE=best",), ()), "TRIVIUM_PROFILE is 'best'"),
    ],
)
def test_settings_that_cannot_be_compared_are_refused(
    folder: Path, tmp_path: Path, lines: tuple[tuple[str, ...], ...], message: str
) -> None:
    files = [settings_file(tmp_path / f"{number}.env", *each) for number, each in enumerate(lines)]
    code, _, err = run("compare", folder, *(part for file in files for part in ("--settings", file)))
    assert code == 2
    assert message in err.replace("\n", " ")
