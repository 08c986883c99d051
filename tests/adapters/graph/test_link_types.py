"""How far a walk follows links: trees are found by their form, also imperfect ones, and nothing else is."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

import pytest

from adapters.graph.link_types import KNOWN_STRENGTHS, LinkCounts, full_length, link_strength
from adapters.ports.graph import LinkStrength

Pairs = set[tuple[int, int]]
NODES = 400


def counts(links: Pairs) -> LinkCounts:
    by_source, by_target = Counter(source for source, _ in links), Counter(target for _, target in links)
    return LinkCounts(
        links=len(links),
        documents=len(by_source.keys() | by_target.keys()),
        sources=len(by_source),
        targets=len(by_target),
        squares_by_source=sum(degree**2 for degree in by_source.values()),
        squares_by_target=sum(degree**2 for degree in by_target.values()),
    )


def tree(children: int) -> Pairs:
    """Each document leads to its parent."""
    return {(node, (node - 1) // children) for node in range(1, NODES)}


def with_second_parents(links: Pairs, share: float) -> Pairs:
    chance = random.Random(1)
    parents = sorted({parent for _, parent in links})
    second = {(child, chance.choice(parents)) for child, _ in sorted(links) if chance.random() < share}
    return links | {(child, parent) for child, parent in second if child != parent}


@pytest.mark.parametrize("children", [2, 4, 20, NODES])
@pytest.mark.parametrize("share", [0.0, 0.05, 0.11, 0.3])
def test_a_tree_is_a_hierarchy_also_with_some_second_parents(children: int, share: float) -> None:
    links = with_second_parents(tree(children), share)
    assert counts(links).forward_hierarchy() > 0.8
    assert counts(links).backward_hierarchy() == 0.0
    reverse = counts({(parent, child) for child, parent in links})
    assert (reverse.forward_hierarchy(), reverse.backward_hierarchy()) == (0.0, counts(links).forward_hierarchy())


def test_the_more_second_parents_the_less_it_is_a_hierarchy() -> None:
    """Without a cliff: no step of 5 % changes it by more than 0.3."""
    degrees = [counts(with_second_parents(tree(5), share / 20)).forward_hierarchy() for share in range(21)]
    assert degrees[0] == 1.0
    assert degrees[-1] == 0.0
    assert all(0.0 <= before - after <= 0.3 for before, after in pairwise(degrees))


def test_other_links_are_no_hierarchy() -> None:
    chance = random.Random(2)
    at_random = {(chance.randrange(NODES), chance.randrange(NODES)) for _ in range(NODES)}
    nearest = {(node, (node + step) % NODES) for node in range(NODES) for step in range(1, 6)}
    row = {(node, node + 1) for node in range(NODES)}
    few = {(node, 0) for node in range(1, 20)}
    for links in (at_random, nearest, row, few):
        assert (counts(links).forward_hierarchy(), counts(links).backward_hierarchy()) == (0.0, 0.0)


TREE, ROW = counts(tree(5)), counts({(node, node + 1) for node in range(NODES)})


@pytest.mark.parametrize(
    ("name", "links", "expected"),
    [
        ("about", TREE, (0.0, 1.0, "leads to a parent, by the pattern of 399 links")),
        ("about", ROW, (1.0, 1.0, "no hierarchy")),
        ("Part-Of", ROW, (0.0, 1.0, "leads to a parent, by its name")),
        ("contains", ROW, (1.0, 0.0, "leads to a child, by its name")),
        ("chosen", TREE, (0.5, 0.25, "as set")),
    ],
)
def test_the_strength_is_as_set_or_by_name_or_by_form(
    name: str, links: LinkCounts, expected: tuple[float, float, str]
) -> None:
    assert link_strength(name, links, {"chosen": (0.5, 0.25)}) == LinkStrength(name, *expected)


def test_types_are_known_by_their_names() -> None:
    assert (KNOWN_STRENGTHS["child_of"], KNOWN_STRENGTHS["contains"]) == ((0.0, 1.0), (1.0, 0.0))
    assert "other" not in KNOWN_STRENGTHS


@pytest.mark.parametrize(("words", "documents", "expected"), [(1_000, 10, 25.0), (300, 10, 15.0), (5, 10, 1.0)])
def test_the_full_length_is_half_of_the_average_and_at_most_25(words: float, documents: int, expected: float) -> None:
    assert full_length(words, documents) == expected
