"""The encoders of queries."""

from __future__ import annotations

from adapters.embed.minilm import MiniLM
from adapters.embed.static_encoder_file import StaticEncoderFile
from orchestrator.settings.groups import Settings


def open_static_encoder(settings: Settings, model: MiniLM) -> StaticEncoderFile:
    """The static encoder of the data folder, if there is one."""
    return StaticEncoderFile(settings.storage.data_dir / "query-table.bin", model.tokenizer, model.identity)


class StaticEncoderReport:
    """See :class:`orchestrator.service.health.StaticEncoderHealth`."""

    def __init__(self, file: StaticEncoderFile) -> None:
        self._file = file

    def agreement(self) -> float | None:
        """See :class:`orchestrator.service.health.StaticEncoderHealth`."""
        return None if self._file.encoder is None else self._file.encoder.agreement
