"""The files of the embedding model, which ``adapters/encoders/model_build.py`` writes when this package is built."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

from adapters.model.errors import Unavailable

_FOLDER = Path(__file__).with_name("model")


class ModelFiles(msgspec.Struct, frozen=True):
    """The content of the manifest.

    :param name: of the model and of how it was built.
    :param weights: SHA-256 of the weights that it was built from.
    :param files: SHA-256 by name of the file.
    """

    name: str
    weights: str
    files: dict[str, str]

    @property
    def model(self) -> Path:
        """The path of the model, in the ONNX format."""
        return _FOLDER / "model.onnx"

    @property
    def tokenizer(self) -> Path:
        """The path of the tokenizer, in the format of the package ``tokenizers``."""
        return _FOLDER / "tokenizer.json"


def read() -> ModelFiles:
    """Verify the checksums of the installed files and return them.

    :raises Unavailable: if one of them is missing or damaged.
    """
    try:
        files = msgspec.json.decode((_FOLDER / "manifest.json").read_bytes(), type=ModelFiles)
        for name, expected in files.files.items():
            with (_FOLDER / name).open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != expected:
                    raise Unavailable(f"the embedding model is damaged, {_FOLDER / name}: install Trivium again")
    except (OSError, msgspec.MsgspecError) as error:
        raise Unavailable(f"the embedding model cannot be read, {error}: install Trivium again") from error
    return files
