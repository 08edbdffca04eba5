"""Metrics about the exporter itself, served on the second port."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge

from penstock.catalog import exporter_metric as of
from penstock.catalog.metric import Metric


class OwnMetrics:
    """Counters and gauges in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.collection_duration = self._gauge(of.COLLECTION_DURATION)
        self.attempts = self._counter(of.COLLECTION_ATTEMPTS)
        self.failures = self._counter(of.COLLECTION_FAILURES)
        self.duration = self._gauge(of.COLLECTOR_DURATION)
        self.errors = self._counter(of.COLLECTOR_ERRORS)
        self.inflight = self._gauge(of.COLLECTOR_INFLIGHT)
        self.skipped = self._counter(of.COLLECTOR_SKIPPED)
        self.requests = self._counter(of.REQUESTS)
        self.exported = self._gauge(of.EXPORTED)

    def _gauge(self, one: Metric) -> Gauge:
        return Gauge(one.name, one.meaning, one.labels, registry=self.registry)

    def _counter(self, one: Metric) -> Counter:
        return Counter(one.name, one.meaning, one.labels, registry=self.registry)
