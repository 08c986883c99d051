"""The values of the metrics of this process, and of all processes behind the same port.

Every name begins with ``trivium_``. Several processes share a folder, named by ``PROMETHEUS_MULTIPROC_DIR``: each
writes its own values there, and the one that is scraped adds all of them up. Counters of a process that has ended stay,
its gauges do not.
"""

from __future__ import annotations

import os
import re
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.exposition import choose_encoder
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

MULTIPROCESS_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""The variable that ``prometheus-client`` reads when it is imported."""

_PREFIX = "trivium_"
_READS, _CREATED_S = 20, 0.01

disable_created_metrics()  # type: ignore[no-untyped-call]  # they double the number of series

_LIVE_GAUGE = re.compile(r"gauge_live\w+_(\d+)\.db")

GaugeMode: TypeAlias = Literal["livesum", "livemax", "livemin"]
"""How the values of several processes become one: their sum, or the largest."""
M = TypeVar("M", Counter, Gauge, Histogram)
T = TypeVar("T")


class Registry:
    """Metrics by name, and their values."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._folder = os.environ.get(MULTIPROCESS_VARIABLE)
        self._children: dict[tuple[object, ...], Any] = {}
        self._totals: dict[tuple[object, ...], float] = {}

    def values(self) -> dict[tuple[str, ...], float]:
        """Every value of all processes, by the name without its prefix and the values of the labels, in the order of
        their names. Blocks, as :meth:`exposition`.
        """
        families = self._read_whole(lambda registry: list(registry.collect()))
        samples = (sample for family in families for sample in family.samples)
        return {
            (sample.name.removeprefix(_PREFIX), *(value for _, value in sorted(sample.labels.items()))): sample.value
            for sample in samples
        }

    def exposition(self, accept: str) -> tuple[bytes, str]:
        """All metrics of all processes, and their media type. Blocks: some milliseconds for each process.

        :param accept: the ``Accept`` header, which may select OpenMetrics, with exemplars.
        """
        encode, media_type = choose_encoder(accept)
        return self._read_whole(encode), media_type

    def _read_whole(self, read: Callable[[CollectorRegistry], T]) -> T:
        """What is read of all processes. A file that a process is creating is empty for a moment: then again."""
        for _ in range(_READS - 1):
            try:
                return read(self._all_processes())
            except struct.error:
                time.sleep(_CREATED_S)
        return read(self._all_processes())

    def _all_processes(self) -> CollectorRegistry:
        """The metrics of all processes behind this port."""
        if not self._folder:
            return self._registry
        _forget_ended_processes(Path(self._folder))
        registry = CollectorRegistry()
        MultiProcessCollector(registry, self._folder)  # type: ignore[no-untyped-call]
        return registry

    def _grow(self, counter: Counter, total: float, *label_values: str) -> None:
        """Raise a counter to a total of this process."""
        key = (counter, *label_values)
        if (grown := total - self._totals.get(key, 0.0)) > 0:
            self._child(counter, *label_values).inc(grown)
            self._totals[key] = total

    def _child(self, metric: M, *label_values: str) -> M:
        """The metric for some values of its labels, without the lock that ``labels`` takes each time."""
        key = (metric, *label_values)
        child: M | None = self._children.get(key)
        if child is None:
            child = self._children[key] = metric.labels(*label_values) if label_values else metric
        return child

    def _histogram(self, name: str, text: str, label_names: tuple[str, ...], buckets: tuple[float, ...]) -> Histogram:
        return Histogram(f"{_PREFIX}{name}", text, label_names, buckets=buckets, registry=self._registry)

    def _counter(self, name: str, text: str, label_names: tuple[str, ...]) -> Counter:
        return Counter(f"{_PREFIX}{name}", text, label_names, registry=self._registry)

    def _gauge(self, name: str, text: str, label_names: tuple[str, ...] = (), mode: GaugeMode = "livesum") -> Gauge:
        return Gauge(f"{_PREFIX}{name}", text, label_names, registry=self._registry, multiprocess_mode=mode)


def _forget_ended_processes(folder: Path) -> None:
    """Remove the gauges of processes that have ended."""
    named = (match for path in folder.iterdir() if (match := _LIVE_GAUGE.fullmatch(path.name)))
    for pid in {int(match[1]) for match in named}:
        if not _is_running(pid):
            mark_process_dead(pid, str(folder))  # type: ignore[no-untyped-call]


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
