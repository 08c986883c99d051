from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion.columns import Candidates, Documents, RankedDocument, Ranking
from fusion.provenance import FusedHit, fused_hits
from fusion.rank_fields import RankFields
from fusion.rrf import RRF
from fusion.strategy import STRATEGIES, parse
from fusion.sums import Fused, rank_by_sum
from fusion.values import DocumentFields
from tests.fusion.helpers import SOURCES, hits_of, numbered

IDS = tuple("abcdefgh")

ids = st.permutations(IDS).flatmap(lambda order: st.integers(0, len(order)).map(lambda count: order[:count]))
fields = st.builds(
    DocumentFields,
    st.none() | st.sampled_from((*IDS, "p", "q")),
    st.none() | st.integers(0, 9),
    st.none() | st.floats(0, 2e9),
    st.none() | st.floats(0, 10),
)
fields_by_id = st.dictionaries(st.sampled_from(IDS), fields)
weights = st.dictionaries(st.sampled_from(("vector", "graph", "keyword", "other")), st.floats(0, 10))
strategies = st.sampled_from([str(strategy()) for strategy in STRATEGIES.values()]).map(parse)


@st.composite
def rankings(draw: st.DrawFn, known: dict[str, DocumentFields] | None = None) -> list[Ranking]:
    """Rankings of different sources in any order, with many equal scores."""
    sources = draw(st.lists(st.sampled_from(("vector", "graph", "keyword", "other")), unique=True))
    columns = []
    for source in sources:
        column = draw(ids)
        scores = draw(
            st.lists(st.sampled_from((-0.5, 0.0, 0.25, 0.3, 7.0)), min_size=len(column), max_size=len(column))
        )
        own = {id_: known[id_] for id_ in column if id_ in known} if known else None
        columns.append(Ranking.of_ids(source, column, sorted(scores, reverse=True), draw(st.floats(0, 1)), own))
    return columns


def rows_of(candidates: Candidates) -> np.ndarray:
    return np.arange(len(candidates))


def known_fields(candidates: Candidates) -> dict[str, DocumentFields]:
    """The documents that have any field."""
    if candidates.fields is None:
        return {}
    by_id = {id_: candidates.fields.row(row) for row, id_ in enumerate(candidates.ids(rows_of(candidates)))}
    return {id_: each for id_, each in by_id.items() if each != DocumentFields()}


# Rankings


def test_ranks_start_at_one() -> None:
    ranking = Ranking.of_ids("vector", ("b", "a"), (0.9, 0.8))
    assert list(ranking) == [RankedDocument("b", 1, 0.9), RankedDocument("a", 2, 0.8)]


def test_ranks_may_be_given() -> None:
    ranking = Ranking.of_ids("vector", ("b", "a"), (0.9, 0.8), ranks=(1, 1))
    assert list(ranking) == [RankedDocument("b", 1, 0.9), RankedDocument("a", 1, 0.8)]


def test_columns_of_different_length_are_an_error() -> None:
    with pytest.raises(ValueError, match="'vector' has 2 ids but 1 scores"):
        Ranking.of_ids("vector", ("a", "b"), (1.0,))
    with pytest.raises(ValueError, match="'vector' has 2 ids but 1 ranks"):
        Ranking.of_ids("vector", ("a", "b"), (1.0, 0.5), ranks=(1,))


def test_a_document_that_occurs_twice_is_an_error() -> None:
    with pytest.raises(ValueError, match="names a document twice"):
        Ranking.of_ids("vector", ("a", "a"), (1.0, 0.5))


def test_an_empty_ranking_has_no_documents_and_may_have_a_coverage() -> None:
    empty = Ranking.empty("graph", 0.5)
    assert (list(empty), len(empty), empty.entity_coverage, empty.fields) == ([], 0, 0.5, None)
    assert list(Ranking.of_ids("graph", (), ())) == []


@given(ids, st.permutations(IDS))
def test_a_ranking_by_number_is_the_ranking_by_id(column: list[str], names: list[str]) -> None:
    by_id = Ranking.of_ids("keyword", column, [float(-index) for index in range(len(column))])
    (by_number,) = numbered([by_id], names)
    of_docs = Ranking.of_docs("keyword", by_number.docs, by_id.scores.astype(np.float32), by_number.table)
    assert list(by_number) == list(of_docs) == list(by_id)
    assert Documents(by_number.docs, by_number.table).ids == Documents.of_ids(column).ids == tuple(column)


# Fields


@given(st.lists(st.none() | fields, max_size=8), st.data())
def test_fields_are_read_back_from_their_columns(values: list[DocumentFields | None], data: st.DataObject) -> None:
    columns = RankFields.of(values)
    if columns is None:
        assert all(value is None or value == DocumentFields() for value in values)
        return
    assert [columns.row(row) for row in range(len(values))] == [value or DocumentFields() for value in values]
    rows = data.draw(st.lists(st.integers(0, len(values) - 1), max_size=8))
    taken = columns.take(np.array(rows, np.int64))
    assert [taken.row(index) for index in range(len(rows))] == [values[row] or DocumentFields() for row in rows]


def test_fields_of_a_document_that_two_sources_report_come_from_the_last_one_by_name() -> None:
    one = Ranking.of_ids("keyword", ("a", "b"), (2.0, 1.0), fields={"a": DocumentFields("p", 1)})
    other = Ranking.of_ids("vector", ("b", "a"), (2.0, 1.0), fields={"a": DocumentFields("q", 2)})
    silent = Ranking.of_ids("zzz", ("a", "b"), (2.0, 1.0), fields={"b": DocumentFields(importance=3.0)})
    expected = {"a": DocumentFields("q", 2), "b": DocumentFields(importance=3.0)}
    for order in itertools.permutations((one, other, silent)):
        assert known_fields(Candidates.of(order)) == expected


