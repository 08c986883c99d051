from __future__ import annotations

import pytest

from adapters.keyword.analysis import MAX_TERMS, ParsedQuery, document_terms, parse_query
from adapters.model.document import Document


def test_words_are_stemmed_and_folded_without_stop_words() -> None:
    assert parse_query("The Running of naïve Dogs") == ParsedQuery(("run", "naiv", "dog"))


def test_a_repeated_word_is_searched_twice() -> None:
    assert parse_query("buffalo and buffalo").words == ("buffalo", "buffalo")


def test_a_query_of_stop_words_only_is_searched_by_them() -> None:
    assert parse_query("to be or not to be").words == ("to", "be", "or", "not", "to", "be")
    assert parse_query("der die das", languages=("english", "german")).words == ("der", "die", "das")


def test_a_query_of_quoted_text_only_requires_its_phrases() -> None:
    assert parse_query('"event loops"') == ParsedQuery(
        ("event", "loop"), phrases=(("event", "loops"),), is_required=True
    )
    assert parse_query('"to be" "loop"') == ParsedQuery(
        ("to", "be", "loop"), phrases=(("to", "be"), ("loop",)), is_required=True
    )


def test_a_phrase_beside_other_words_is_required() -> None:
    parsed = parse_query('"npm publish" token')
    assert parsed == ParsedQuery(("token", "npm", "publish"), phrases=(("npm", "publish"),), is_required=True)


def test_a_quotation_in_a_sentence_is_not_required() -> None:
    parsed = parse_query('they wrote "event loop" first')
    assert parsed == ParsedQuery(("wrote", "first", "event", "loop"), phrases=(("event", "loop"),))


@pytest.mark.parametrize(
    "query",
    ['"a b"', "“a b”", "„a b“", "„a b”", "”a b”", "«a b»", "« a b »", "»a b«", "\u2039a b\u203a", "「a b」", "『a b』"],
)
def test_quotes_of_many_languages_are_quotes(query: str) -> None:
    assert parse_query(query).phrases == (("a", "b"),)


def test_an_unmatched_quote_is_an_ordinary_character() -> None:
    assert parse_query('12" pipe').words == ("12", "pipe")


def test_quoted_text_requires_its_signs() -> None:
    assert parse_query('"C++"').forms == ("c++",)
    assert parse_query('"in node.js"').forms == ("node.js",)


def test_the_number_of_terms_is_limited() -> None:
    assert len(parse_query(" ".join(f"w{n}x" for n in range(1_000))).words) == MAX_TERMS
    assert len(parse_query('"' + "word " * 1_000 + '"').phrases[0]) == MAX_TERMS
    assert parse_query("") == parse_query(" ") == ParsedQuery()


def test_signs_alone_are_searched() -> None:
    assert parse_query("?!").words == ("?!",)
    assert parse_query("&&").words == ("&&",)
    assert parse_query("I ❤️ it").words == ("i", "❤")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("C++", ParsedQuery(("c", "c++"))),
        (".NET", ParsedQuery(("net", ".net"))),
        ("node.js", ParsedQuery(("node", "js"), (("node.js", "nodej"),))),
        (
            "os.path.join",
            ParsedQuery(("os", "path", "join", "os.path", "path.join"), (("os.path.join", "ospathjoin"),)),
        ),
        ("U.S.", ParsedQuery(("us",), (("u.s",),))),
        ("J. Smith", ParsedQuery(("smith",))),
        ("vitamin C.", ParsedQuery(("vitamin", "c"))),
        ("the company's debts", ParsedQuery(("compani", "debt"))),
        ("e.g. dogs", ParsedQuery(("dog",))),
        ("I'm here", ParsedQuery(("here",))),
        ("12-34-56", ParsedQuery((), (("123456",), ("12-34-56",)), (("12", "34", "56"),))),
        ("WX-770-B12", ParsedQuery((), (("wx770b12",), ("wx-770-b12",)), (("wx", "770", "b", "12"),))),
        ("WX770B12", ParsedQuery(("wx770b12",), (), (("wx", "770", "b", "12"),))),
        ("v1.2.3", ParsedQuery((), (("v123",), ("v1.2.3",)), (("v", "1", "2", "3"),))),
        ("1/2", ParsedQuery((), (("1/2",),), (("1", "2"),))),
        ("covid-19", ParsedQuery(("covid", "19"), (("covid-19", "covid19"),))),
        ("parseJSONBody", ParsedQuery(("parsejsonbodi", "pars", "json", "bodi"))),
        ("東京都", ParsedQuery(("東京", "京都"))),
        ("水", ParsedQuery((), (), (("水",),))),
    ],
)
def test_words_with_signs_and_codes(query: str, expected: ParsedQuery) -> None:
    assert parse_query(query) == expected


def test_a_word_is_searched_by_its_stem_in_each_language_of_the_documents() -> None:
    assert parse_query("Häuser").words == ("hauser",)
    assert parse_query("Häuser", languages=("english", "german")).words == ("hauser", "haus")


def test_the_terms_of_a_document() -> None:
    document = Document(id="a", title="C++ notes", text="U.S. debts, 1,000", tags=("état",))
    terms = document_terms(document)
    assert terms.words == ["c c++ note", "c c++ note", "c c++ note u s u.s us debt 1 000 1,000 1000", "etat"]
    assert terms.exact == ["c++ notes u s debts 1 000", "état"]


def test_a_document_is_stemmed_in_its_language() -> None:
    document = Document(id="a", text="Die Häuser", language="de-AT")
    assert document_terms(document).words == ["die haus"]
