"""The explanation: how a response came about, within what the principal may see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from adapters import Record, Scope, Unavailable
from adapters.engine import EmbeddedIndex
from adapters.engine.view import IndexView
from adapters.model.filter import Eq
from adapters.model.term_score import TermScore
from fusion.columns import Documents, Ranking
from fusion.doc_ids import doc_id
from fusion.values import DocumentFields
from orchestrator.auth.principal import Principal
from orchestrator.results import explanation
from orchestrator.results.explanation import ExplainStage
from orchestrator.schema.explain import ExplainedHit, Explanation
from orchestrator.service.search import SearchService
from tests.conftest import SCOPE, vector_record
from tests.orchestrator.services import PRINCIPAL, FailingSource, FixedSource, empty_index, search, search_service

pytestmark = pytest.mark.anyio

SECRETS = ("secret", "foreign", "elsewhere", "remembered", "german")
"""Documents that no request below may know of, each for another reason."""


@pytest.fixture
async def index(tmp_path: Path) -> EmbeddedIndex:
    index = empty_index(tmp_path)
    english = {"language": "en"}
    await index.write(
        [
            vector_record("a", "Alpha", seed=1, **english),
            vector_record("b", "Alpha", seed=2, **english),
            vector_record("chunk", "Alpha", seed=3, parent_id="parent", chunk_index=0, **english),
            vector_record("parent", "Alpha", seed=4, **english),
            vector_record("secret", "Alpha", seed=1, sensitivity="restricted", **english),
            vector_record("foreign", "Alpha", seed=1, scope=Scope("other"), **english),
            vector_record("elsewhere", "Alpha", seed=1, scope=Scope(SCOPE.tenant, "other"), **english),
            vector_record("remembered", "Alpha", seed=1, collection="memory", **english),
            vector_record("german", "Alpha", seed=1, language="de"),
        ],
        (),
    )
    return index


class ChunkSource:
    """A source that returns some documents whatever the filter says, and knows that one is a chunk of another."""

    def __init__(self, *ids: str, scores: Sequence[float] = ()) -> None:
        self._ids = ids
        self._scores = scores or [1.0] * len(ids)

    async def search(self, query: object) -> Ranking:
        return Ranking.of_ids("keyword", self._ids, self._scores, fields={"chunk": DocumentFields("parent", 0)})


async def explained(service: SearchService, principal: Principal = PRINCIPAL, **fields: object) -> Explanation:
    response = await search(service, "alpha", principal, explain=True, filter=Eq("language", "en"), **fields)
    assert response.explain
    return response.explain


async def test_a_document_outside_the_filter_is_mentioned_nowhere(index: EmbeddedIndex) -> None:
    """The source returns everything that exists, in all scopes."""
    secrets = (doc_id(each, "memory") if each == "remembered" else each for each in SECRETS)
    keyword = ChunkSource(*secrets, "a", "chunk", "parent", "b")
    result = await explained(search_service(index, keyword=keyword), mode="keyword", collapse="parent")
    assert [hit.id for hit in result.rankings["keyword"]] == ["a", "chunk", "parent", "b"]
    assert result.removed.collapsed == {"parent": "chunk"}
    # The documents of other scopes are not withheld: by the scope of the principal they do not exist.
    assert (result.removed.withheld, result.removed.deleted) == (3, 2)
    assert not any(secret in repr(result) for secret in SECRETS)


async def test_scores_are_normalized_within_what_is_listed(index: EmbeddedIndex) -> None:
    """The score of a hidden document, which is higher here, would show in the others."""
    keyword = ChunkSource("secret", "a", "b", "chunk", scores=[9.0, 5.0, 4.0, 1.0])
    result = await explained(search_service(index, keyword=keyword), mode="keyword", collapse="none")
    listed = {hit.id: (hit.score, hit.normalized) for hit in result.rankings["keyword"]}
    assert listed == {"a": (5.0, 1.0), "b": (4.0, 0.75), "chunk": (1.0, 0.0)}


async def test_the_hits_of_the_page_have_the_terms_of_their_keyword_score(index: EmbeddedIndex) -> None:
    """Only these: a ranking may have hundreds of documents."""
    result = await explained(search_service(index), mode="hybrid", limit=1, collapse="none")
    with_terms = [hit for hit in result.rankings["keyword"] if hit.terms]
    assert len(with_terms) == 1
    assert len(result.rankings["keyword"]) == 4
    (term,) = with_terms[0].terms or ()
    assert (term.term, term.exact, term.frequency) == ("alpha", False, 1.0)
    assert term.score == pytest.approx(with_terms[0].score, rel=1e-5)
    assert not any(hit.terms for source in ("vector", "graph") for hit in result.rankings[source])


async def test_terms_do_not_depend_on_hidden_documents(index: EmbeddedIndex) -> None:
    before = (await explained(search_service(index), mode="keyword")).rankings
    await index.write([vector_record(f"hidden-{n}", "Alpha beta", sensitivity="sensitive") for n in range(9)], ())
    assert (await explained(search_service(index), mode="keyword")).rankings == before


async def test_a_source_that_cannot_explain_its_scores_leaves_the_hits_as_they_are(index: EmbeddedIndex) -> None:
    class Failing:
        async def term_scores(self, query: object, ids: object) -> dict[str, tuple[TermScore, ...]]:
            raise Unavailable("the server restarts")

    service = replace(search_service(index), explain=ExplainStage("index", {"keyword": Failing()}))
    response = await search(service, "alpha", mode="keyword", explain=True)
    assert len(response.hits) == 5
    assert [(each.source, each.reason) for each in response.degraded] == [("explain", "the server restarts")]


async def test_documents_are_read_a_few_at_a_time(index: EmbeddedIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each may have a megabyte."""
    counts: list[int] = []
    fetch = IndexView.fetch

    async def counted(view: IndexView, scope: Scope, documents: Documents) -> Mapping[str, Record]:
        counts.append(len(documents))
        return await fetch(view, scope, documents)

    monkeypatch.setattr(IndexView, "fetch", counted)
    monkeypatch.setattr(explanation, "_BATCH_DOCUMENTS", 2)
    result = await explained(search_service(index), mode="keyword", limit=1, collapse="none")
    assert {hit.id for hit in result.rankings["keyword"]} == {"a", "b", "chunk", "parent"}
    assert max(counts) <= 2
    assert sum(counts) >= 4


