"""Metrics of the controllers, beside those of the engine."""

from __future__ import annotations

from penstock.catalog import metric
from penstock.kube.client.collectors import counter

SLURM_CALLS = counter(metric.SLURM_REQUESTS)
POD_DELETES = counter(metric.POD_DELETES)
ALL = (SLURM_CALLS, POD_DELETES)
