"""Metrics."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.catalog import exporter_metric
from penstock.catalog.metric import METRICS, Metric
from reference.page import Page, code, table


def page() -> Page:
    """One table for the operator, and those of the exporter."""
    body = "\n".join(
        [
            "For platform engineers. Operator and sconfigcontroller serve them at `/metrics`, port "
            "8080 by default. A histogram has the suffixes `_bucket`, `_sum` and `_count`.\n",
            _table(METRICS, served_by=True),
            "\n## Which metrics does the exporter of a SlurmCluster serve?",
            "Port 8080: nodes, jobs and slurmctld.\n",
            _table(exporter_metric.SLURM),
            "\nPort 8081: the exporter itself.\n",
            _table(exporter_metric.OWN),
            "\nWith `--vpenso-metrics`, port 8080: the names of prometheus-slurm-exporter.\n",
            _table(exporter_metric.VPENSO),
        ]
    )
    return Page("metrics", "Metrics", "metrics of operator, sconfigcontroller and exporter", body)


def _table(metrics: Iterable[Metric], *, served_by: bool = False) -> str:
    more = ("Served by",) if served_by else ()
    return table(
        ("Metric", "Type", "Labels", "Unit", *more, "Meaning"),
        (
            (
                code(one.name),
                one.kind,
                ", ".join(map(code, one.labels)),
                one.unit,
                *((one.served_by,) if served_by else ()),
                one.meaning,
            )
            for one in metrics
        ),
    )
