"""Health: whether each source can be searched, for ``/readyz``, and a detailed examination for ``trivium doctor``."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from time import time
from typing import TypeAlias

import anyio.to_thread

from adapters import AdapterError, Scope, TimedOut
from adapters.embedded import EmbeddedSources
from adapters.model.protection import HIGHEST_CLEARANCE
from adapters.ports import DocumentSampler
from adapters.ports.graph import LinkStrengthReader
from adapters.ports.server import ServerSource
from cache import InvalidationCounters
from orchestrator.indexing.metadata_keys import MetadataKeys
from orchestrator.indexing.replication import Replication
from orchestrator.measurement.found_names import describe_names
from orchestrator.service.coalesced_value import CoalescedTtlValue
from orchestrator.service.maintenance import MaintenanceService
from orchestrator.service.replica_counts import ReplicaCounts

_log = logging.getLogger(__name__)

Probe: TypeAlias = Callable[[], Awaitable[object]]

OK = "ok"
WARMING = "warming"
_PROBE_TTL_S = 1.0
"""Seconds for which the result of probing the servers is cached."""
_PROBE_TIMEOUT_S = 1.0
"""Time limit of a search that tests whether a source is available."""
_SAMPLED_DOCUMENTS = 200
_MAX_SKEW_S = 1.0
"""Maximum difference of clocks: with more, logs are hard to compare, and the versions of documents jump."""
_REBUILD_ADVICE = "check the disk; `trivium rebuild` recovers every undamaged document"
_DAMAGED_ADVICE = "check the disk; run `trivium index` again with all documents, then remove the file"
_KEYS_ADVICE = "check the disk, remove the file and restart: the keys of its tenant are then counted again"
_OPEN_CACHE_ADVICE = (
    "set requirepass in Redis, and TRIVIUM_CACHE=redis://:password@host: who reaches Redis reads and forges responses"
)
_MEASURE_ADVICE = "check the disk; run `trivium tidy`, which measures it again: until then it counts as not measured"
_REFUSED_ADVICE = "see `trivium quarantine`; correct the documents and write them again"
_FILL_ADVICE = "`trivium fill` gives it the documents that the others have"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. ``advice``: what to do about a problem."""

    subject: str
    is_well: bool
    observation: str
    advice: str = ""


