"""The manifests, built by kustomize and validated offline against the schemas of Kubernetes."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from docs import prometheus_rule
from orchestrator.cli.backfill_command import parsed_shard
from orchestrator.http.routes import LIVENESS, METRICS, READINESS
from orchestrator.settings import setting_fields
from orchestrator.telemetry.metrics import Metrics

ROOT = Path(__file__).parents[2]
OVERLAYS = ("dev", "prod")
FOLDERS = {"dev": "overlays/dev", "prod": "overlays/prod", "evaluation": "evaluation", "monitoring": "monitoring"}
_TEXT: dict[str, Any] = {"type": "string", "minLength": 1}
_SELECTOR = {
    "type": "object",
    "properties": {"matchLabels": {"type": "object", "additionalProperties": _TEXT}},
    "required": ["matchLabels"],
    "additionalProperties": False,
}


def _strict(required: dict[str, Any], **optional: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": required | optional,
        "required": list(required),
        "additionalProperties": False,
    }


# Written after the API reference of the Prometheus operator: no package has the schemas of its kinds.
_SECRET_KEY = _strict({"name": _TEXT, "key": _TEXT})
_ENDPOINT = _strict(
    {"port": _TEXT, "path": _TEXT},
    interval=_TEXT,
    scrapeTimeout=_TEXT,
    authorization=_strict({"credentials": _SECRET_KEY}),
)
_TEXTS = {"type": "object", "additionalProperties": _TEXT}
_RULE = _strict({"expr": _TEXT}, record=_TEXT, alert=_TEXT, annotations=_TEXTS, labels=_TEXTS, **{"for": _TEXT})
_GROUP = _strict({"name": _TEXT, "rules": {"type": "array", "items": _RULE, "minItems": 1}}, interval=_TEXT)
_OF_THE_OPERATOR = {
    "ServiceMonitor": _strict(
        {"selector": _SELECTOR, "endpoints": {"type": "array", "items": _ENDPOINT}}, jobLabel=_TEXT
    ),
    "PrometheusRule": _strict({"groups": {"type": "array", "items": _GROUP}}),
}


@cache
def objects(overlay: str) -> list[dict[str, Any]]:
    """All objects of an overlay."""
    kubectl = Path(sys.executable).with_name("kubectl")
    folder = ROOT / "k8s" / FOLDERS[overlay]
    done = subprocess.run([kubectl, "kustomize", folder], capture_output=True, text=True, check=True)
    assert not done.stderr, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def of_kind(overlay: str, *kinds: str) -> list[dict[str, Any]]:
    return [each for each in objects(overlay) if each["kind"] in kinds]


def pods(overlay: str) -> dict[str, dict[str, Any]]:
    """The template of every pod, by the name of its workload."""
    found = {each["metadata"]["name"]: each["spec"] for each in of_kind(overlay, "Deployment", "StatefulSet", "Job")}
    found |= {each["metadata"]["name"]: each["spec"]["jobTemplate"]["spec"] for each in of_kind(overlay, "CronJob")}
    return {name: spec["template"] for name, spec in found.items()}


def own_pods(overlay: str) -> dict[str, dict[str, Any]]:
    return {name: pod for name, pod in pods(overlay).items() if name.startswith("trivium-")}


@pytest.mark.parametrize("overlay", [*OVERLAYS, "evaluation"])
def test_every_object_is_valid_and_nothing_is_unknown(overlay: str) -> None:
    for each in objects(overlay):
        kubernetes_validate.validate(each, "1.37", strict=True)  # raises for a kind without a schema, too


def test_every_object_of_the_prometheus_operator_is_valid() -> None:
    for each in objects("monitoring"):
        assert each["apiVersion"] == "monitoring.coreos.com/v1"
        jsonschema.validate(each["spec"], _OF_THE_OPERATOR[each["kind"]])


def test_what_is_not_a_field_is_found() -> None:
    service = next(each for each in objects("dev") if each["kind"] == "Service")
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(service | {"spec": service["spec"] | {"portz": []}}, "1.37", strict=True)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"selector": {"matchLabels": {}}, "endpoint": []}, _OF_THE_OPERATOR["ServiceMonitor"])


@pytest.mark.parametrize("overlay", FOLDERS)
def test_no_pod_has_privileges_or_the_token_of_an_account(overlay: str) -> None:
    for name, pod in pods(overlay).items():
        spec = pod["spec"]
        assert spec["automountServiceAccountToken"] is False, name
        assert spec["securityContext"]["runAsNonRoot"] is True, name
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        for container in spec["containers"]:
            assert container["securityContext"]["allowPrivilegeEscalation"] is False, name
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}, name
            assert container["resources"]["limits"]["memory"], name
            assert container["resources"]["requests"]["cpu"], name
    for name, pod in own_pods(overlay).items():
        for container in pod["spec"]["containers"]:
            assert container["securityContext"]["readOnlyRootFilesystem"] is True, name


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_only_the_writer_and_maintenance_can_write_to_the_data(overlay: str) -> None:
    writing = set()
    for name, pod in own_pods(overlay).items():
        claimed = {each["name"] for each in pod["spec"]["volumes"] if "persistentVolumeClaim" in each}
        for container in pod["spec"]["containers"]:
            for mount in container["volumeMounts"]:
                if mount["name"] in claimed and not mount.get("readOnly"):
                    writing.add(name)
    assert writing == {"trivium-writer", "trivium-tidy", "trivium-backfill"}
    (writer,) = [each for each in of_kind(overlay, "StatefulSet") if each["metadata"]["name"] == "trivium-writer"]
    assert writer["spec"]["replicas"] == 1


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_documents_are_routed_to_the_writer_and_all_else_to_the_searching_pods(overlay: str) -> None:
    (ingress,) = of_kind(overlay, "Ingress")
    (rule,) = ingress["spec"]["rules"]
    routes = {each["path"]: each["backend"]["service"]["name"] for each in rule["http"]["paths"]}
    assert routes["/v1/documents"] == "trivium-writer"
    assert routes["/v1"] == routes["/mcp"] == "trivium-search"
    assert METRICS.path not in routes
    assert ingress["spec"]["tls"][0]["hosts"] == [rule["host"]]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_probes_and_the_metric_of_the_autoscaler_exist(overlay: str) -> None:
    for name in ("trivium-search", "trivium-writer"):
        (container,) = own_pods(overlay)[name]["spec"]["containers"]
        probed = {probe: container[probe]["httpGet"]["path"] for probe in container if probe.endswith("Probe")}
        assert probed == {
            "startupProbe": LIVENESS.path,
            "livenessProbe": LIVENESS.path,
            "readinessProbe": READINESS.path,
        }
    (scaler,) = of_kind(overlay, "HorizontalPodAutoscaler")
    scaled_by = [each["pods"]["metric"]["name"] for each in scaler["spec"]["metrics"] if each["type"] == "Pods"]
    metrics = Metrics()
    metrics.set_load(1, 1, 1)
    assert all(f"\n{name} 1.0" in metrics.exposition("")[0].decode() for name in scaled_by)
    assert scaled_by


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_setting_exists_and_every_name_that_is_referred_to_is_defined_or_a_documented_secret(
    overlay: str,
) -> None:
    known = {f"TRIVIUM_{name.upper()}" for name in setting_fields()} | {"TRIVIUM_SETTINGS_FILE"}
    (settings,) = [each for each in of_kind(overlay, "ConfigMap") if "trivium-settings" in each["metadata"]["name"]]
    named = set(settings["data"])
    for pod in own_pods(overlay).values():
        for container in pod["spec"]["containers"]:
            named |= {variable["name"] for variable in container.get("env", ())}
            for source in container.get("envFrom", ()):
                assert source["configMapRef"]["name"] == settings["metadata"]["name"]
    assert {name for name in named if not name.startswith(("OTEL_", "SSL_"))} <= known
    page = (ROOT / "docs" / "how-to" / "run-on-kubernetes.md").read_text()
    generated = {each["metadata"]["name"] for each in of_kind(overlay, "Secret")}
    charts = "".join(path.read_text() for path in (ROOT / "k8s" / "overlays" / "prod" / "values").glob("*.yaml"))
    secrets = {each["secretName"] for ingress in of_kind(overlay, "Ingress") for each in ingress["spec"]["tls"]}
    secrets |= set(re.findall(r"secretKeyRef:\s+name: (\S+)", charts)) if overlay == "prod" else set()
    for monitor in of_kind("monitoring", "ServiceMonitor"):
        secrets |= {each["authorization"]["credentials"]["name"] for each in monitor["spec"]["endpoints"]}
    for pod in own_pods(overlay).values():
        secrets |= {each["secret"]["secretName"] for each in pod["spec"]["volumes"] if "secret" in each}
    assert {name for name in secrets - generated if not re.search(rf"secret (generic|tls) {name}\b", page)} == set()
    for pod in own_pods(overlay).values():
        for volume in pod["spec"]["volumes"]:
            if "persistentVolumeClaim" in volume:
                claims = [each["metadata"]["name"] for each in of_kind(overlay, "PersistentVolumeClaim")]
                assert volume["persistentVolumeClaim"]["claimName"] in claims


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_each_pod_of_a_backfill_has_a_shard_and_the_job_starts_only_when_it_is_asked_for(overlay: str) -> None:
    (job,) = [each for each in of_kind(overlay, "CronJob") if each["metadata"]["name"] == "trivium-backfill"]
    assert job["spec"]["suspend"] is True
    spec = job["spec"]["jobTemplate"]["spec"]
    assert (spec["completionMode"], spec["parallelism"]) == ("Indexed", spec["completions"])
    (container,) = spec["template"]["spec"]["containers"]
    command, *options = container["args"]
    assert command == "backfill"
    assert options == ["--resume", "--shard", f"$(JOB_COMPLETION_INDEX)/{spec['completions']}"]
    for index in range(spec["completions"]):
        shard = parsed_shard(options[-1].replace("$(JOB_COMPLETION_INDEX)", str(index)))
        assert shard == (index, spec["completions"])


def test_each_pod_of_the_evaluation_has_one_set_and_the_job_may_be_changed() -> None:
    """Kubernetes changes ``completions`` of a job only together with ``parallelism``."""
    (job,) = of_kind("evaluation", "Job")
    assert job["spec"]["completionMode"] == "Indexed"
    assert job["spec"]["parallelism"] == job["spec"]["completions"]
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert "/sets/$(JOB_COMPLETION_INDEX)" in container["args"]
    assert container["image"].rpartition(":")[0].endswith("trivium-evaluation")


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_traffic_is_denied_by_default(overlay: str) -> None:
    (denial,) = [each for each in of_kind(overlay, "NetworkPolicy") if each["metadata"]["name"] == "deny-by-default"]
    assert denial["spec"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}


def test_a_pod_ends_after_its_running_requests() -> None:
    grace_ms = int(next(each for each in of_kind("prod", "ConfigMap"))["data"]["TRIVIUM_SHUTDOWN_GRACE_MS"])
    for name in ("trivium-search", "trivium-writer"):
        spec = own_pods("prod")[name]["spec"]
        command, seconds = spec["containers"][0]["lifecycle"]["preStop"]["exec"]["command"]
        assert command == "sleep"
        assert (spec["terminationGracePeriodSeconds"] - int(seconds)) * 1_000 > grace_ms + 2_000


def test_the_alerts_in_kubernetes_are_those_of_the_other_file() -> None:
    assert prometheus_rule.RULE.read_text() == prometheus_rule.rule()
    alerts = yaml.safe_load(prometheus_rule.ALERTS.read_text())
    (rule,) = of_kind("monitoring", "PrometheusRule")
    assert rule["spec"] == alerts


def test_the_values_of_the_charts_are_for_the_releases_that_compose_pins() -> None:
    values = ROOT / "k8s" / "overlays" / "prod" / "values"
    by_name = {path.stem: yaml.safe_load(path.read_text()) for path in values.glob("*.yaml")}
    tags = {name: each["image"]["tag"] for name, each in by_name.items() if "image" in each}
    services = yaml.safe_load((ROOT / "compose" / "compose.yaml").read_text())["services"]
    pinned = {name: services[name]["image"].partition("@")[0] for name in ("qdrant", "opensearch", "memgraph")}
    assert tags == {name: image.rpartition(":")[2] for name, image in pinned.items()}
    images = {container["image"] for pod in pods("dev").values() for container in pod["spec"]["containers"]}
    assert {services[name]["image"] for name in ("qdrant", "opensearch", "memgraph", "redis")} <= images
