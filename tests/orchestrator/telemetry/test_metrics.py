from __future__ import annotations

import os
import struct
import subprocess
import sys
from mmap import ACCESS_READ, MAP_ANONYMOUS, MAP_PRIVATE, mmap
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from orchestrator.telemetry import memory
from orchestrator.telemetry.metrics import Metrics
from orchestrator.telemetry.registry import MULTIPROCESS_VARIABLE

ROOT = Path(__file__).parents[3]
_WORKER = """
import sys
from orchestrator.telemetry.metrics import Metrics
metrics = Metrics()
metrics.record_request("POST", "/v1/search", 200, 0.02)
metrics.set_load(in_flight=3, running=1, waiting=0)
metrics.set_circuits({"vector": sys.argv[1]})
print("ready", flush=True)
sys.stdin.read()
"""


def values(text: str) -> dict[str, float]:
    """The value of each series, by its name with its labels in braces."""
    return {
        sample.name + "".join(f"{{{name}={value}}}" for name, value in sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def exposed(metrics: Metrics) -> dict[str, float]:
    return values(metrics.exposition("")[0].decode())


def test_requests_are_counted_by_path_and_status_and_their_time_by_upper_bounds() -> None:
    metrics = Metrics()
    for status, seconds in ((200, 0.12), (200, 0.2), (503, 0.001)):
        metrics.record_request("POST", "/v1/search", status, seconds)
    found = exposed(metrics)
    name = "trivium_request_duration_seconds"
    assert found[f"{name}_count{{method=POST}}{{path=/v1/search}}{{status=200}}"] == 2
    assert found[f"{name}_count{{method=POST}}{{path=/v1/search}}{{status=503}}"] == 1
    assert found[f"{name}_sum{{method=POST}}{{path=/v1/search}}{{status=200}}"] == pytest.approx(0.12 + 0.2)
    assert found[f"{name}_bucket{{le=0.15}}{{method=POST}}{{path=/v1/search}}{{status=200}}"] == 1


def test_a_computed_search_counts_its_stages_its_sources_and_what_did_not_work() -> None:
    metrics = Metrics()
    metrics.record_search("miss")
    metrics.record_search("l1")
    metrics.record_computed({"plan": 0.25, "vector": 2.0}, ["vector"], {"graph"}, {"graph", "rerank"})
    metrics.record_computed({"plan": 0.25}, ["vector", "graph"], (), ())
    metrics.record_reranked("used")
    found = exposed(metrics)
    assert found["trivium_searches_total{cache=miss}"] == found["trivium_searches_total{cache=l1}"] == 1
    assert found["trivium_search_stage_duration_seconds_sum{stage=vector}"] == pytest.approx(0.002)
    assert found["trivium_search_stage_duration_seconds_count{stage=plan}"] == 2
    assert found["trivium_source_searches_total{outcome=answered}{source=vector}"] == 2
    assert found["trivium_source_searches_total{outcome=failed}{source=graph}"] == 1
    assert found["trivium_degradations_total{source=rerank}"] == 1
    assert found["trivium_degraded_searches_total"] == 1
    assert found["trivium_reranked_searches_total{outcome=used}"] == 1


def test_the_totals_of_a_cache_become_counters() -> None:
    metrics = Metrics()
    metrics.set_cache("l1", {"hit": 3, "miss": 0}, age_s=1.5, entries=2, size=100)
    metrics.set_cache("l1", {"hit": 5, "miss": 0}, age_s=2.0, entries=1, size=50)
    found = exposed(metrics)
    assert found["trivium_cache_operations_total{cache=l1}{operation=hit}"] == 5
    assert found["trivium_cache_entries{cache=l1}"] == 1
    assert found["trivium_cache_bytes{cache=l1}"] == 50
    assert found["trivium_cache_hit_age_seconds_total{cache=l1}"] == 2.0


def test_gauges_have_the_newest_value() -> None:
    metrics = Metrics()
    metrics.set_load(in_flight=4, running=2, waiting=1)
    metrics.set_load(in_flight=3, running=1, waiting=0)
    metrics.set_circuits({"vector": "closed", "graph": "half-open", "keyword": "open"})
    metrics.set_replica("opensearch", 7, 12.5)
    metrics.set_writes(True, 300, 1_000)
    metrics.set_index(42, 1.5, "0.1.0", "build")
    metrics.set_memory(100, 400)
    found = exposed(metrics)
    load = [found[f"trivium_{name}"] for name in ("requests_in_flight", "searches_running", "searches_waiting")]
    assert load == [3, 1, 0]
    assert [found[f"trivium_circuit_state{{source={source}}}"] for source in ("vector", "graph", "keyword")] == [
        0,
        1,
        2,
    ]
    assert found["trivium_write_log_lag_writes{replica=opensearch}"] == 7
    assert found["trivium_write_log_lag_seconds{replica=opensearch}"] == 12.5
    log = [found[f"trivium_{name}"] for name in ("accepts_writes", "write_log_bytes", "write_log_max_bytes")]
    assert log == [1, 300, 1_000]
    assert (found["trivium_generation"], found["trivium_generation_lag_seconds"]) == (42, 1.5)
    assert found["trivium_build_info{build_id=build}{version=0.1.0}"] == 1
    assert (found["trivium_memory_bytes"], found["trivium_memory_limit_bytes"]) == (100, 400)


def test_open_metrics_have_the_trace_of_a_request_as_an_exemplar() -> None:
    metrics = Metrics()
    metrics.record_request("POST", "/v1/search", 200, 0.02, trace_id="ab" * 16)
    content, media_type = metrics.exposition("application/openmetrics-text; version=1.0.0")
    assert media_type.startswith("application/openmetrics-text")
    assert b'# {trace_id="' + b"ab" * 16 in content
    assert content.endswith(b"# EOF\n")
    assert metrics.exposition("*/*")[1].startswith("text/plain")


def test_processes_of_one_service_are_added_up_and_gauges_end_with_their_process(python: str, tmp_path: Path) -> None:
    env = os.environ | {MULTIPROCESS_VARIABLE: str(tmp_path)}

    def start(state: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [python, "-c", _WORKER, state], cwd=ROOT, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert process.stdout
        assert process.stdout.readline() == b"ready\n"
        return process

    def scraped() -> dict[str, float]:
        code = "from orchestrator.telemetry.metrics import Metrics; print(Metrics().exposition('')[0].decode())"
        return values(subprocess.check_output([python, "-c", code], cwd=ROOT, env=env, text=True))

    with start("open") as one, start("closed") as other:
        found = scraped()
        assert found["trivium_request_duration_seconds_count{method=POST}{path=/v1/search}{status=200}"] == 2
        assert found["trivium_requests_in_flight"] == 6
        assert found["trivium_circuit_state{source=vector}"] == 2
        one.communicate()
        found = scraped()
        assert found["trivium_request_duration_seconds_count{method=POST}{path=/v1/search}{status=200}"] == 2
        assert found["trivium_requests_in_flight"] == 3
        assert found["trivium_circuit_state{source=vector}"] == 0
        other.communicate()


@pytest.mark.skipif(sys.platform != "linux", reason="only there the kernel reports it in this form")
def test_memory_that_is_written_counts_and_mapped_files_do_not(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(32 << 20))
    before = memory.used_bytes()
    with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as mapped:
        assert mapped.find(b"x") == -1  # reads every page
        assert memory.used_bytes() - before < 8 << 20
    # Mapped and not allocated, because an allocation may be served from memory that was freed and still counts.
    with mmap(-1, 32 << 20, flags=MAP_PRIVATE | MAP_ANONYMOUS) as block:
        block.write(bytes(32 << 20))
        assert 30 << 20 < memory.used_bytes() - before < 70 << 20


@pytest.mark.parametrize(("text", "limit"), [("1073741824\n", 1 << 30), ("max\n", 0), ("9223372036854771712", 0)])
def test_the_memory_limit_is_that_of_the_control_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, limit: int
) -> None:
    path = tmp_path / "memory.max"
    monkeypatch.setattr(memory, "LIMIT_FILES", (tmp_path / "absent", path))
    assert memory.limit_bytes() == 0
    path.write_text(text)
    assert memory.limit_bytes() == limit


def test_a_file_that_another_process_is_creating_is_read_again() -> None:
    metrics, reads = Metrics(), []

    def read(registry: object) -> str:
        reads.append(registry)
        if len(reads) < 3:
            raise struct.error("the file is empty")
        return "whole"

    assert metrics._read_whole(read) == "whole"
    assert len(reads) == 3
