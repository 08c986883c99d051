from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from adapters import Damaged
from adapters.encoders.minilm import MiniLM
from adapters.encoders.static_encoder import StaticQueryEncoder
from adapters.encoders.static_encoder_file import StaticEncoderFile
from adapters.encoders.static_fit import fit, pseudo_queries
from adapters.ports import VectorRecord
from adapters.ports.encoders import EncodedText
from tests.conftest import vector_record

SUBJECTS = ("cooking pasta", "open heart surgery", "stock markets", "ocean sailing", "jazz music", "volcano eruptions")


@pytest.fixture(scope="module")
def sample(model: MiniLM) -> list[VectorRecord]:
    texts = [
        f"{subject.title()} needs care. Chapter {n} is about {subject}." for subject in SUBJECTS for n in range(40)
    ]
    vectors = model.encode_texts(list(map(EncodedText, texts)))
    records = [vector_record(str(n), text, title=text.split(" needs")[0]) for n, text in enumerate(texts)]
    return [VectorRecord(each.record, vector) for each, vector in zip(records, vectors, strict=True)]


@pytest.fixture(scope="module")
def encoder(model: MiniLM, sample: list[VectorRecord], model_dir: Path) -> StaticQueryEncoder:
    steps: list[str] = []
    fitted = fit(model, sample, steps.append, cache=model_dir)
    assert steps == [f"static encoder: {step}" for step in ("single tokens", "generated queries", "token vectors")]
    return fitted


def file_of(encoder: StaticQueryEncoder, model: MiniLM, path: Path) -> StaticEncoderFile:
    encoder.save(path)
    return StaticEncoderFile(path, model.tokens.tokenizer, model.identity)


def test_its_nearest_documents_are_those_of_the_model(encoder, model, sample, tmp_path) -> None:
    encode = file_of(encoder, model, tmp_path / "t").encode
    vectors = np.stack([each.vectors[0] for each in sample])
    for number, subject in enumerate(SUBJECTS):
        vector = encode(f"what is {subject}")
        best = np.argsort(-(vectors @ vector))[:10]
        assert {int(n) // 40 for n in best} == {number}


def test_its_attributes_describe_the_fit(encoder: StaticQueryEncoder, model: MiniLM) -> None:
    assert encoder.identity.startswith(model.identity)
    assert encoder.documents == 240
    assert 0 <= encoder.agreement <= 1


def test_it_is_the_same_after_saving(encoder, model, tmp_path) -> None:
    encoder.save(tmp_path / "t")
    loaded = StaticQueryEncoder.load(tmp_path / "t")
    assert loaded is not None
    ids = model.tokens.tokenizer.encode("ocean sailing", add_special_tokens=False).ids
    assert np.array_equal(loaded.encode(ids), encoder.encode(ids))
    assert (loaded.identity, loaded.documents, loaded.agreement) == (
        encoder.identity,
        encoder.documents,
        encoder.agreement,
    )


def test_a_text_without_tokens_has_no_vector(encoder: StaticQueryEncoder, model: MiniLM, tmp_path: Path) -> None:
    assert encoder.encode([]) is None
    assert StaticEncoderFile(tmp_path / "none", model.tokens.tokenizer, model.identity).encode("x") is None


def test_an_encoder_of_another_space_or_of_low_agreement_is_not_used(encoder, model, tmp_path) -> None:
    encoder.save(tmp_path / "t")
    assert StaticEncoderFile(tmp_path / "t", model.tokens.tokenizer, "another-model").encoder is None
    poor = StaticQueryEncoder.quantised(encoder.identity, np.ones((4, 384), np.float32), 10, agreement=0.1)
    assert file_of(poor, model, tmp_path / "p").encoder is None


def test_it_follows_the_file(encoder, model, tmp_path) -> None:
    followed = StaticEncoderFile(tmp_path / "t", model.tokens.tokenizer, model.identity)
    assert followed.encoder is None
    encoder.save(tmp_path / "t")
    encoder.agreement = max(encoder.agreement, 0.5)
    encoder.save(tmp_path / "t")
    followed.refresh()
    assert followed.encoder is not None
    (tmp_path / "t").unlink()
    followed.refresh()
    assert followed.encoder is None


@pytest.mark.parametrize(
    "content", [b"", b"not json\n", b'{"identity":"x","rows":9,"dimension":9,"documents":1,"agreement":1}\nshort']
)
def test_a_damaged_file_is_named(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(content)
    with pytest.raises(Damaged, match="the static encoder is damaged"):
        StaticQueryEncoder.load(tmp_path / "t")


def test_generated_queries_are_reproducible_and_limited() -> None:
    titles, texts = ["A Title"] * 50, ["One sentence of some words. Another sentence follows it."] * 50
    queries = pseudo_queries(titles, texts)
    assert queries == pseudo_queries(titles, texts)
    assert len(pseudo_queries(titles, texts, limit=7)) == 7
    assert pseudo_queries([""], [""]) == []
