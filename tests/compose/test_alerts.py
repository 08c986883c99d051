"""Every alert fires when what it watches is broken, and none fires while all is well.

A real service is broken, and scraped twice under load. ``promtool`` then evaluates the alerts over series that go on as
they did between the two scrapes: a budget of 30 days is not spent in the time of a test.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from socket import create_server

import pytest
import yaml
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from docs.prometheus_rule import ALERTS
from orchestrator.indexing.generations.catalog import Catalog, Generation
from orchestrator.telemetry.metrics import Metrics
from tests.compose.test_rolling_restart import status
from tests.orchestrator.http.test_metrics import scrape, search
from tests.orchestrator.served import Serve, environment
from tests.read_only import on_a_read_only_disk
from tests.servers.start import free_port

pytestmark = [pytest.mark.server, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
DASHBOARD = ROOT / "compose" / "monitoring" / "dashboards" / "trivium.json"
HORIZONS = {"days": (4_400, 10), "hours": (400, 2)}
"""Minutes that are longer than the longest window of an alert and the time that it waits, and minutes from sample to
sample: alerts on three days need not see each minute."""
_NAME = re.compile(r"\btrivium_\w+")
WATCHED = frozenset(_NAME.findall(ALERTS.read_text()))
"""The metrics that rules name."""
OBJECTIVE = "0.15"
"""The upper bound of durations that rules name."""


GROUPS = yaml.safe_load(ALERTS.read_text())["groups"]


def alert_names() -> list[str]:
    return [rule["alert"] for group in GROUPS for rule in group["rules"] if "alert" in rule]


@dataclass
class Observed:
    """The value of each series, in the notation of PromQL, and its growth in a minute."""

    series: dict[str, tuple[float, float]]

    def fires(self, alert: str, promtool: str, folder: Path) -> bool:
        expression = f'count(ALERTS{{alertname="{alert}", alertstate="firing"}}) > bool 0'
        horizon = "days" if alert.endswith("Steadily") else "hours"
        return self._evaluates(expression, 1.0, HORIZONS[horizon], promtool, folder)

    def is_silent(self, promtool: str, folder: Path) -> bool:
        expression = 'count(ALERTS{alertstate="firing"}) or vector(0)'
        return all(self._evaluates(expression, 0.0, horizon, promtool, folder) for horizon in HORIZONS.values())

    def _evaluates(self, expression: str, value: float, horizon: tuple[int, int], promtool: str, folder: Path) -> bool:
        minutes, step = horizon
        test = {
            "rule_files": [str(ALERTS)],
            "evaluation_interval": f"{step}m",
            # Without it the order is random, and an alert before its ratio sees one that is too old.
            "group_eval_order": [group["name"] for group in GROUPS],
            "tests": [
                {
                    "interval": f"{step}m",
                    "input_series": [
                        {"series": name, "values": f"{start:.9f}{slope * step:+.9f}x{minutes // step}"}
                        for name, (start, slope) in self.series.items()
                    ],
                    "promql_expr_test": [
                        {
                            "expr": expression,
                            "eval_time": f"{minutes - step}m",
                            "exp_samples": [{"labels": "{}", "value": value}],
                        }
                    ],
                }
            ],
        }
        path = folder / "test.yaml"
        path.write_text(yaml.safe_dump(test))
        done = subprocess.run([promtool, "test", "rules", path], capture_output=True, text=True, check=False)
        assert done.returncode in {0, 1}, done.stderr
        assert "parse" not in done.stdout + done.stderr, done.stdout + done.stderr
        return done.returncode == 0


def samples(address: str) -> dict[str, float]:
    found: dict[str, float] = {}
    families: Iterator[Metric] = iter(text_string_to_metric_families(scrape(address)))
    for family in families:
        for sample in family.samples:
            if sample.name not in WATCHED or sample.labels.get("le", OBJECTIVE) != OBJECTIVE:
                continue  # promtool takes minutes for all of them
            labelled = sample.labels | {"job": "trivium", "instance": "a"}
            shown = ",".join(f"{name}={json.dumps(value)}" for name, value in sorted(labelled.items()))
            found[f"{sample.name}{{{shown}}}"] = sample.value
    return found


def write(address: str, number: int) -> None:
    body = json.dumps({"id": str(number), "text": f"document {number}"}).encode()
    urllib.request.urlopen(urllib.request.Request(f"{address}/v1/documents", body), timeout=30).close()


def observe(address: str, timeout_ms: int = 10_000, searches: int = 8, writes: int = 0) -> Observed:
    """Load, a scrape, the same load, and another scrape."""
    scraped: list[tuple[float, dict[str, float]]] = []
    for part in range(2):
        status(int(address.rpartition(":")[2]), "/readyz")
        for number in range(writes):
            write(address, part * writes + number)
        for number in range(searches):
            search(address, f"query {part} {number}", timeout_ms=timeout_ms)
        scraped.append((time.monotonic(), samples(address)))
    (start, before), (end, after) = scraped
    up = {'up{job="trivium",instance="a"}': (1.0, 0.0)}
    slopes = {name: (value, (value - before.get(name, 0.0)) / (end - start) * 60) for name, value in after.items()}
    # Other tests write to the disk, too, but not for hours.
    slopes |= {name: (value, 0.0) for name, (value, _) in slopes.items() if name.startswith("trivium_disk")}
    return Observed(slopes | up)


@pytest.fixture(scope="module")
def promtool(program: Callable[[str, str], str]) -> str:
    return program("promtool", "the Debian package prometheus contains it")


@pytest.fixture(scope="module")
def healthy(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Observed:
    with serve(environment(data_dir=tmp_path_factory.mktemp("data"))) as (_, address):
        return observe(address)


@pytest.fixture(scope="module")
def without_a_store_and_redis(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Observed:
    opensearch, redis = free_port(), free_port()
    env = environment(
        data_dir=tmp_path_factory.mktemp("data"),
        keyword=f"opensearch+http://127.0.0.1:{opensearch}",
        cache=f"redis://127.0.0.1:{redis}/0",
        write_log_max_bytes=1_048_576,
    )
    with serve(env) as (_, address):
        return observe(address, writes=4)


@pytest.fixture(scope="module")
def without_any_source(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Observed:
    env = environment(
        data_dir=tmp_path_factory.mktemp("data"),
        vector=f"qdrant+grpc://127.0.0.1:{free_port()}",
        graph=f"bolt://127.0.0.1:{free_port()}",
        keyword=f"opensearch+http://127.0.0.1:{free_port()}",
    )
    with serve(env, until="/livez") as (_, address):
        return observe(address)


@pytest.fixture(scope="module")
def with_a_silent_store(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Observed:
    """One that accepts connections and never answers; the time limits are long, and its circuit closes at once."""
    with create_server(("127.0.0.1", 0)) as listening:
        env = environment(
            data_dir=tmp_path_factory.mktemp("data"),
            graph=f"bolt://127.0.0.1:{listening.getsockname()[1]}",
            source_timeout_ms=400,
            circuit_reset_ms=1,
        )
        with serve(env) as (_, address):
            return observe(address, timeout_ms=1_000, searches=5)


@pytest.fixture(scope="module")
def stale(serve: Serve, python: str, tmp_path_factory: pytest.TempPathFactory) -> Observed:
    """A process that does not open what another one has written."""
    folder = tmp_path_factory.mktemp("data")
    documents = folder / "documents.ndjson"
    documents.write_text('{"id": "a", "text": "alpha"}\n')
    env = environment(data_dir=folder / "data", refresh_interval_ms=60_000)
    with serve(env) as (_, address):
        subprocess.run([python, "-m", "orchestrator", "index", documents], cwd=ROOT, env=env, check=True)
        return observe(address)


@pytest.fixture(scope="module")
def read_only(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Observed:
    """A process that searches what another one has written, on a disk that it cannot write to."""
    folder = tmp_path_factory.mktemp("data")
    env = environment(data_dir=folder)
    with serve(env) as (_, address):
        write(address, 1)
    with serve(env, run_by=on_a_read_only_disk(folder)) as (_, address):
        return observe(address)


FIRED_BY = {
    "without_a_store_and_redis": [
        "TriviumCompletenessBudgetBurnsFast",
        "TriviumCompletenessBudgetBurnsSlowly",
        "TriviumCompletenessBudgetBurnsSteadily",
        "TriviumCircuitOpen",
        "TriviumWriteLogLag",
        "TriviumWriteLogFull",
        "TriviumCacheFails",
    ],
    "without_any_source": [
        "TriviumErrorBudgetBurnsFast",
        "TriviumErrorBudgetBurnsSlowly",
        "TriviumErrorBudgetBurnsSteadily",
        "TriviumRejecting",
    ],
    "with_a_silent_store": [
        "TriviumLatencyBudgetBurnsFast",
        "TriviumLatencyBudgetBurnsSlowly",
        "TriviumLatencyBudgetBurnsSteadily",
    ],
    "stale": ["TriviumIndexStale"],
    "short_of_memory": ["TriviumMemoryHigh"],
    "short_of_disk": ["TriviumDiskFull"],
    "with_an_interrupted_backfill": ["TriviumBackfillStalled"],
    "read_only": ["TriviumNoWriter"],
    "ended": ["TriviumDown"],
}


@pytest.fixture(scope="module")
def short_of_memory(healthy: Observed) -> Observed:
    """The memory that the service uses, with a limit that is little more: no container can be had here."""
    ((used, _),) = [value for name, value in healthy.series.items() if name.startswith("trivium_memory_bytes{")]
    limit = next(name for name in healthy.series if name.startswith("trivium_memory_limit_bytes{"))
    return Observed(healthy.series | {limit: (used / 0.95, 0.0)})


@pytest.fixture(scope="module")
def short_of_disk(healthy: Observed) -> Observed:
    """What the disk has, with less free: no disk can be filled here."""
    ((size, _),) = [value for name, value in healthy.series.items() if name.startswith("trivium_disk_bytes{")]
    free = next(name for name in healthy.series if name.startswith("trivium_disk_free_bytes{"))
    return Observed(healthy.series | {free: (size / 20, 0.0)})


@pytest.fixture(scope="module")
def with_an_interrupted_backfill(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Observed:
    """A generation that a process has begun to build two hours ago."""
    folder = tmp_path_factory.mktemp("data")
    begun = Generation("trivium_default_all_2", 2, {}, time.time() - 7_200, state="building")
    Catalog(folder).update(lambda known: known.with_(begun))
    with serve(environment(data_dir=folder)) as (_, address):
        return observe(address)


@pytest.fixture(scope="module")
def ended(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Observed:
    """What Prometheus records of a process that cannot be scraped."""
    with serve(environment(data_dir=tmp_path_factory.mktemp("data"))) as (_, address):
        samples(address)
    with pytest.raises(OSError, match="refused"):
        samples(address)
    return Observed({'up{job="trivium",instance="a"}': (0.0, 0.0)})


def test_no_alert_but_the_missing_target_fires_for_an_unready_process_without_traffic(
    without_any_source: Observed, promtool: str, tmp_path: Path
) -> None:
    """Its probe gets 503, and nothing else is requested."""
    idle = {
        name: (value, slope if "/readyz" in name or "up{" in name else 0.0)
        for name, (value, slope) in without_any_source.series.items()
    }
    assert any(slope > 0 for _, slope in idle.values())
    assert Observed(idle).is_silent(promtool, tmp_path)
    assert Observed({}).fires("TriviumDown", promtool, tmp_path)


def test_no_alert_fires_while_all_is_well(healthy: Observed, promtool: str, tmp_path: Path) -> None:
    assert healthy.is_silent(promtool, tmp_path)


@pytest.mark.parametrize(
    ("scenario", "alert"), [(scenario, alert) for scenario, alerts in FIRED_BY.items() for alert in alerts]
)
def test_an_alert_fires_when_what_it_watches_is_broken(
    scenario: str, alert: str, request: pytest.FixtureRequest, promtool: str, tmp_path: Path
) -> None:
    observed: Observed = request.getfixturevalue(scenario)
    assert observed.fires(alert, promtool, tmp_path)


def test_every_alert_is_fired_by_a_test_and_has_an_entry_in_the_runbook() -> None:
    assert sorted(alert for alerts in FIRED_BY.values() for alert in alerts) == sorted(alert_names())
    entries = re.findall(r"^## (\w+)$", (ROOT / "docs" / "runbook.md").read_text(), re.MULTILINE)
    assert entries == alert_names()


def test_the_rules_are_valid(promtool: str, tmp_path: Path) -> None:
    subprocess.run([promtool, "check", "rules", ALERTS], check=True, capture_output=True)
    config = yaml.safe_load((ROOT / "compose" / "monitoring" / "prometheus.yaml").read_text())
    (tmp_path / "alerts.yaml").write_text(ALERTS.read_text())
    (tmp_path / "prometheus.yaml").write_text(yaml.safe_dump(config))
    subprocess.run([promtool, "check", "config", "--syntax-only", tmp_path / "prometheus.yaml"], check=True)


def exported() -> set[str]:
    """The names of all metrics, as queries use them."""
    metrics = Metrics()
    families = text_string_to_metric_families(metrics.exposition("")[0].decode())
    suffixes = {"counter": ["_total"], "gauge": [""], "histogram": ["_bucket", "_count", "_sum"]}
    return {family.name + suffix for family in families for suffix in suffixes[family.type]}


def test_rules_and_dashboard_name_only_metrics_that_are_exported_and_rules_that_exist() -> None:
    rules = [rule for group in GROUPS for rule in group["rules"]]
    recorded = {rule["record"] for rule in rules if "record" in rule}
    panels = json.loads(DASHBOARD.read_text())["panels"]
    queries = [target["expr"] for panel in panels for target in panel["targets"]]
    named = {name for text in (*queries, *(rule["expr"] for rule in rules)) for name in _NAME.findall(text)}
    assert len(named) > 15
    assert named <= exported()
    used = {name for text in queries for name in re.findall(r"trivium:\w+:\w+", text)}
    assert used
    assert used <= recorded
