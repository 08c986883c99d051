"""The static query encoder of a data folder, reread when it is fitted again."""

from __future__ import annotations

import logging
from pathlib import Path

from tokenizers import Tokenizer

from adapters.encoders.static_encoder import StaticQueryEncoder, WordPieces
from adapters.model.errors import Damaged
from adapters.ports.encoders import Vector
from adapters.storage.followed_file import FollowedFile

_log = logging.getLogger(__name__)

MIN_AGREEMENT = 0.4
"""An encoder with a smaller agreement (see :class:`StaticQueryEncoder`) is not used."""


class StaticEncoderFile:
    """The :class:`StaticQueryEncoder` at ``path``, if there is a usable one. If the file is deleted, there is none.

    :param tokenizer: of the document encoder.
    :param space: identity of the document encoder; a static encoder that was fitted to another one is not used.
    """

    def __init__(self, path: Path, tokenizer: Tokenizer, space: str) -> None:
        self.path = path
        self._word_pieces = WordPieces(tokenizer)
        self._space = space
        self._file = FollowedFile(path, self._load, missing=None)
        self.refresh()

    @property
    def encoder(self) -> StaticQueryEncoder | None:
        """The encoder; ``None`` if there is no file, or its encoder is not usable."""
        return self._file.value

    def agreement(self) -> float | None:
        """The fraction of the model's ten nearest documents that the encoder also finds; ``None`` without one."""
        return None if self.encoder is None else self.encoder.agreement

    def refresh(self) -> None:
        """Load the file if it was replaced or deleted. If it is damaged, the encoder stays as it was."""
        self._file.refresh()

    def encode(self, text: str) -> Vector | None:
        """The query's vector, in well under a millisecond; ``None`` without an encoder, or without tokens."""
        encoder = self.encoder
        return None if encoder is None else encoder.encode(self._word_pieces.ids(text))

    def _load(self, path: Path) -> StaticQueryEncoder | None:
        try:
            encoder = StaticQueryEncoder.load(path)
        except Damaged as error:
            _log.error("the static encoder is damaged, and is fitted again: %s", error.for_operators)
            return self._file.value
        usable = encoder and encoder.identity.startswith(self._space) and encoder.agreement >= MIN_AGREEMENT
        return encoder if usable else None
