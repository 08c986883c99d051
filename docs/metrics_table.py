"""``python -m docs.metrics_table`` prints the table of ``docs/reference/metrics.md``: every metric that is exported."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from orchestrator.telemetry.metrics import Metrics


def table() -> str:
    """One row for each metric: its name as queries use it, its type and its meaning."""
    rows = ["| metric | type | meaning |", "|---|---|---|"]
    for family in text_string_to_metric_families(Metrics().exposition("")[0].decode()):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        rows.append(f"| `{name}` | {family.type} | {family.documentation} |")
    return "\n".join(rows)


if __name__ == "__main__":
    print(table())  # noqa: T201
