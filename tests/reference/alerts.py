"""Alert rules and dashboards of the chart `penstock-monitoring`."""

from __future__ import annotations

from collections.abc import Iterator

from dashboards.alerts import ALERTS, Alert
from dashboards.all import DASHBOARDS
from reference.page import Page, code, table


def page() -> Page:
    """One table for the alerts, and one for the dashboards."""
    body = "\n".join(
        [
            "For platform engineers: the rules of the chart `penstock-monitoring`. Each alert ends "
            "with the address of its runbook.\n",
            table(("Alert", "After", "Severity", "Meaning"), map(_row, ALERTS)),
            "\n## Which expression has an alert?\n",
            table(("Alert", "Expression"), ((one.name, code(one.expr)) for one in ALERTS)),
            "\n## Which panels do the dashboards have?\n",
            table(("Dashboard", "Panel", "Meaning"), _panels()),
        ]
    )
    return Page("alerts", "Alerts and dashboards", "alerts and dashboards", body)


def _row(one: Alert) -> tuple[str, ...]:
    # The page of a stalled object is that of its reason.
    name = f"[{code(one.name)}](../runbooks/{one.page}.md)" if one.page.isalnum() else one.name
    return (name, one.lasts, one.severity, one.meaning)


def _panels() -> Iterator[tuple[str, ...]]:
    for one in DASHBOARDS:
        for panel in one.panels():
            yield (one.title, panel.title, panel.about)
