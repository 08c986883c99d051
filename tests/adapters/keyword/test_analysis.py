from __future__ import annotations

from adapters.keyword.analysis import MAX_TERMS, ParsedQuery, parse_query


def test_words_are_stemmed_and_folded_without_stop_words() -> None:
    assert parse_query("The Running of naïve Dogs") == ParsedQuery(("run", "naiv", "dog"))


def test_a_repeated_word_is_searched_twice() -> None:
    assert parse_query("buffalo and buffalo").words == ("buffalo", "buffalo")


def test_a_query_of_stop_words_only_is_searched_by_them() -> None:
    assert parse_query("to be or not to be").words == ("to", "be", "or", "not", "to", "be")


def test_a_query_of_quoted_text_only_requires_its_phrases() -> None:
    assert parse_query('"event loops"') == ParsedQuery(("event", "loop"), (("event", "loop"),), phrases_required=True)
    assert parse_query('"to be" "loop"') == ParsedQuery(
        ("to", "be", "loop"), (("to", "be"), ("loop",)), phrases_required=True
    )


def test_a_quotation_in_a_sentence_is_not_required() -> None:
    parsed = parse_query('they wrote "event loop" first')
    assert parsed == ParsedQuery(("wrote", "first", "event", "loop"), (("event", "loop"),), phrases_required=False)


def test_an_unmatched_quote_is_an_ordinary_character() -> None:
    assert parse_query('12" pipe').words == ("12", "pipe")


def test_the_number_of_terms_is_limited() -> None:
    assert len(parse_query(" ".join(f"w{n}" for n in range(1_000))).words) == MAX_TERMS
    assert len(parse_query('"' + "word " * 1_000 + '"').phrases[0]) == MAX_TERMS
    assert parse_query("").words == parse_query("?!").words == parse_query('"?"').words == ()
