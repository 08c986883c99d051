"""Names in texts."""

from __future__ import annotations

from adapters.graph.gazetteer import Gazetteer


def test_names_are_found_in_texts() -> None:
    names = Gazetteer(["Write log", "the", "Search", "useEffect", "HTTP2", "to be", "Über uns"])
    assert names.mentioned("A write LOG, useeffect, useEffect; the search, über UNS and HTTP2.") == [
        "Write log",
        "Über uns",
        "HTTP2",
        "useEffect",
    ]
    assert len(names) == 4
