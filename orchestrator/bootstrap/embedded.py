"""Opens the embedded sources that the settings name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from adapters.embedded import Components, EmbeddedSources, Fit
from adapters.encoders.address import Encoder
from adapters.encoders.minilm import MiniLM
from adapters.encoders.static_fit import fit
from adapters.engine.component import IndexComponent
from adapters.engine.index import EmbeddedIndex
from adapters.engine.manifest import Manifest
from adapters.engine.salvage import OLD, Rebuilt, rebuild
from adapters.graph.centrality import CentralityFile
from adapters.graph.component import GraphComponent
from adapters.graph.extract import extractor_identity
from adapters.keyword.component import KeywordComponent
from adapters.model.sources import GRAPH, KEYWORD, VECTOR
from adapters.ports import DocumentEncoder, VectorRecord
from adapters.vector.embedded import VectorComponent
from orchestrator.bootstrap.encoders import Encoding, open_document_vectors
from orchestrator.settings.backends import EMBEDDED
from orchestrator.settings.groups import Settings

FORMATS: Mapping[str, str] = {
    VECTOR.name: VectorComponent.format,
    KEYWORD.name: KeywordComponent.format,
    GRAPH.name: GraphComponent.format,
}
"""The index format of each embedded source."""

INDEX_FOLDER = "index"
"""Name of the index folder in the data folder."""


def _components(settings: Settings) -> Components:
    """The components that the settings name."""
    urls = settings.sources.urls
    return (
        VectorComponent() if urls[VECTOR.name] == EMBEDDED else None,
        KeywordComponent() if urls[KEYWORD.name] == EMBEDDED else None,
        GraphComponent(settings.ranking.link_strengths) if urls[GRAPH.name] == EMBEDDED else None,
    )


def _build(components: Components, prepared_by: str) -> tuple[list[IndexComponent[Any]], str]:
    """The components that are not ``None``, and the build id of their index."""
    chosen: list[IndexComponent[Any]] = [each for each in components if each]
    return chosen, "+".join((prepared_by, *(component.format for component in chosen)))


def documents_in(settings: Settings) -> int | None:
    """Number of documents of the embedded index by its newest manifest that can be read; ``None`` if there is none."""
    manifests = Manifest.copies(settings.storage.data_dir / INDEX_FOLDER)
    return manifests[0].documents if manifests else None


def rebuild_index(settings: Settings, with_deleted: bool, progress: Callable[[int], None]) -> Rebuilt:
    """Replace a damaged index with a new one. See :func:`adapters.engine.salvage.rebuild`."""
    documents = open_document_vectors(settings)
    components, build_id = _build(_components(settings), prepared_by(settings, documents))
    folder = settings.storage.data_dir / INDEX_FOLDER
    return rebuild(folder, components, build_id, documents, with_deleted, progress)


def replaced_indexes(settings: Settings) -> list[Path]:
    """The folders of damaged indexes that were replaced."""
    return sorted(settings.storage.data_dir.glob(f"{INDEX_FOLDER}{OLD}-*"))


def refit_index(settings: Settings, progress: Callable[[int], None]) -> Rebuilt | None:
    """Build the embedded index again for the sources that the settings embed now, from its own documents.

    Returns ``None`` if that is not needed: it has this build, or there is no index, or no source is embedded.

    :raises VersionMismatch: if another encoder or extractor prepared its documents.
    :raises AdapterError: as :func:`adapters.engine.salvage.rebuild`.
    """
    documents = open_document_vectors(settings)
    preparation = prepared_by(settings, documents)
    components, build_id = _build(_components(settings), preparation)
    folder = settings.storage.data_dir / INDEX_FOLDER
    if not components or Manifest.read(folder, build_id).build_id == build_id:
        return None
    return rebuild(
        folder,
        components,
        build_id,
        documents,
        progress=progress,
        accepts=lambda built: _is_prepared(built, preparation),
    )


def stored_documents(settings: Settings) -> Callable[[], Iterator[VectorRecord]] | None:
    """The documents of the index in the data folder, for settings without embedded sources; ``None`` without them.

    :raises AdapterError: if the index cannot be opened.
    """
    folder = settings.storage.data_dir / INDEX_FOLDER
    build_id = Manifest.read(folder, "").build_id
    if EMBEDDED in settings.sources.urls.values():
        return None
    if not _is_prepared(build_id, prepared_by(settings, open_document_vectors(settings))):
        return None
    return EmbeddedIndex(folder, (), build_id).current().records_with_vectors


def _is_prepared(build_id: str, prepared_by: str) -> bool:
    """Whether an index has the records and vectors that the settings require."""
    return build_id.startswith(f"{prepared_by}+")


def prepared_by(settings: Settings, documents: DocumentEncoder) -> str:
    """Identities of the encoder and of the extractor of documents: the first part of a build id."""
    return f"{documents.identity}+{extractor_identity(settings.encoding.entity_extractor)}"


def open_embedded(settings: Settings, prepared_by: str, encoding: Encoding) -> EmbeddedSources:
    """The embedded sources of a data folder.

    :param prepared_by: see :func:`prepared_by`.
    :raises AdapterError: if the index cannot be opened.
    """
    components = _components(settings)
    folder = settings.storage.data_dir / INDEX_FOLDER
    chosen, build_id = _build(components, prepared_by)
    index = EmbeddedIndex(folder, chosen, build_id, settings.storage.strict_index)
    centralities = CentralityFile(folder / "centrality.msgpack", settings.ranking.centrality)
    return EmbeddedSources(index, components, centralities, encoding.static, _fit(settings, encoding.model))


def _fit(settings: Settings, model: Encoder) -> Fit | None:
    """What fits the static encoder; ``None`` if it encodes no query."""
    if "static" not in settings.encoding.query_encoders or not isinstance(model, MiniLM):
        return None
    return partial(fit, model, cache=settings.storage.model_dir)
