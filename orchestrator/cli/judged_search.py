"""What ``trivium evaluate`` searches: a data set, the documents that are indexed, or a running service."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import anyio

from orchestrator.cli.judged_sets import open_for_evaluation, prepare
from orchestrator.cli.progress import progress_bar
from orchestrator.cli.remote import remote_client
from orchestrator.cli.scope_options import searcher
from orchestrator.cli.terminal import err, for_reading
from orchestrator.evaluation import runner
from orchestrator.evaluation.conditions import Conditions, conditions_of
from orchestrator.evaluation.dataset import read_dataset
from orchestrator.evaluation.judgments import BadDataset, JudgedQueries
from orchestrator.evaluation.runs import DEPTH, REFERENCE_RUN, RUNS_OF_ANY_INDEX, SHOWN_HITS
from orchestrator.evaluation.searched_index import Results, SearchedIndex, ServiceIndex, search_all
from orchestrator.settings.groups import Settings
from orchestrator.settings.loading import load

_SOURCE_TIMEOUT_MS = 60_000
_REMOTE_TIMEOUT_S = 30.0


@dataclass(frozen=True)
class Searched:
    """What an evaluation measures.

    :param titles: by id, of the judged documents that exist, and of the first hits of the reference run.
    """

    judged: JudgedQueries
    results: Results
    titles: Mapping[str, str]
    conditions: Conditions


def search_dataset(folder: Path, workers: int, part: tuple[int, int] | None) -> Searched | None:
    """Index a data set and search its queries, in several processes.

    :param part: number of the part of the queries to search, from 0, and the number of parts; then nothing is returned.
    """
    dataset = read_dataset(folder)
    workspace, indexed = prepare(load(), dataset)
    store = workspace.results(indexed.build_id)
    if part is not None:
        own = len(range(part[0], len(dataset.queries), part[1])) * len(workspace.runs)
        with progress_bar(err, "searching", "queries", own) as advance:
            anyio.run(runner.run_shard, open_for_evaluation, workspace, store, *part, advance)
        return None
    with progress_bar(err, "searching", "queries", len(dataset.queries) * len(workspace.runs)) as advance:
        runner.run_all(open_for_evaluation, workspace, store, workers, advance)
    results = runner.collect(workspace, store)

    async def describe() -> Searched:
        async with open_for_evaluation(workspace.settings) as service:
            titles = await _titles(ServiceIndex(service, service.anonymous), dataset, results)
            return Searched(dataset, results, titles, workspace.conditions(indexed.documents))

    searched = anyio.run(describe)
    anyio.run(workspace.remove_from_servers, open_for_evaluation)
    return searched


def search_own_index(judged: JudgedQueries, tenant: str | None, environment: str | None, key: str | None) -> Searched:
    """Search the documents of the data folder, or of the servers that the settings name.

    :raises BadDataset: if there are none.
    """
    settings = load()
    deeper = settings.changed(source_timeout_ms=_SOURCE_TIMEOUT_MS, max_limit=max(settings.requests.max_limit, DEPTH))

    async def search(chosen: Settings) -> Searched:
        async with open_for_evaluation(chosen) as service:
            principal = searcher(service, tenant, environment, key)
            counts = (await service.documents.collections(principal)).collections
            place = f"the index in {settings.storage.data_dir}"
            if not counts:
                raise BadDataset(f"{place} has no documents for this caller: `trivium index PATH` adds some")
            documents = sum(each.documents for each in counts)
            conditions = conditions_of(place, documents, settings, principal.scope, principal.clearance)
            return await _search(ServiceIndex(service, principal), judged, conditions)

    with for_reading(deeper) as chosen:
        return anyio.run(search, chosen)


def search_service(judged: JudgedQueries, url: str, key: str | None) -> Searched:
    """Search at a running service, as the caller with its key."""

    with remote_client(url, key, _REMOTE_TIMEOUT_S) as client:
        from orchestrator.cli.remote_index import RemoteIndex  # noqa: PLC0415  # it needs the packages of the client

        index = RemoteIndex(client, url)
        return anyio.run(_search, index, judged, index.conditions())


async def _search(index: SearchedIndex, judged: JudgedQueries, conditions: Conditions) -> Searched:

    with progress_bar(err, "searching", "queries", len(judged.queries) * len(RUNS_OF_ANY_INDEX)) as advance:
        results = await search_all(index, judged, RUNS_OF_ANY_INDEX, advance)
    return Searched(judged, results, await _titles(index, judged, results), conditions)


async def _titles(index: SearchedIndex, judged: JudgedQueries, results: Results) -> Mapping[str, str]:
    """The titles of the judged documents, and of the first hits of the reference run."""
    first = {hit.id for result in results[REFERENCE_RUN].values() for hit in result.hits[:SHOWN_HITS]}
    return await index.titles(judged.judged_documents | first)
