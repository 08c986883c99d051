from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.engine.text_table import Group, TextColumns, TextTable

GROUPS = st.tuples(st.sampled_from(["", "a", "b"]), st.sampled_from(["", "a", "ü"]))
TEXTS = st.text(st.characters(), max_size=4)  # lone surrogates, too


def opened(folder: Path, texts: list[tuple[Group, str]]) -> TextTable:
    """The table of some texts, from its files."""
    TextColumns.of(texts).write(folder)
    return TextTable(TextColumns.read(folder))


@given(st.lists(st.tuples(GROUPS, TEXTS), max_size=200), st.lists(st.tuples(GROUPS, TEXTS)))
def test_each_text_is_found_by_its_group_and_no_other(
    texts: list[tuple[Group, str]], others: list[tuple[Group, str]]
) -> None:
    table = TextTable(TextColumns.of(texts))
    assert [table.text(number) for number in range(len(table))] == [text for _, text in texts]
    last = {pair: number for number, pair in enumerate(texts)}
    assert [table.find(group, text) for group, text in texts + others] == [last.get(pair) for pair in texts + others]


@pytest.mark.parametrize("count", [0, 1, 2, 3, 1_000])
def test_the_files_have_the_texts(count: int, tmp_path: Path) -> None:
    texts = [((f"tenant{number % 7}", "default"), f"text {number}") for number in range(count)]
    table = opened(tmp_path / "table", texts)
    assert len(table) == count
    assert [table.text(number) for number in range(count)] == [text for _, text in texts]
    assert [table.find(group, text) for group, text in texts] == list(range(count))
    assert table.find(("tenant0", "default"), "text 1") is None
    assert table.find(("unknown", "default"), "text 0") is None


def test_texts_that_hash_to_the_same_slots_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if they reach beyond the last of the slots that texts hash to."""
    monkeypatch.setattr("adapters.engine.text_table._hash", lambda key: lambda group, text: 2**64 - 1)
    texts = [(("a", ""), f"{number}") for number in range(50)]
    table = TextTable(TextColumns.of(texts))
    assert [table.find(group, text) for group, text in texts] == list(range(50))
    assert table.find(("a", ""), "50") is None


def test_the_hash_is_another_in_every_table() -> None:
    """Texts that are made to collide in one do not collide in the next."""
    texts = [(("a", ""), f"{number}") for number in range(100)]
    slots = [TextColumns.of(texts).slots for _ in range(2)]
    assert not np.array_equal(*slots)
