from __future__ import annotations

from adapters.keyword.analysis import MAX_TERMS, Terms, terms


def test_words_are_stemmed_folded_and_freed_of_stop_words() -> None:
    assert terms("The Running of naïve Dogs") == Terms(("run", "naiv", "dog"))


def test_a_word_that_is_asked_twice_is_kept_twice() -> None:
    assert terms("buffalo and buffalo").words == ("buffalo", "buffalo")


def test_a_query_of_stop_words_keeps_them() -> None:
    assert terms("to be or not to be").words == ("to", "be", "or", "not", "to", "be")


def test_nothing_but_quoted_text_is_demanded() -> None:
    assert terms('"event loops"') == Terms(("event", "loop"), (("event", "loop"),), demanded=True)
    assert terms('"to be" "loop"') == Terms(("to", "be", "loop"), (("to", "be"), ("loop",)), demanded=True)


def test_a_quotation_in_a_sentence_is_wished_for() -> None:
    asked = terms('they said "event loop" first')
    assert asked == Terms(("said", "first", "event", "loop"), (("event", "loop"),), demanded=False)


def test_a_quote_that_does_not_end_is_a_character() -> None:
    assert terms('12" pipe').words == ("12", "pipe")


def test_what_is_looked_up_has_an_end() -> None:
    assert len(terms(" ".join(f"w{n}" for n in range(1_000))).words) == MAX_TERMS
    assert len(terms('"' + "word " * 1_000 + '"').phrases[0]) == MAX_TERMS
    assert terms("").words == terms("?!").words == terms('"?"').words == ()
