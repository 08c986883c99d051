"""``python -m benchmarks.feedback SET …``: settings tuned on the clicks of simulated users, against the default ones.

For a month, users search twice a day for each of one half of the queries of a judged set. The settings of the service
change twice, so a document is shown at several positions. Users look at a position with a probability that falls with
it, and click what they look at with one that depends on the true judgment. From the clicks come the judgments of
``trivium judgments``. Settings are tuned on these, and compared with the default ones on the other half of the queries,
by the true judgments. Exit code 1 if the tuned settings are significantly worse on a set.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import anyio
from rich.table import Table
from scipy.stats import kendalltau

from adapters import Viewer
from adapters.model.feedback import Feedback, ShownResponse
from benchmarks.claims import out, report
from orchestrator.cli.judged_sets import open_for_evaluation, prepare
from orchestrator.evaluation.comparison import SIGNIFICANCE, Difference, compare
from orchestrator.evaluation.dataset import Dataset, read_dataset
from orchestrator.evaluation.feedback_judgments import judgments_of
from orchestrator.evaluation.judgments import JudgedQueries
from orchestrator.evaluation.measures import mean
from orchestrator.evaluation.runs import make_request
from orchestrator.evaluation.tuning import measured, train_test_split, tune
from orchestrator.service.service import Service
from orchestrator.settings import Settings, load

_DAYS, _SEARCHES_A_DAY = 30, 2
_SHOWN = 10
_LOOKED_AT = (1.0, 0.6, 0.42, 0.32, 0.25, 0.2, 0.17, 0.14, 0.12, 0.1)
"""Of positions from 1 on: about the click rates of web search."""
_CLICKED, _CLICKED_BY_MISTAKE = 0.8, 0.05
"""How often relevant documents, and others, are clicked by those who look at them."""
_WEIGHTS: tuple[dict[str, float], ...] = ({}, {"keyword": 4.0}, {"vector": 4.0})
"""Of the settings in each third of the month."""


def main() -> None:
    """Simulate, tune and compare for each set."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="+", help="folders with judged queries")
    parser.add_argument("--work", type=Path, default=Path("benchmarks/.data/quality"), help="folder of the indexes")
    arguments = parser.parse_args()
    table = Table(title="nDCG@10 on the queries without clicks", title_justify="left")
    columns = ("set", "clicks", "judgments", "tau", "default", "tuned", "p", "changed settings", "written by tune")
    for column in columns:
        table.add_column(column)
    worse = []
    for folder in arguments.folders:
        dataset = read_dataset(folder)
        workspace, _ = prepare(load(data_dir=arguments.work), dataset)
        row, difference = anyio.run(_measured_set, workspace.settings, dataset)
        table.add_row(dataset.name, *row)
        if difference.difference < 0 and difference.p < SIGNIFICANCE:
            worse.append(dataset.name)
    out.print(table)
    claim = "settings tuned on clicks are nowhere significantly worse than the default ones"
    raise SystemExit(not report(not worse, claim, ", ".join(worse) or "none"))


async def _measured_set(settings: Settings, dataset: Dataset) -> tuple[list[str], Difference]:
    """The cells of a set after its name, and what the tuned settings gain."""
    async with open_for_evaluation(settings) as service:
        searched, others = train_test_split(dataset.queries)
        recorded = await _month(service, dataset, searched)
        found = judgments_of(recorded, {}, min_looks=5).judgments
        ids = {dataset.queries[id_]: id_ for id_ in searched}
        judgments: dict[str, dict[str, int]] = {}
        for each in found:
            judgments.setdefault(ids[each.query], {})[each.document] = each.relevance
        truth = [dataset.judgments[ids[each.query]].get(each.document, 0) for each in found]
        tau = kendalltau(truth, [each.relevance for each in found]).statistic
        queries = {id_: dataset.queries[id_] for id_ in judgments}
        judged = JudgedQueries(f"{dataset.name}, clicks", queries, judgments, ())
        result = await tune(service, judged, _silent_round)
        search = service.search
        default = await measured(search, service.anonymous, dataset, others)
        changed_search = search.with_settings(service.settings.changed(**result.changed))
        tuned = await measured(changed_search, service.anonymous, dataset, others)
    difference = compare("tuned", "default", tuned, default)
    means = [mean(default), mean(tuned)]
    clicks = sum(len(feedback) for _, feedback in recorded)
    cells = [f"{clicks}", f"{len(found)}", f"{tau:.2f}", *(f"{each:.4f}" for each in means), f"{difference.p:.3f}"]
    changed = ", ".join(f"{name}={value}" for name, value in result.changed.items()) or "none"
    return [*cells, changed, "no" if result.objection else "yes"], difference


async def _month(service: Service, dataset: Dataset, searched: list[str]) -> list[tuple[ShownResponse, list[Feedback]]]:
    """What users were shown, and what they clicked."""
    dice, scope = random.Random(0), service.anonymous.scope
    recorded = []
    rankings = {}
    for third, weights in enumerate(_WEIGHTS):
        search = service.search.with_settings(service.settings.changed(weights=weights))
        for id_ in searched:
            request = make_request(dataset.queries[id_], {"limit": _SHOWN})
            response = await search.search(request, service.anonymous, "month")
            rankings[third, id_] = tuple((hit.collection, hit.id, hit.parent_id or hit.id) for hit in response.hits)
    for number, (day, id_) in enumerate(
        (day, id_) for day in range(_DAYS) for id_ in searched for _ in range(_SEARCHES_A_DAY)
    ):
        hits = rankings[day * len(_WEIGHTS) // _DAYS, id_]
        shown = ShownResponse(str(number), scope, Viewer("normal"), float(number), "", dataset.queries[id_], 1, hits)
        recorded.append((shown, list(_clicks(shown, dataset.judgments[id_], dice))))
    return recorded


def _clicks(shown: ShownResponse, judged: Mapping[str, int], dice: random.Random) -> Iterator[Feedback]:
    for number, (*_, document) in enumerate(shown.hits):
        attraction = _CLICKED if judged.get(document, 0) > 0 else _CLICKED_BY_MISTAKE
        if dice.random() < _LOOKED_AT[number] * attraction:
            yield Feedback(shown.query_id, number, "used", number + 1, shown.at)


@contextmanager
def _silent_round(number: int, candidates: int) -> Iterator[Callable[[int], None]]:
    del number, candidates
    yield lambda _: None


if __name__ == "__main__":
    main()