async def test_a_collapsed_document_is_not_named_if_either_of_the_two_is_hidden(index: EmbeddedIndex) -> None:
    hidden_parent = vector_record("parent", "Alpha", seed=4, language="en", sensitivity="restricted")
    await index.write([hidden_parent], ())
    service = search_service(index, keyword=ChunkSource("chunk", "parent", "a"))
    assert (await explained(service, mode="keyword", collapse="parent")).removed.collapsed == {}
    cleared = await explained(service, Principal("test", SCOPE, "restricted"), mode="keyword", collapse="parent")
    assert cleared.removed.collapsed == {"parent": "chunk"}


async def test_hidden_documents_do_not_count_as_below_the_minimum_score(index: EmbeddedIndex) -> None:
    class FallingScores:
        async def search(self, query: object) -> Ranking:
            ids = ["a", "b", "secret", "foreign"]
            return Ranking.of_ids("keyword", ids, [1.0, 0.1, 0.1, 0.1])

    service = search_service(index, keyword=FallingScores())
    result = await explained(service, mode="keyword", min_score=0.5)
    assert result.removed.min_score == 1


async def test_removed_by_the_filter_are_the_visible_documents_that_it_excludes(index: EmbeddedIndex) -> None:
    """One of the seven documents of the scope is secret; the filter excludes ``remembered`` and ``german``."""
    result = await explained(search_service(index), mode="keyword")
    assert result.removed.filter == 2
    cleared = await explained(search_service(index), Principal("test", SCOPE, "restricted"), mode="keyword")
    assert cleared.removed.filter == 2
    assert "secret" in {hit.id for hit in cleared.rankings["keyword"]}


async def test_the_rankings_keep_rank_and_score_of_the_source(index: EmbeddedIndex) -> None:
    """The second document is hidden: the third one keeps its rank, so that a gap shows."""
    keyword = FixedSource("keyword", "a", "secret", "b")
    result = await explained(search_service(index, keyword=keyword), mode="keyword")
    assert result.rankings["keyword"] == (
        ExplainedHit("a", "documents", 1, 1.0, 1.0),
        ExplainedHit("b", "documents", 3, 1.0, 1.0),
    )


async def test_a_source_that_failed_has_no_ranking(index: EmbeddedIndex) -> None:
    result = await explained(search_service(index, vector=FailingSource()), mode="hybrid")
    assert set(result.rankings) == {"graph", "keyword"}
    assert set(result.weights) == {"vector", "graph", "keyword"}


async def test_the_explanation_says_what_was_planned_and_used(index: EmbeddedIndex) -> None:
    result = await explained(
        search_service(index), mode="hybrid", fusion="rrf(k=10)", collapse="none", limit=50,
        boosts={"importance": True, "recency": False, "relationship": True}, timeout_ms=1_000,
    )  # fmt: skip
    assert (result.fusion, result.collapse, result.depth) == ("rrf(k=10)", "none", 200)
    assert result.boosts == ("importance", "relationship")
    assert (result.encoder, result.expansions) == ("model", ())
    assert result.removed.collapsed == {}
