"""Prometheus collectors of declared metrics."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from penstock.catalog.metric import Metric

_FAST = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Buckets of times that are mostly short, in seconds."""


def counter(metric: Metric, registry: CollectorRegistry | None = None) -> Counter:
    """The counter of a metric; without a registry it is registered later."""
    return Counter(metric.name, metric.meaning, metric.labels, registry=registry)


def gauge(metric: Metric, registry: CollectorRegistry) -> Gauge:
    """The gauge of a metric."""
    return Gauge(metric.name, metric.meaning, metric.labels, registry=registry)


def histogram(metric: Metric, registry: CollectorRegistry) -> Histogram:
    """The histogram of a metric."""
    return Histogram(metric.name, metric.meaning, metric.labels, buckets=_FAST, registry=registry)
