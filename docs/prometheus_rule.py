"""Writes the alerts as an object of the Prometheus operator: ``python -m docs.prometheus_rule``.

``compose/monitoring/alerts.yaml`` is what to edit; a test compares both.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
ALERTS = ROOT / "compose" / "monitoring" / "alerts.yaml"
RULE = ROOT / "k8s" / "monitoring" / "prometheus-rule.yaml"

_HEAD = """\
# Written by `python -m docs.prometheus_rule` from compose/monitoring/alerts.yaml.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: trivium
spec:
"""


def rule() -> str:
    """The object in YAML."""
    lines = (line for line in ALERTS.read_text("utf-8").splitlines() if not line.startswith("#"))
    return _HEAD + "".join(f"  {line}\n" for line in lines)


if __name__ == "__main__":
    RULE.write_text(rule(), "utf-8")
