"""Metrics of sconfigcontroller, beside those of the engine."""

from __future__ import annotations

from penstock.catalog import metric
from penstock.kube.client.collectors import counter

FILES_REPLACED = counter(metric.FILES_REPLACED)
FAILURES = counter(metric.JAIL_FAILURES)
RECONFIGURES = counter(metric.JAIL_RECONFIGURES)
ALL = (FILES_REPLACED, FAILURES, RECONFIGURES)
