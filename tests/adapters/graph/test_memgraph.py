"""The walk on the server, on a real Neo4j, compared with the walk in this process."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random

import msgspec
import pytest

from adapters import Link
from adapters.graph.bolt import Bolt
from adapters.graph.cypher import statement
from adapters.graph.edges import OWN_WEIGHT, entity_names
from adapters.graph.entity_linking import Mentions, WordCounts, link_entities, walk_seeds
from adapters.graph.link_types import full_length
from adapters.graph.memgraph import MemgraphGraph
from adapters.graph.memgraph_search import ring_weights
from adapters.graph.names import words_by_case
from adapters.model.document import passage
from adapters.model.errors import Unavailable
from adapters.model.filter import Eq
from adapters.ports import SourceQuery, VectorRecord
from adapters.servers.server import GRAPH_SCHEMES, Address, Limits
from fusion.columns import Documents
from fusion.random_walk import Walk
from tests.adapters.source_fixtures import source_query, source_under_test
from tests.conftest import SCOPE, vector_record
from tests.orchestrator.bootstrap.helpers import eventually
from tests.servers.start import free_port

SEEDED = msgspec.structs.replace(source_query("no known name"), seeds=Documents.of_ids(("a",)))

LINKED = [vector_record("a", "one", entities=(), links=(Link("b", "cites"),)), vector_record("b", "two", entities=())]
COMMON_NAME = [vector_record(id_, "words", entities=("Proxima",)) for id_ in ("a", "b")]


def test_the_weights_of_the_rings_are_those_of_a_walk_with_restart() -> None:
    assert ring_weights(Walk(steps=5, follow=0.7), [1.0] * 4, [0.0] * 3) == pytest.approx([0.3, 0.21, 0.21903, 0.27097])
    assert ring_weights(Walk(steps=5, follow=0.7), [1.0] * 6, [0.0] * 5) == pytest.approx(
        [0.3, 0.21, 0.147, 0.1029, 0.07203, 0.16807]  # nothing is left to be spread
    )
    assert sum(ring_weights(Walk(steps=8, follow=0.5), [1.0] * 4, [0.0] * 3)) == pytest.approx(1.0)


def test_what_returns_to_the_seeds_is_not_lost() -> None:
    """Of the mass of each ring a half goes on and a half returns."""
    masses = [0.5**ring for ring in range(6)]
    weights = ring_weights(Walk(steps=8, follow=0.7), masses, [mass / 2 for mass in masses[:-1]])
    assert sum(weight * mass for weight, mass in zip(weights, masses, strict=True)) == pytest.approx(1.0)


CHAIN = [
    vector_record("a", "first", entities=("Proxima", "Vega")),
    vector_record("b", "second", entities=("Vega", "Sirius")),
    vector_record("c", "third", entities=("Sirius", "Rigel")),
    vector_record("d", "fourth", entities=("Rigel",)),
]


@pytest.mark.anyio
@pytest.mark.server
@pytest.mark.parametrize("name", ["embedded graph", "memgraph"])
@pytest.mark.parametrize(("hops", "expected"), [(1, "ab"), (2, "abc"), (3, "abcd")])
async def test_hops_are_documents_away_from_a_name_and_nearer_ones_come_first(
    name: str, hops: int, expected: str, tmp_path: Path, server_url: Callable[[str], str]
) -> None:
    query = msgspec.structs.replace(source_query("what is Proxima?"), hops=hops)
    async with source_under_test(name, tmp_path, server_url) as subject:
        await subject.write(CHAIN)
        ranking = await subject.source.search(query)
    assert "".join(ranking.ids) == expected
    assert (ranking.scores > 0).all()


def passages_with(word: str, count: int, mentions: int) -> list[VectorRecord]:
    """Passages that contain a word; the first of them mention it as a name, the others begin with it."""
    name = word.capitalize()
    return [
        vector_record(f"{word}{number}", f"about {name}" if number < mentions else f"{name} is this")
        for number in range(count)
    ]


@pytest.mark.anyio
@pytest.mark.server
@pytest.mark.parametrize("name", ["embedded graph", "memgraph"])
async def test_a_single_word_is_a_name_if_it_is_rare_and_often_meant_as_one(
    name: str, tmp_path: Path, server_url: Callable[[str], str]
) -> None:
    """Of 300 passages, 2 % are 6; three fifths of 5 are 3. Capitalised in a query, a fifth is enough."""
    words = {
        "rare": (6, 6),
        "frequent": (7, 7),
        "zeppelin": (5, 3),
        "chance": (5, 2),
        "Orion": (5, 1),
        "Perseus": (6, 1),
    }
    records = [each for word, (count, mentions) in words.items() for each in passages_with(word, count, mentions)]
    fillers = [vector_record(f"f{number}", "nothing", entities=()) for number in range(300 - len(records))]
    async with source_under_test(name, tmp_path, server_url) as subject:
        in_lower_case = [vector_record("lower", "about words"), *passages_with("words", 4, 4)]
        await subject.write([*records, *fillers[len(in_lower_case) :], *in_lower_case])
        words["words"] = (5, 4)
        found = {word: bool(len(await subject.source.search(source_query(f"what is {word}?")))) for word in words}
    assert found == {
        "rare": True,
        "frequent": False,
        "zeppelin": True,
        "chance": False,
        "Orion": True,
        "Perseus": False,
        "words": False,  # one of the passages has it in lower case
    }


@pytest.mark.anyio
@pytest.mark.server
@pytest.mark.parametrize("name", ["embedded graph", "memgraph"])
async def test_what_authors_list_is_known(name: str, tmp_path: Path, server_url: Callable[[str], str]) -> None:
    """Whatever its length and frequency, until all authors have left it out."""
    listed = [vector_record(f"l{number}", "EU and c++", entities=("EU", "C++")) for number in range(10)]
    unlisted = [vector_record(f"l{number}", "the EU and c++") for number in range(10)]
    async with source_under_test(name, tmp_path, server_url) as subject:
        await subject.write([*listed, *(vector_record(f"f{number}", "nothing") for number in range(10))])
        assert len(await subject.source.search(source_query("eu treaties", depth=20))) == 10
        assert len(await subject.source.search(source_query("templates in c++", depth=20))) == 10
        await subject.write(unlisted)
        assert len(await subject.source.search(source_query("eu treaties", depth=20))) == 0


@pytest.mark.anyio
@pytest.mark.server
@pytest.mark.parametrize("writes", [[LINKED], [LINKED[:1], LINKED[1:]], [COMMON_NAME]], ids=["link", "later", "name"])
async def test_the_probabilities_are_those_of_the_embedded_walk(
    writes: Sequence[Sequence[VectorRecord]], tmp_path: Path, server_url: Callable[[str], str]
) -> None:
    """Exactly so with two documents; also if the target of a link is written later."""
    scores = []
    for name in ("embedded graph", "memgraph"):
        async with source_under_test(name, tmp_path, server_url) as subject:
            for records in writes:
                await subject.write(records)
            ranking = await subject.source.search(SEEDED)
            scores.append(dict(zip(ranking.ids, ranking.scores.tolist(), strict=True)))
    embedded, on_server = scores
    assert set(embedded) == {"a", "b"}
    assert on_server == pytest.approx(embedded, rel=1e-6)


@pytest.mark.anyio
@pytest.mark.server
@pytest.mark.parametrize("name", ["embedded graph", "memgraph"])
@pytest.mark.parametrize(("links", "is_passed"), [(199, True), (200, False)])
async def test_a_hub_is_reached_but_not_passed_through_unless_it_is_a_seed(
    name: str, links: int, is_passed: bool, tmp_path: Path, server_url: Callable[[str], str]
) -> None:
    """The limit is 200 edges: those of its links, and that of the document that links to it.

    Its targets are linked in a row, too: with one parent each they would be a hierarchy.
    """
    targets = [str(number) for number in range(links)]
    following = dict(pairwise(targets))
    hub = vector_record("hub", "one", entities=(), links=tuple(Link(target, "cites") for target in targets))
    first = vector_record("a", "two", entities=(), links=(Link("hub", "cites"),))
    others = [
        vector_record(
            target, "three", entities=(), links=(Link(following[target], "cites"),) if target in following else ()
        )
        for target in targets
    ]
    async with source_under_test(name, tmp_path, server_url) as subject:
        await subject.write([hub, first, *others])
        from_first = await subject.source.search(SEEDED)
        assert {"a", "hub"} <= set(from_first.ids)
        assert (len(from_first) > 2) is is_passed
        from_hub = await subject.source.search(
            msgspec.structs.replace(SEEDED, seeds=Documents.of_ids(("hub",)), depth=100)
        )
        assert len(from_hub) > 2


@pytest.mark.anyio
@pytest.mark.server
@pytest.mark.parametrize("name", ["embedded graph", "memgraph"])
async def test_a_walk_goes_on_from_more_seeds_than_it_has_by_default(
    name: str, tmp_path: Path, server_url: Callable[[str], str]
) -> None:
    """The default is 50."""
    seeds = [f"seed{number}" for number in range(80)]
    records = [vector_record(id_, "text", entities=(), links=(Link(f"of {id_}", "cites"),)) for id_ in seeds]
    records += [vector_record(f"of {id_}", "text", entities=()) for id_ in seeds]
    query = msgspec.structs.replace(source_query("no known name"), seeds=Documents.of_ids(tuple(seeds)), depth=200)
    async with source_under_test(name, tmp_path, server_url) as subject:
        await subject.write(records)
        ranking = await subject.source.search(query)
    assert set(ranking.ids) == {each.record.document.id for each in records}


@pytest.mark.anyio
@pytest.mark.server
async def test_a_probe_has_the_server_plan_what_searches_need(server_url: Callable[[str], str]) -> None:
    """As after its restart: no search is needed for it."""
    address = Address.parse(server_url("bolt"), GRAPH_SCHEMES)
    unreachable = Address.parse(f"bolt://127.0.0.1:{free_port()}", GRAPH_SCHEMES)
    limits = Limits(read_timeout_s=20.0, write_timeout_s=60.0)
    graph, stopped = (MemgraphGraph(Bolt(each, limits), uuid.uuid4().hex, "test-1") for each in (address, unreachable))
    try:
        is_warming = [graph.is_warming]
        await graph.release()
        is_warming.append(graph.is_warming)
        await eventually(lambda: not graph.is_warming, 60)
        await graph.release()
        is_warming.append(graph.is_warming)
        assert is_warming == [False, True, False]
        with pytest.raises(Unavailable):
            await stopped.release()
        assert not stopped.is_warming
    finally:
        await graph.close()
        await stopped.close()


@pytest.mark.anyio
@pytest.mark.server
async def test_maintenance_updates_the_strengths(tmp_path: Path, server_url: Callable[[str], str]) -> None:
    """A write updates the strengths of its own documents only: those of all that mention its names may be many."""
    async with source_under_test("memgraph", tmp_path, server_url) as subject:
        graph: MemgraphGraph = subject.source  # type: ignore[assignment]

        async def strength() -> float:
            statement = "MATCH (d:Document {index: $index, id: 'a'}) RETURN d.strength AS strength"
            return float((await graph._bolt.read(statement, {"index": graph._name}))[0]["strength"])

        await subject.write(COMMON_NAME[:1])
        await subject.write(COMMON_NAME[1:])
        assert await strength() == OWN_WEIGHT  # a name that no other document has does not count
        await graph.update_strengths()
        assert await strength() == pytest.approx(OWN_WEIGHT + 2**-0.5)


OVERLAPPING_NAMES = [
    vector_record(
        "a",
        "Alpha of Beta delta, Gamma of Alpha",
        entities=("Beta Gamma", "Alpha Beta", "Gamma", "Alpha of Beta Delta"),
    ),
    vector_record("b", "beta of Gamma", entities=("Beta", "Alpha Beta Gamma", "Delta", "Gamma", "Gamma of Delta")),
    vector_record("c", "Beta, Gamma of Delta", entities=("Gamma", "X Beta", "Delta"), sensitivity="restricted"),
]
"""A principal with the clearance ``normal`` may see the first two."""


def linked_in_this_process(query: SourceQuery) -> tuple[float, dict[str, float], dict[str, float]]:
    """The coverage of a query by names in :data:`OVERLAPPING_NAMES`; and the names and documents that its walk starts
    from, with their mass."""
    mentions = {each.record.document.id: entity_names(each.record) for each in OVERLAPPING_NAMES}
    names = sorted(set().union(*mentions.values()))
    visible = [mentions[id_] for id_ in ("a", "b")]
    texts = [words_by_case(passage(each.record.document)) for each in OVERLAPPING_NAMES]

    def counts(word: str) -> WordCounts:
        having = [in_lower_case for in_text, in_lower_case in texts if word in in_text]
        return WordCounts(len(having), sum(word not in each for each in having))

    entities = link_entities(
        query.text,
        {name: number for number, name in enumerate(names)},
        lambda node: Mentions(
            sum(names[node] in each for each in visible), any(each.get(names[node]) for each in visible)
        ),
        counts,
        len(OVERLAPPING_NAMES),
    )
    documents = range(len(names), len(names) + len(query.seed_ids))
    masses = dict(zip(*(each.tolist() for each in walk_seeds(entities, documents)), strict=True))
    return (
        entities.entity_coverage,
        {name: masses[node] for node, name in enumerate(names) if node in masses},
        {id_: masses[node] for id_, node in zip(query.seed_ids, documents, strict=True)},
    )


@pytest.mark.anyio
@pytest.mark.server
async def test_names_in_a_query_are_linked_as_in_this_process(tmp_path: Path, server_url: Callable[[str], str]) -> None:
    """The longest first, and without overlaps; what is hidden from the caller counts as a word and not as a name."""
    chance = Random(1)
    vocabulary = ("alpha", "beta", "gamma", "delta", "of", "x")
    texts = ["of", "x beta", *(" ".join(chance.choices(vocabulary, k=chance.randint(1, 9))) for _ in range(60))]
    seeds = (None, Documents.of_ids(("b",)), Documents.of_ids(("b", "a")))
    queries = [
        msgspec.structs.replace(source_query(text), seeds=seeds[number % len(seeds)])
        for number, text in enumerate(texts)
    ]
    expected = [linked_in_this_process(query) for query in queries]
    assert len({coverage for coverage, *_ in expected}) > 30
    async with source_under_test("memgraph", tmp_path, server_url) as subject:
        await subject.write(OVERLAPPING_NAMES)
        graph: MemgraphGraph = subject.source  # type: ignore[assignment]
        searches, key_of_name = graph._searches, graph._keys.names(SCOPE)
        found = [await searches._seeds(query, query.seed_ids, searches._common(query)) for query in queries]
        mentions = [await graph.mentions_entity(query) for query in queries]
    total = sum(len(words_by_case(passage(each.record.document))[0]) for each in OVERLAPPING_NAMES)
    for seeds, (coverage, names, documents) in zip(found, expected, strict=True):
        mass_by_key = {key_of_name(name): mass for name, mass in names.items()}
        assert dict(seeds.names) == pytest.approx(mass_by_key, rel=1e-6)
        assert dict(zip(seeds.ring.ids, seeds.ring.masses, strict=True)) == pytest.approx(documents, rel=1e-6)
        assert seeds.coverage == pytest.approx(coverage, rel=1e-9)
        if names or documents:
            assert seeds.full_length == full_length(total, len(OVERLAPPING_NAMES))
    assert mentions == [coverage > 0 for coverage, *_ in expected]
    assert set(mentions) == {False, True}


@pytest.mark.anyio
@pytest.mark.server
async def test_a_walk_passes_through_a_name_of_the_query_however_many_mention_it(
    tmp_path: Path, server_url: Callable[[str], str]
) -> None:
    """The limit is 200 mentions: those of one name, and one less than those of the other.

    The 200 documents are equally near: the walk goes on to the 50 with the smallest keys. The seed may be one of them.
    """
    mentions = {"Proxima": 200, "Vega": 201}
    records = [
        vector_record(f"{name} {number:03}", "text", entities=(name,))
        for name, count in mentions.items()
        for number in range(count)
    ]
    async with source_under_test("memgraph", tmp_path, server_url) as subject:
        await subject.write(records)
        best, reached = {}, {}
        for name in mentions:
            seeds = Documents.of_ids((f"{name} 000",))
            named, unnamed = (source_query(text, depth=300) for text in (f"what is {name}?", "no known name"))
            best[name] = (await subject.source.search(named)).scores[0]
            reached[name] = len(await subject.source.search(msgspec.structs.replace(unnamed, seeds=seeds)))
        graph: MemgraphGraph = subject.source  # type: ignore[assignment]
        keys = [
            graph._keys.document((SCOPE.tenant, SCOPE.environment, f"Proxima {number:03}")) for number in range(200)
        ]
        is_among_50 = keys[0] in sorted(keys)[:50]
    assert best["Vega"] == pytest.approx(best["Proxima"], rel=0.02)
    assert reached == {"Proxima": 50 if is_among_50 else 51, "Vega": 1}


@pytest.mark.anyio
@pytest.mark.server
@pytest.mark.parametrize("name", ["embedded graph", "memgraph"])
async def test_documents_that_pass_a_filter_are_found_among_any_number_that_do_not(
    name: str, tmp_path: Path, server_url: Callable[[str], str]
) -> None:
    """A walk continues from 50 of 120 documents that mention a name, and of 75 that share another name with these."""
    entities = [("Proxima", "Vega")] * 120 + [("Vega", "Sirius")] * 75
    records = [
        vector_record(f"{number:03}", "text", entities=names, tags=("p",) if number % 30 == 0 else ())
        for number, names in enumerate(entities)
    ]
    query = msgspec.structs.replace(source_query("what is Proxima?", condition=Eq("tags", "p")), hops=2)
    async with source_under_test(name, tmp_path, server_url) as subject:
        await subject.write(records)
        ranking = await subject.source.search(query)
    assert sorted(ranking.ids) == [f"{number:03}" for number in range(0, len(records), 30)]


@pytest.mark.anyio
@pytest.mark.server
async def test_what_is_set_counts_more_than_what_was_found_and_that_more_than_a_name(
    tmp_path: Path, server_url: Callable[[str], str]
) -> None:
    """Mass reaches the leaves of a star in proportion to the strengths of the types of its links."""
    targets = {"cites": 0.25, "part_of": 0.5, "contains": 1.0, "child_of": 0.0, "other": 1.0}
    sources = {"from cites": 0.75, "from part_of": 0.7, "from contains": 0.0, "from child_of": 1.0}
    strengths = targets | sources
    star = [vector_record("a", "one", entities=(), links=tuple(Link(type_, type_) for type_ in targets))]
    leaves = [vector_record(type_, "leaf", entities=()) for type_ in targets]
    leaves += [
        vector_record(id_, "leaf", entities=(), links=(Link("a", id_.removeprefix("from ")),)) for id_ in sources
    ]
    async with source_under_test("memgraph", tmp_path, server_url) as subject:
        await subject.write([*star, *leaves])
        written: MemgraphGraph = subject.source  # type: ignore[assignment]
        row = {"scope": written._keys.scope(SCOPE), "types": ["cites", "part_of"], "forward": [1.0, 0.5]}
        await written._bolt.write(
            statement("write_link_types"), {"rows": [{**row, "backward": [1.0, 0.7], "reasons": ["", ""]}]}
        )
        graph = MemgraphGraph(written._bolt, written._name, "test-1", {"cites": (0.25, 0.75)})
        ranking = await graph.search(SEEDED)
    scores = dict(zip(ranking.ids, ranking.scores.tolist(), strict=True))
    found = {id_: scores.get(id_, 0.0) / scores["other"] for id_ in strengths}
    assert found == pytest.approx(strengths, rel=1e-6)
