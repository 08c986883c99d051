from __future__ import annotations

from adapters.keyword.analysis import MAX_TERMS, Terms, terms


def test_words_are_stemmed_folded_and_freed_of_stop_words() -> None:
    assert terms("The Running of naïve Dogs") == Terms(("run", "naiv", "dog"), (), ())


def test_a_query_of_stop_words_keeps_them() -> None:
    assert terms("to be or not to be").words == ("to", "be", "or", "not")


def test_quoted_text_must_occur_and_counts() -> None:
    assert terms('find "event loop" quickly') == Terms(("find", "quick", "event", "loop"), (("event", "loop"),), ())


def test_a_quoted_word_must_occur() -> None:
    assert terms('"loops" in python') == Terms(("python", "loop"), (), ("loop",))


def test_a_phrase_keeps_its_stop_words() -> None:
    assert terms('"to be or not to be"').phrases == (("to", "be", "or", "not", "to", "be"),)


def test_a_quote_that_does_not_end_is_a_character() -> None:
    assert terms('12" pipe').words == ("12", "pipe")


def test_what_is_looked_up_has_an_end() -> None:
    assert len(terms(" ".join(f"w{n}" for n in range(1_000))).words) == MAX_TERMS
    assert terms("").words == terms("?!").words == ()
