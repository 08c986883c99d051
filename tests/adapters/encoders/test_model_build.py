"""Building the model, as ``hatch_build.py`` does: it needs packages that are not installed with Trivium."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from safetensors.numpy import load_file

from adapters.encoders import model_build, model_files
from adapters.encoders.minilm import MiniLM
from adapters.ports.encoders import EncodedText

TEXTS = ["The cat sits on the mat.", "A feline rests on a rug.", "Stock markets fell sharply."]


@pytest.fixture
def built(tmp_path: Path) -> Path:
    return Path(shutil.copytree(model_files._FOLDER, tmp_path / "model"))


def test_int8_vectors_agree_with_the_published_weights(model: MiniLM) -> None:
    network = model_build._network(load_file(model_build.published_weights() / "model.safetensors"))
    full = onnxruntime.InferenceSession(network.SerializeToString())
    cosines = []
    for text in TEXTS:
        ids = model.tokens.tokenizer.encode(text).ids
        batch = np.array([ids], np.int32)
        expected = full.run(None, {"input_ids": batch, "attention_mask": np.ones_like(batch)})[0][0]
        cosines.append(float(expected @ model.encode_texts([EncodedText(text)])[0][0]))
    assert min(cosines) > 0.98


def test_a_damaged_model_is_built_again(built: Path) -> None:
    before = {path.name: path.read_bytes() for path in built.iterdir()}
    (built / "model.onnx").write_bytes(b"not a model")
    model_build.build(built)
    assert {path.name: path.read_bytes() for path in built.iterdir()} == before


def test_a_whole_model_is_not_built_again(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_build, "_PACKAGES", ())
    model_build.build(built)


def test_weights_that_are_not_the_published_ones_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(model_build._SHA256, "tokenizer.json", "0" * 64)
    with pytest.raises(RuntimeError, match=r"tokenizer.json has a checksum mismatch: reinstall"):
        model_build.published_weights()


def test_missing_weights_are_reported_with_the_packages_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_build, "_PACKAGES", (("no_such_package", "x"),))
    with pytest.raises(RuntimeError, match="one of these is needed: no_such_package"):
        model_build.build(tmp_path / "model")
