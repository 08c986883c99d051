from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from adapters import Entry, Unavailable
from adapters.embed.fit import fit, pseudo_queries
from adapters.embed.minilm import MiniLM
from adapters.embed.table import QueryTable
from adapters.embed.table_file import TableFile
from tests.conftest import entry

SUBJECTS = ("cooking pasta", "open heart surgery", "stock markets", "ocean sailing", "jazz music", "volcano eruptions")


@pytest.fixture(scope="module")
def entries(model: MiniLM) -> list[Entry]:
    texts = [
        f"{subject.title()} needs care. Chapter {n} tells about {subject}." for subject in SUBJECTS for n in range(40)
    ]
    vectors = model.encode_documents(texts)
    made = [entry(str(n), text, title=text.split(" needs")[0]) for n, text in enumerate(texts)]
    return [Entry(each.record, vector) for each, vector in zip(made, vectors, strict=True)]


@pytest.fixture(scope="module")
def table(model: MiniLM, entries: list[Entry], model_dir: Path) -> QueryTable:
    steps: list[str] = []
    fitted = fit(model, entries, model_dir, steps.append)
    assert steps == [f"query table: {step}" for step in ("single tokens", "made-up queries", "token vectors")]
    return fitted


def file_of(table: QueryTable, model: MiniLM, path: Path) -> TableFile:
    table.save(path)
    return TableFile(path, model.tokenizer, model.identity)


def test_it_points_where_the_model_points(table, model, entries, tmp_path) -> None:
    encode = file_of(table, model, tmp_path / "t").encode
    vectors = np.stack([each.vector for each in entries])
    for place, subject in enumerate(SUBJECTS):
        guess = encode(f"what is {subject}")
        best = np.argsort(-(vectors @ guess))[:10]
        assert {int(n) // 40 for n in best} == {place}


def test_it_says_what_it_is(table: QueryTable, model: MiniLM) -> None:
    assert table.identity.startswith(model.identity)
    assert table.documents == 240
    assert 0 <= table.agreement <= 1


def test_it_is_the_same_after_saving(table, model, tmp_path) -> None:
    table.save(tmp_path / "t")
    loaded = QueryTable.load(tmp_path / "t")
    assert loaded is not None
    ids = model.tokenizer.encode("ocean sailing", add_special_tokens=False).ids
    assert np.array_equal(loaded.encode(ids), table.encode(ids))
    assert (loaded.identity, loaded.documents, loaded.agreement) == (table.identity, table.documents, table.agreement)


def test_nothing_to_go_by_is_no_vector(table: QueryTable, model: MiniLM, tmp_path: Path) -> None:
    assert table.encode([]) is None
    assert TableFile(tmp_path / "none", model.tokenizer, model.identity).encode("x") is None


def test_a_table_of_another_space_or_of_poor_agreement_is_not_used(table, model, tmp_path) -> None:
    table.save(tmp_path / "t")
    assert TableFile(tmp_path / "t", model.tokenizer, "another-model").table is None
    poor = QueryTable.quantised(table.identity, np.ones((4, 384), np.float32), 10, agreement=0.1)
    assert file_of(poor, model, tmp_path / "p").table is None


def test_it_follows_the_file(table, model, tmp_path) -> None:
    followed = TableFile(tmp_path / "t", model.tokenizer, model.identity)
    assert followed.table is None
    table.save(tmp_path / "t")
    table.agreement = max(table.agreement, 0.5)
    table.save(tmp_path / "t")
    followed.refresh()
    assert followed.table is not None
    (tmp_path / "t").unlink()
    followed.refresh()
    assert followed.table is None


@pytest.mark.parametrize(
    "content", [b"", b"not json\n", b'{"identity":"x","rows":9,"dimension":9,"documents":1,"agreement":1}\nshort']
)
def test_a_damaged_file_is_named(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(content)
    with pytest.raises(Unavailable, match="is damaged, remove it"):
        QueryTable.load(tmp_path / "t")


def test_made_up_queries_are_the_same_each_time_and_bounded() -> None:
    titles, texts = ["A Title"] * 50, ["One sentence of some words. Another sentence follows it."] * 50
    made = pseudo_queries(titles, texts)
    assert made == pseudo_queries(titles, texts)
    assert len(pseudo_queries(titles, texts, limit=7)) == 7
    assert pseudo_queries([""], [""]) == []
