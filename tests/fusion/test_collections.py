from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion.collections import merge_collections
from fusion.columns import Ranking
from fusion.rank_fields import RankFields
from fusion.values import DocumentFields
from tests.fusion.helpers import numbered

ONE = Ranking.of_ids("keyword", ("a", "b"), (9.0, 2.0), fields={"a": DocumentFields("p", 0)})
OTHER = Ranking.of_ids(
    "keyword", ("x", "y"), (4.0, 2.0), entity_coverage=0.5, fields={"y": DocumentFields(importance=1.0)}
)


def fields_by_id(ranking: Ranking) -> dict[str, DocumentFields]:
    """The documents that have any field."""
    if ranking.fields is None:
        return {}
    by_id = {id_: ranking.fields.row(row) for row, id_ in enumerate(ranking.ids)}
    return {id_: fields for id_, fields in by_id.items() if fields != DocumentFields()}


def test_the_order_is_that_of_the_scores_and_ranks_are_those_within_the_collections() -> None:
    both = merge_collections([ONE, OTHER])
    assert [(document.id, document.rank, document.score) for document in both] == [
        ("a", 1, 9.0),
        ("x", 1, 4.0),
        ("b", 2, 2.0),
        ("y", 2, 2.0),
    ]
    assert both.entity_coverage == 0.5
    assert fields_by_id(both) == {"a": DocumentFields("p", 0), "y": DocumentFields(importance=1.0)}
    swapped = merge_collections([OTHER, ONE])
    assert list(swapped) == list(both)
    assert (swapped.source, swapped.entity_coverage) == (both.source, both.entity_coverage)
    assert fields_by_id(swapped) == fields_by_id(both)


def test_a_document_of_two_collections_counts_once_at_its_better_score() -> None:
    both = merge_collections([ONE, Ranking.of_ids("keyword", ("b", "x"), (4.0, 1.0))])
    assert [(document.id, document.rank, document.score) for document in both] == [
        ("a", 1, 9.0),
        ("b", 1, 4.0),
        ("x", 2, 1.0),
    ]


def test_a_collection_that_knows_no_fields_of_a_document_does_not_hide_those_of_another() -> None:
    """As in :meth:`Candidates.of`: only a document's own fields count, in whatever order the collections come."""
    known = Ranking.of_ids("keyword", ("a",), (2.0,), fields={"a": DocumentFields("p", 0)})
    unknown = Ranking.of_ids("keyword", ("a", "b"), (1.0, 0.5), fields={"b": DocumentFields(importance=1.0)})
    expected = {"a": DocumentFields("p", 0), "b": DocumentFields(importance=1.0)}
    assert fields_by_id(merge_collections([unknown, known])) == expected
    assert fields_by_id(merge_collections([known, unknown])) == expected


def test_one_ranking_is_returned_unchanged() -> None:
    assert merge_collections([ONE]) is ONE


@pytest.mark.parametrize("rankings", [[], [ONE, Ranking.of_ids("vector", (), ())]])
def test_rankings_that_are_not_of_one_source_are_an_error(rankings: list[Ranking]) -> None:
    count = len({ranking.source for ranking in rankings})
    with pytest.raises(ValueError, match=f"rankings of {count} sources cannot be merged, allowed are rankings of one"):
        merge_collections(rankings)


IDS = ("a", "b", "c", "d", "e", "f")
FIELDS = {"a": DocumentFields("p", 0), "c": DocumentFields("p", 1), "e": DocumentFields(importance=2.0)}


@st.composite
def collections(draw: st.DrawFn) -> list[Ranking]:
    """Rankings of one source with documents in common and equal scores, each with its documents' fields."""
    rankings = []
    for _ in range(draw(st.integers(1, 4))):
        ids = draw(st.permutations(IDS))[: draw(st.integers(0, 6))]
        scores = draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.5]), min_size=len(ids), max_size=len(ids)))
        own = {id_: FIELDS[id_] for id_ in ids if id_ in FIELDS}
        coverage = draw(st.floats(0, 1))
        rankings.append(Ranking.of_ids("keyword", ids, sorted(scores, reverse=True), coverage, own))
    return rankings


def merged_ids(rankings: list[Ranking]) -> tuple[list[object], float, dict[str, DocumentFields]]:
    ranking = merge_collections(rankings)
    return list(ranking), ranking.entity_coverage, fields_by_id(ranking)


@given(collections())
def test_the_order_and_the_grouping_of_the_collections_never_matter(rankings: list[Ranking]) -> None:
    expected = merged_ids(rankings)
    assert all(merged_ids(list(order)) == expected for order in itertools.permutations(rankings))
    for split in range(1, len(rankings)):
        assert merged_ids([merge_collections(rankings[:split]), merge_collections(rankings[split:])]) == expected
    assert merged_ids([*rankings, *rankings]) == expected


@given(collections())
def test_each_document_counts_once_with_its_best_score_and_the_rank_that_belongs_to_it(rankings: list[Ranking]) -> None:
    best: dict[str, tuple[float, int]] = {}
    for document in itertools.chain(*rankings):
        value = (-document.score, document.rank)
        best[document.id] = min(best.get(document.id, value), value)
    expected = [(id_, rank, -negative) for negative, rank, id_ in sorted((*value, id_) for id_, value in best.items())]
    ranking = merge_collections(rankings)
    if len(rankings) > 1:
        assert [(document.id, document.rank, document.score) for document in ranking] == expected
    assert ranking.entity_coverage == max(each.entity_coverage for each in rankings)
    assert fields_by_id(ranking) == {id_: fields for id_, fields in FIELDS.items() if id_ in best}


@given(collections(), st.permutations(IDS))
def test_merging_by_number_and_by_id_gives_the_same_ranking(rankings: list[Ranking], names: list[str]) -> None:
    shared = numbered(rankings, names, RankFields.of([FIELDS.get(id_) for id_ in names]))
    assert merged_ids(shared) == merged_ids(rankings)
    if any(len(each) for each in rankings):
        assert merge_collections(shared).table is next(each.table for each in shared if len(each))
