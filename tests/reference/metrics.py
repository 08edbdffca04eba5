"""Metrics."""

from __future__ import annotations

from penstock.catalog.metric import METRICS
from reference.page import Page, code, table


def page() -> Page:
    """One table."""
    body = "\n".join(
        [
            "For platform engineers. Operator and sconfigcontroller serve them at `/metrics`, port "
            "8080 by default. A histogram has the suffixes `_bucket`, `_sum` and `_count`.\n",
            table(
                ("Metric", "Type", "Labels", "Unit", "Served by", "Meaning"),
                (
                    (
                        code(one.name),
                        one.kind,
                        ", ".join(map(code, one.labels)),
                        one.unit,
                        one.served_by,
                        one.meaning,
                    )
                    for one in METRICS
                ),
            ),
        ]
    )
    return Page("metrics", "Metrics", "metrics of operator and sconfigcontroller", body)
