"""The names of a document in the graph."""

from __future__ import annotations

from adapters import Document, Record
from adapters.graph.edges import entity_names
from adapters.graph.names import MAX_CHARS, MAX_LISTED_WORDS


def test_a_name_is_in_the_graph_up_to_its_longest_length() -> None:
    """An index of a server would refuse the whole document for a longer one."""
    longest, longer = "n" * MAX_CHARS, "n" * (MAX_CHARS + 1)
    for title, entities in ((longest, (longer, "A b")), (longer, (longest, "A b"))):
        assert set(entity_names(Record("t", "e", Document(id="a", title=title, text=""), entities))) == {longest, "a b"}


def test_a_title_that_is_a_sentence_is_no_name() -> None:
    document = Document(id="a", title="one two three four five six seven eight nine", text="")
    assert entity_names(Record("t", "e", document, ("?!",))) == {}


def test_names_that_an_author_lists_are_told_from_those_that_are_extracted() -> None:
    listed = Document(id="a", title="On EU law", text="", entities=("EU", "Knuth, D. E."))
    assert entity_names(Record("t", "e", listed, listed.entities or ())) == {
        "on eu law": False,
        "eu": True,
        "knuth d e": True,
        "knuth": True,
    }
    extracted = Document(id="a", text="")
    assert entity_names(Record("t", "e", extracted, ("Nolan",))) == {"nolan": False}


def test_a_listed_name_may_have_more_words_than_a_title() -> None:
    name = " ".join(f"w{number}" for number in range(MAX_LISTED_WORDS))
    document = Document(id="a", text="", entities=(name, f"{name} more"))
    assert entity_names(Record("t", "e", document, document.entities or ())) == {name: True}


def test_names_with_different_notes_are_two_and_share_the_name_without_it() -> None:
    document = Document(id="a", title="Mercury (planet)", text="", entities=("Mercury (element)",))
    assert entity_names(Record("t", "e", document, document.entities or ())) == {
        "mercury planet": False,
        "mercury element": True,
        "mercury": True,
    }
