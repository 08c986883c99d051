"""The tokens by which texts are measured, whatever encodes them."""

from __future__ import annotations

from tokenizers import Tokenizer

from adapters.encoders import model_files
from adapters.encoders.model_files import ModelFiles
from adapters.encoders.passages import AROUND, Splitter


class Tokens:
    """Splits texts into the tokens of :class:`adapters.encoders.minilm.MiniLM`.

    :raises Unavailable: if its files are missing or damaged.
    """

    def __init__(self, files: ModelFiles | None = None) -> None:
        self.tokenizer = Tokenizer.from_file(str((files or model_files.read()).tokenizer))
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()

    def ends(self, text: str) -> list[int]:
        """See :data:`adapters.ports.encoders.TokenEnds`."""
        return [end for _, end in self.tokenizer.encode(text, add_special_tokens=False).offsets]

    def splitter(self, count: int, around: int = AROUND) -> Splitter:
        """What splits texts into passages of at most ``count`` tokens; parameters as of :class:`Splitter`."""
        return Splitter(self.tokenizer, count, around)