@dataclass(frozen=True)
class HealthService:
    """The health of everything that the settings name.

    :param sources: names of all sources.
    :param servers: the sources on a server, by name.
    :param searches: by name, a search of each source that is neither embedded nor on a server: it raises
        :class:`adapters.AdapterError` if the source is unavailable.
    :param static_encoder_agreement: the fraction of the model's ten nearest documents that the static encoder also
        finds; ``None`` if there is no such encoder.
    :param link_strengths: ``None`` if there is no graph.
    :param documents: of which a sample shows the names that are found.
    :param encoder: name and dimension of the encoder.
    :param encode_query: encodes a query; ``None`` if nothing does.
    :param is_cache_open: whether the shared cache is on another host, and has no password.
    """

    sources: tuple[str, ...]
    servers: Mapping[str, ServerSource]
    searches: Mapping[str, Probe]
    embedded: EmbeddedSources | None
    static_encoder_agreement: Callable[[], float | None]
    replication: Replication | None
    replica_counts: ReplicaCounts | None
    counters: InvalidationCounters | None
    maintenance: MaintenanceService
    metadata_keys: MetadataKeys
    link_strengths: LinkStrengthReader | None
    documents: DocumentSampler
    encoder: str
    anonymous_scope: Scope
    encode_query: Probe | None = None
    is_cache_open: bool = False
    now: Callable[[], float] = time
    _probes: CoalescedTtlValue[dict[str, str]] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_probes", CoalescedTtlValue(self._probe_all, _PROBE_TTL_S))

    async def by_source(self) -> dict[str, str]:
        """The state by source: ``ok``, ``warming``, or the problem.

        All but the embedded ones are probed, at most once a second.
        """
        states = dict(self._embedded_states())
        states |= await self._probes.get()
        states |= {name: WARMING for name, server in self.servers.items() if states[name] == OK and server.is_warming}
        lacking = self.replica_counts.problems if self.replica_counts else {}
        states |= {name: problem for name, problem in lacking.items() if states.get(name) == OK}
        return {source: states[source] for source in self.sources if source in states}

    def _embedded_states(self) -> Iterator[tuple[str, str]]:
        if self.embedded is not None:
            total = self.embedded.documents()
            for source, count in self.embedded.documents_by_source().items():
                yield source, OK if count == total else f"has {count} of {total} documents"

    async def _probe_all(self) -> dict[str, str]:
        probes: dict[str, Probe] = {name: server.release for name, server in self.servers.items()}
        probes |= {name: _limited(search) for name, search in self.searches.items()}
        states = await asyncio.gather(*(_probe(probe) for probe in probes.values()))
        return dict(zip(probes, states, strict=True))

    async def examine(self) -> list[Finding]:
        """Every finding, in order."""
        findings = [await self._examine_encoder(), *self._examine_embedded()]
        if self.embedded is not None:
            damaged = await anyio.to_thread.run_sync(self.embedded.damaged)
            findings += [Finding(path, False, "checksum mismatch", _REBUILD_ADVICE) for path in damaged]
        damaged = await anyio.to_thread.run_sync(self.metadata_keys.damaged)
        findings += [Finding(path, False, "checksum mismatch", _KEYS_ADVICE) for path in damaged]
        damaged = await anyio.to_thread.run_sync(self.maintenance.damaged)
        findings += [Finding(path, False, "checksum mismatch", _MEASURE_ADVICE) for path in damaged]
        for source, server in self.servers.items():
            findings += await self._examine_server(source, server)
        for source, search in self.searches.items():
            state = await _probe(_limited(search))
            advice = "" if state == OK else "follow the message"
            findings.append(Finding(source, not advice, "can be searched" if state == OK else state, advice))
        findings += await self._examine_replication()
        findings.append(self._examine_static_encoder())
        findings.append(self._examine_trust())
        findings += await self._examine_names()
        findings += await self._examine_links()
        return [*findings, await self._examine_cache()]

    async def _examine_encoder(self) -> Finding:
        try:
            if self.encode_query:
                await _limited(self.encode_query)()
        except AdapterError as error:
            advice = "follow the message: until then searches lack vectors"
            return Finding("embedder", False, f"{self.encoder}; no query: {error.for_operators}", advice)
        return Finding("embedder", True, self.encoder)

    def _examine_embedded(self) -> Iterator[Finding]:
        engine = self.embedded
        if engine is None:
            return
        total = engine.documents()
        found = f"{total} documents in {engine.segments()} segments, generation {engine.generation()}"
        yield Finding("index", True, found if total else "empty: run `trivium index PATH`")
        if mismatch := engine.mismatch():
            yield Finding("index build", False, mismatch, "follow the message: until then the index is read-only")
        for source, count in engine.documents_by_source().items():
            advice = "" if count == total else "index again into another TRIVIUM_DATA_DIR, and report this"
            yield Finding(source, count == total, f"{count} documents", advice)

    async def _examine_server(self, source: str, server: ServerSource) -> list[Finding]:
        """Examine one server: whether it is available, its index, and its clock."""
        setting = f"TRIVIUM_{source.upper()}"
        try:
            release = await server.release()
        except AdapterError as error:
            return [Finding(source, False, error.for_operators, f"start the server, or correct {setting}")]
        findings = [Finding(source, True, f"available, release {release}")]
        try:
            exists = await server.check()  # reports the dimension and the build if they differ
            observation = "exists, built as the settings require" if exists else "no index: run `trivium index PATH`"
            findings.append(Finding(f"{source} index", True, observation))
            different = await server.differences() if exists else ()
            findings += [Finding(f"{source} layout", False, each.observation, each.advice) for each in different]
        except AdapterError as error:
            findings.append(Finding(f"{source} index", False, error.for_operators, "follow the message"))
        try:
            clock = await server.clock()
        except AdapterError as error:
            advice = f"check the server of {setting}"
            return [*findings, Finding(f"{source} clock", False, error.for_operators, advice)]
        if clock is not None:
            skew = clock - self.now()
            advice = "" if abs(skew) < _MAX_SKEW_S else "let both machines use the same time server"
            findings.append(Finding(f"{source} clock", not advice, f"{skew:+.1f} s from this machine", advice))
        return findings

    async def _examine_replication(self) -> list[Finding]:
        """Examine the write log, and whether all replicas have the same number of documents."""
        if self.replication is None:
            return []
        replication = self.replication
        lags = {name: lag for name in replication.replicas if (lag := replication.lag(name))}
        waiting = ", ".join(f"{name} lacks {lag} writes" for name, lag in lags.items())
        advice = "start the unavailable server: the service then applies the writes" if lags else ""
        findings = [Finding("write log", not lags, waiting or "empty: every replica has every write", advice)]
        refused = Counter((each.replica, *each.key[:2]) for each in replication.refused())
        for (name, tenant, environment), count in refused.items():
            observation = f"refuses {count} documents of tenant {tenant!r}, environment {environment!r}"
            findings.append(Finding(name, False, observation, _REFUSED_ADVICE))
        damaged = "checksum mismatch: some replicas may lack documents"
        findings += [Finding(path, False, damaged, _DAMAGED_ADVICE) for path in replication.damaged_writes()]
        missed = "lacks writes from before it was added"
        findings += [Finding(name, False, missed, _FILL_ADVICE) for name in replication.with_missed_history()]
        counts = await replication.counts()
        has_equal_counts = len(set(counts.values())) <= 1
        shown = ", ".join(f"{name}: {count}" for name, count in counts.items())
        return [*findings, Finding("documents", has_equal_counts, shown, "" if has_equal_counts else _FILL_ADVICE)]

    def _examine_static_encoder(self) -> Finding:
        """Whether there is a static encoder, and what it costs on this corpus."""
        agreement = self.static_encoder_agreement()
        if self.maintenance.static_encoder_outdated():
            advice = "run `trivium tidy`: until then the model encodes queries"
            observation = "none" if agreement is None else "fitted to less than half of the documents"
            return Finding("static encoder", False, observation, advice)
        if "static" not in self.maintenance.query_encoders:
            return Finding("static encoder", True, "not used: TRIVIUM_QUERY_ENCODER is `model`")
        if agreement is None:
            return Finding("static encoder", True, "none, and too few documents to need one")
        return Finding("static encoder", True, f"finds {agreement:.0%} of the model's ten nearest documents")

    def _examine_trust(self) -> Finding:
        """The factor on the weight of the graph, and whether it is up to date."""
        trust = self.maintenance.trust.of_scope(self.anonymous_scope, HIGHEST_CLEARANCE)
        observation = "not measured, so the graph has its full weight"
        if trust:
            observation = (
                f"{trust.lift:.1f} times chance over {trust.walks} passages, "
                f"so the graph has {trust.graph_weight_factor:.0%} of its weight"
            )
        observation = f"tenant {self.anonymous_scope.tenant}: {observation}"
        if self.maintenance.trust_outdated():
            observation += "; outdated since the newest writes: run `trivium tidy`"
        return Finding("graph trust", True, observation)

    async def _examine_names(self) -> list[Finding]:
        """Examples of the names in the graph."""
        if self.link_strengths is None:
            return []
        try:
            sample = await self.documents.sample(_SAMPLED_DOCUMENTS)
        except AdapterError as error:
            return [Finding("names", False, error.for_operators, "follow the message")]
        return [Finding("names", True, describe_names(sample))] if sample else []

    async def _examine_links(self) -> list[Finding]:
        """How far walks follow each type of link, and why."""
        if self.link_strengths is None:
            return []
        try:
            strengths = await self.link_strengths.link_strengths(self.anonymous_scope)
        except AdapterError as error:
            return [Finding("graph links", False, error.for_operators, "follow the message")]
        return [
            Finding(
                f"links {each.type}",
                True,
                f"followed {each.forward:.0%} to the target, {each.backward:.0%} to the source: {each.reason}",
            )
            for each in strengths
        ]

    async def _examine_cache(self) -> Finding:
        """Examine the shared cache by reading a counter that is not used otherwise."""
        if self.counters is None:
            return Finding("cache", True, "in each process")
        if await self.counters.ensure_loaded(["doctor"]):
            if self.is_cache_open:
                return Finding("cache", False, "Redis is on another host and has no password", _OPEN_CACHE_ADVICE)
            return Finding("cache", True, "Redis is available")
        advice = "start Redis, or correct TRIVIUM_CACHE: the service works without it"
        return Finding("cache", False, "Redis is unavailable", advice)


async def _probe(probe: Probe) -> str:
    try:
        await probe()
    except AdapterError as error:
        return str(error)
    except Exception:
        # A defect in one source must not hide the state of the others; the log has the trace.
        _log.exception("a probe raised an unexpected error")
        return "internal error"
    return OK


def _limited(search: Probe) -> Probe:
    """A search with a time limit."""

    async def limited() -> None:
        try:
            async with asyncio.timeout(_PROBE_TIMEOUT_S):
                await search()
        except TimeoutError as error:
            raise TimedOut("timed out") from error

    return limited
