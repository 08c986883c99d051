"""The names of a document in the graph."""

from __future__ import annotations

from adapters import Document, Record
from adapters.graph.edges import entity_names
from adapters.graph.names import MAX_CHARS


def test_a_name_is_in_the_graph_up_to_its_longest_length() -> None:
    """An index of a server would refuse the whole document for a longer one."""
    longest, longer = "n" * MAX_CHARS, "n" * (MAX_CHARS + 1)
    for title, entities in ((longest, (longer, "A b")), (longer, (longest, "A b"))):
        assert entity_names(Record("t", "e", Document(id="a", title=title, text=""), entities)) == {longest, "a b"}


def test_a_title_that_is_a_sentence_is_no_name() -> None:
    document = Document(id="a", title="one two three four five six seven eight nine", text="")
    assert entity_names(Record("t", "e", document, ("?!",))) == set()
