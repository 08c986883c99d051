"""Words of every script and with every sign are found, the same ones by both engines."""

from __future__ import annotations

import random
import unicodedata
import uuid
from collections.abc import AsyncIterator, Callable, Iterable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from opensearchpy import AsyncOpenSearch

from adapters import Viewer
from adapters.engine import EmbeddedIndex
from adapters.keyword import opensearch_client
from adapters.keyword.analysis import document_terms, parse_query
from adapters.keyword.component import AT_SPACES, KeywordComponent
from adapters.keyword.embedded import EmbeddedKeyword
from adapters.keyword.opensearch import OpenSearchKeyword
from adapters.model.document import Document, Scope
from adapters.model.filter import access, normal
from adapters.ports import Retriever, SourceQuery
from adapters.ports.replica import VectorRecord
from adapters.servers.server import KEYWORD_SCHEMES, Address, Limits
from tests.adapters.keyword.words_table import KINDS, Kind, rows
from tests.conftest import vector_record

pytestmark = pytest.mark.anyio
LIMITS = Limits(read_timeout_s=20.0, write_timeout_s=20.0)
ROWS = [pytest.param(kind, query, found, id=f"{kind.name}: {query[:40]}") for kind, query, found in rows()]
RANDOM_TEXTS = 10_000


def scope_of(kind: Kind) -> Scope:
    return Scope(kind.name, "default")


def records() -> Iterable[VectorRecord]:
    for kind in KINDS:
        for id_, text in kind.texts.items():
            yield vector_record(id_, text, scope=scope_of(kind), language=kind.languages.get(id_), entities=())


async def found_by(source: Retriever, kind: Kind, query: str) -> tuple[str, ...]:
    allowed = normal(access(scope_of(kind), Viewer("normal")))
    return (await source.search(SourceQuery(query, 10, scope_of(kind), allowed, allowed))).ids


def test_the_table_has_enough_rows() -> None:
    assert len(ROWS) >= 120


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> EmbeddedKeyword:
    component = KeywordComponent()
    index = EmbeddedIndex(tmp_path_factory.mktemp("words"), (component,), "words")
    index.write_blocking(list(records()), ())
    return EmbeddedKeyword(index, component)


@pytest.mark.parametrize(("kind", "query", "found"), ROWS)
async def test_the_embedded_engine_finds_it(
    embedded: EmbeddedKeyword, kind: Kind, query: str, found: tuple[str, ...]
) -> None:
    assert await found_by(embedded, kind, query) == found


@pytest.fixture
async def opensearch(server_url: Callable[[str], str]) -> AsyncIterator[OpenSearchKeyword]:
    client = opensearch_client.connect(Address.parse(server_url("opensearch"), KEYWORD_SCHEMES), LIMITS)
    keyword = OpenSearchKeyword(client, f"test-{uuid.uuid4().hex}", "words", LIMITS)
    await keyword.create()
    yield keyword
    await keyword.drop()
    await keyword.close()


@pytest.mark.server
async def test_opensearch_finds_the_same(opensearch: OpenSearchKeyword) -> None:
    await opensearch.apply(1, list(records()), [])
    wrong = {}
    for kind, query, found in rows():
        if (ids := await found_by(opensearch, kind, query)) != found:
            wrong[kind.name, query] = (ids, found)
    assert wrong == {}


ALPHABETS = [
    range(start, end)
    for start, end in (
        *((0x20, 0x7F), (0xA0, 0x250), (0x370, 0x530), (0x590, 0x700), (0x900, 0xE60)),
        *((0x2000, 0x2BFF), (0x3000, 0x3200), (0x4E00, 0x4F00), (0xAC00, 0xAD00)),
        *((0xFB00, 0xFB07), (0xFF00, 0xFFF0), (0x1F300, 0x1F650), (0xE0100, 0xE01F0)),
    )
]


def random_texts(count: int) -> Iterable[str]:
    """Texts of many scripts, with every kind of sign and space, and with unassigned and private code points."""
    choice = random.Random(64)
    for _ in range(count):
        alphabets = choice.sample(ALPHABETS, 2)
        letters = [choice.choice(choice.choice(alphabets)) for _ in range(choice.randint(1, 24))]
        if not choice.randrange(8):
            letters.append(choice.choice([0x1C, 0x1F, 0x85, 0xAD, 0x2028, 0x3000, 0xFEFF, 0xE000, 0x378, 0x10FFFF]))
        yield "".join(map(chr, letters))


def terms_of(text: str) -> list[str]:
    terms = document_terms(Document(id="a", text=text))
    return [*terms.words, *terms.exact]


def test_tantivy_splits_terms_at_spaces_and_changes_nothing() -> None:
    for text in random_texts(RANDOM_TEXTS):
        for terms in terms_of(text):
            assert AT_SPACES.analyze(terms) == terms.split(" ") * bool(terms)


@pytest.mark.server
async def test_opensearch_has_the_terms_of_tantivy(
    opensearch: OpenSearchKeyword, server_url: Callable[[str], str]
) -> None:
    client: AsyncOpenSearch = opensearch_client.connect(
        Address.parse(server_url("opensearch"), KEYWORD_SCHEMES), LIMITS
    )
    all_terms = [terms for text in random_texts(RANDOM_TEXTS) for terms in terms_of(text) if terms]
    all_terms.append(" ".join(terms_of("x" * 600)))
    for start in range(0, len(all_terms), 200):
        batch = all_terms[start : start + 200]
        analyzed = await client.indices.analyze(index=opensearch._index, body={"analyzer": "terms", "text": batch})
        tokens = [token["token"] for token in analyzed["tokens"]]
        assert tokens == [term for terms in batch for term in AT_SPACES.analyze(terms)]
    await client.close()


@given(st.text(max_size=40))
def test_normal_forms_have_the_same_terms(text: str) -> None:
    terms = terms_of(unicodedata.normalize("NFC", text))
    assert terms_of(unicodedata.normalize("NFD", text)) == terms


@given(st.text(max_size=40), st.sampled_from(["en", "de", "ar", "tr", "xx"]))
@example("\U00010d40", "en")  # a digit of Unicode 16, which Python 3.11 does not know
def test_no_term_is_empty_or_has_a_space(text: str, language: str) -> None:
    terms = document_terms(Document(id="a", text=text, language=language))
    for each in (*terms.words, *terms.exact):
        assert each == "" or all(term and not any(map(str.isspace, term)) for term in each.split(" "))


@given(st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=20))
def test_a_word_is_found_by_itself(word: str) -> None:
    terms = document_terms(Document(id="a", text=f"before {word} after"))
    parsed = parse_query(word)
    of_words, of_exact = f" {terms.words[0]} ", f" {terms.exact[0]} "
    assert any(f" {term} " in of_words for term in parsed.words) or any(
        f" {' '.join(code)} " in of_exact for code in parsed.codes
    )
