"""The terms that explain a score of BM25, of both engines: they add up to the score, and are what the formula says."""

from __future__ import annotations

import math
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from adapters.keyword.bm25_explanation import Explained, term_score
from adapters.keyword.opensearch_explanation import lucene_term_scores
from adapters.model.term_score import TermScore
from fusion.doc_ids import doc_id
from tests.adapters.source_fixtures import SourceUnderTest, source_query, source_under_test
from tests.conftest import vector_record

pytestmark = pytest.mark.anyio
RECORDS = [
    vector_record("red", "A red fox jumps over the red lazy dog of the farmer."),
    vector_record("wine", "Red wine and white wine, in zero-one bottles."),
    vector_record("blue", "The blue fox.", collection="other"),
    vector_record("code", "Call os.path.join, or os.path.split (see pathlib): the red one."),
    vector_record("plain", "Nothing of the kind."),
]
QUERIES = [
    "red fox",
    "red red red wine",
    "os.path.join of a path",
    "zero-one wine",
    '"red fox" dog',
    '"lazy dog"',
    "who has the fox in blue and jumps over dogs?",
    "C++ wine (red)",
    "don't",
    "absent words only",
]
SYNONYMS = ("lazy dog", "wine")


@pytest.fixture(params=["embedded keyword", pytest.param("opensearch", marks=pytest.mark.server)])
async def subject(
    request: pytest.FixtureRequest, tmp_path: Path, server_url: Callable[[str], str]
) -> AsyncIterator[SourceUnderTest]:
    async with source_under_test(request.param, tmp_path, server_url) as opened:
        await opened.write(RECORDS[:3])
        await opened.write(RECORDS[3:])  # a second segment
        yield opened


async def explained(subject: SourceUnderTest, text: str) -> Mapping[str, Sequence[TermScore]]:
    query = replace(source_query(text), expansions=SYNONYMS)
    ids = (await subject.source.search(query)).ids
    return await subject.source.term_scores(query, ids)  # type: ignore[attr-defined, no-any-return]


@pytest.mark.parametrize("text", QUERIES)
async def test_the_scores_of_the_terms_add_up_to_that_of_the_document(subject: SourceUnderTest, text: str) -> None:
    ranking = await subject.source.search(replace(source_query(text), expansions=SYNONYMS))
    sums = {id_: sum(each.score for each in terms) for id_, terms in (await explained(subject, text)).items()}
    assert sums == pytest.approx(dict(zip(ranking.ids, ranking.scores.tolist(), strict=True)), rel=1e-5)


async def test_a_term_has_the_parts_of_the_formula(subject: SourceUnderTest) -> None:
    """Five documents, of which three have ``red``; the first one twice."""
    terms = {each.term: each for each in (await explained(subject, "red fox"))["red"]}
    red, fox = terms["red"], terms["fox"]
    assert red.idf == pytest.approx(math.log(1 + 2.5 / 3.5), rel=1e-5)
    assert fox.idf == pytest.approx(math.log(1 + 3.5 / 2.5), rel=1e-5)
    assert (red.frequency, fox.frequency, red.exact) == (2.0, 1.0, False)
    assert red.length == fox.length >= 9
    assert 0 < fox.tf < red.tf < 1
    assert red.score / (red.idf * red.tf) == pytest.approx(fox.score / (fox.idf * fox.tf), rel=1e-5)


async def test_a_word_of_the_query_counts_as_often_as_it_is_there(subject: SourceUnderTest) -> None:
    once, thrice = [(await explained(subject, text))["wine"] for text in ("red wine", "red red red wine")]
    scores = [{each.term: each.score for each in terms}["red"] for terms in (once, thrice)]
    assert scores[1] == pytest.approx(3 * scores[0], rel=1e-5)


async def test_a_phrase_is_one_term(subject: SourceUnderTest) -> None:
    found = (await explained(subject, '"red fox" dog'))["red"]
    phrases = [each for each in found if each.exact]
    assert [(each.term, each.frequency) for each in phrases] == [("red fox", 1.0)]
    assert phrases[0].idf > max(each.idf for each in found if not each.exact and each.term == "dog") / 2


async def test_the_best_term_is_first_and_documents_without_any_are_left_out(subject: SourceUnderTest) -> None:
    query = source_query("red fox in bottles")
    asked = ["red", "plain", "unknown", doc_id("blue", "other")]
    found = await subject.source.term_scores(query, asked)  # type: ignore[attr-defined]
    assert set(found) == {"red", doc_id("blue", "other")}
    for terms in found.values():
        assert [each.score for each in terms] == sorted((each.score for each in terms), reverse=True)
    assert await subject.source.term_scores(query, []) == {}  # type: ignore[attr-defined]


@pytest.mark.server
async def test_both_engines_name_the_same_terms(tmp_path: Path, server_url: Callable[[str], str]) -> None:
    """With the same inverse frequencies; lengths are rounded in one byte by both."""
    async with (
        source_under_test("embedded keyword", tmp_path, server_url) as embedded,
        source_under_test("opensearch", tmp_path, server_url) as server,
    ):
        for each in (embedded, server):
            await each.write(RECORDS)
        for text in QUERIES:
            here, there = await explained(embedded, text), await explained(server, text)
            assert rounded(here) == rounded(there), text


def rounded(found: Mapping[str, Sequence[TermScore]]) -> dict[str, set[tuple[object, ...]]]:
    return {
        id_: {(each.term, each.exact, round(each.idf, 4), each.frequency, each.length) for each in terms}
        for id_, terms in found.items()
    }


@pytest.mark.parametrize(
    "product",
    [
        Explained(1.0, "TermQuery, product of..."),
        Explained(1.0, "score(freq=1.0)", (Explained(1.0, "idf"), Explained(0.5, "tf, computed as"))),
        Explained(1.0, "score(freq=1.0)", (Explained(0.5, "tf, computed as", (Explained(1.0, "freq"),)),)),
    ],
)
def test_another_explanation_is_an_error(product: Explained) -> None:
    with pytest.raises(ValueError, match="explanation of a score"):
        term_score("red", False, 1.0, product)
    weight = Explained(1.0, "weight(words:red in 0) [PerFieldSimilarity], result of:", (product,))
    with pytest.raises(ValueError, match="explanation of a score"):
        lucene_term_scores(weight)
    with pytest.raises(ValueError, match=re.escape("the explanation of a weight has no score")):
        lucene_term_scores(replace(weight, details=()))