# Candidates


def test_the_columns_of_candidates_by_hand() -> None:
    rankings = [
        Ranking.of_ids("vector", ("b", "a"), (0.9, 0.8)),
        Ranking.of_ids("graph", ("c", "b"), (0.5, 0.25), entity_coverage=0.75),
    ]
    candidates = Candidates.of(rankings)
    row = {id_: number for number, id_ in enumerate(candidates.ids(rows_of(candidates)))}
    order = [row["a"], row["b"], row["c"]]
    assert candidates.sources == ("graph", "vector")
    assert candidates.entity_coverage == {"graph": 0.75, "vector": 0.0}
    assert {source: ranks.tolist() for source, ranks in candidates.ranks.items()} == {"graph": [1, 2], "vector": [1, 2]}
    assert {source: scores.tolist() for source, scores in candidates.scores.items()} == {
        "graph": [0.5, 0.25],
        "vector": [0.9, 0.8],
    }
    assert {source: candidates.ids(rows) for source, rows in candidates.rows.items()} == {
        "graph": ["c", "b"],
        "vector": ["b", "a"],
    }
    assert candidates.positions("graph")[order].tolist() == [3, 1, 0]
    assert candidates.positions("vector")[order[:2]].tolist() == [1, 0]


@given(rankings(), weights, strategies, st.data())
def test_the_order_of_the_rankings_never_matters(
    rankings: list[Ranking], weights: dict[str, float], strategy: RRF, data: st.DataObject
) -> None:
    assert hits_of(strategy, data.draw(st.permutations(rankings)), weights) == hits_of(strategy, rankings, weights)


@given(fields_by_id.flatmap(lambda known: st.tuples(st.just(known), rankings(known))), weights, st.permutations(IDS))
def test_joining_by_number_and_by_id_gives_the_same_hits_and_fields(
    drawn: tuple[dict[str, DocumentFields], list[Ranking]], weights: dict[str, float], names: list[str]
) -> None:
    known, by_id = drawn
    by_number = numbered(by_id, names, RankFields.of([known.get(id_) for id_ in names]))
    for strategy in STRATEGIES.values():
        assert hits_of(strategy(), by_number, weights) == hits_of(strategy(), by_id, weights)
    returned = {id_ for ranking in by_id for id_ in ranking.ids}
    expected = {id_: each for id_, each in known.items() if id_ in returned and each != DocumentFields()}
    assert known_fields(Candidates.of(by_number)) == known_fields(Candidates.of(by_id)) == expected


@given(rankings())
def test_each_document_has_one_row_and_its_rank_and_score_of_every_source(rankings: list[Ranking]) -> None:
    candidates = Candidates.of(rankings)
    ids = candidates.ids(rows_of(candidates))
    assert len(ids) == len(set(ids))
    assert set(ids) == {id_ for ranking in rankings for id_ in ranking.ids}
    for ranking in rankings:
        assert candidates.ids(candidates.rows[ranking.source]) == list(ranking.ids)
        documents = list(ranking)
        for id_, position in zip(ids, candidates.positions(ranking.source).tolist(), strict=True):
            if position == len(candidates):
                assert id_ not in ranking.ids
            else:
                document = documents[position]
                at = candidates.ranks[ranking.source][position], candidates.scores[ranking.source][position]
                assert (document.id, document.rank, document.score) == (id_, *at)


# Orders


@given(rankings(), st.data())
def test_equal_sums_are_ordered_by_keyword_position_or_that_of_the_only_source_and_then_by_id(
    rankings: list[Ranking], data: st.DataObject
) -> None:
    candidates = Candidates.of(rankings)
    count = len(candidates)
    values = np.array(data.draw(st.lists(st.sampled_from((0.0, 0.5, 1.0)), min_size=count, max_size=count)), np.float64)
    decides = rankings[0].source if len(rankings) == 1 else "keyword"
    position = next((list(ranking.ids) for ranking in rankings if ranking.source == decides), [])

    def rule(row: int) -> tuple[float, int, str]:
        (id_,) = candidates.ids(np.array([row]))
        return -values[row], position.index(id_) if id_ in position else count, id_

    assert rank_by_sum(values, candidates, SOURCES).tolist() == sorted(range(count), key=rule)
    rows = data.draw(st.permutations(range(count)))[: data.draw(st.integers(0, count))]
    chosen = np.array(rows, np.int64)
    assert rank_by_sum(values[chosen], candidates, SOURCES, chosen).tolist() == sorted(rows, key=rule)


@given(rankings(), weights, strategies, st.floats(-0.5, 1.5), st.data())
def test_above_returns_the_candidates_with_at_least_the_minimum_score(
    rankings: list[Ranking], weights: dict[str, float], strategy: RRF, other: float, data: st.DataObject
) -> None:
    candidates = Candidates.of(rankings)
    fused = strategy(candidates, weights, SOURCES)
    minimum = data.draw(st.sampled_from([other, *fused.score.tolist()]))

    def hits(order: Fused) -> list[FusedHit]:
        return fused_hits(candidates, order)

    assert hits(fused.above(minimum)) == [hit for hit in hits(fused) if hit.fusion_score >= minimum]
    assert fused.above(0.0) is fused
