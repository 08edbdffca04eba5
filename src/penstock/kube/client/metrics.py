"""The engine's own Prometheus metrics. Times are seconds."""

from __future__ import annotations

import platform

from prometheus_client import CollectorRegistry, Counter, Histogram

from penstock import __version__
from penstock.catalog import metric
from penstock.kube.client.collectors import counter, gauge, histogram


class Metrics:
    """One set of metrics in one registry; nothing is global."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry if registry is not None else CollectorRegistry()
        r = self.registry
        self.reconciles = histogram(metric.RECONCILES, r)
        self.running = gauge(metric.RUNNING, r)
        self.queue_depth = gauge(metric.QUEUE_DEPTH, r)
        self.queue_wait = histogram(metric.QUEUE_WAIT, r)
        self.requests = counter(metric.API_REQUESTS, r)
        self.request_time = histogram(metric.API_REQUEST_TIME, r)
        self._sent: dict[tuple[str, str, int], Counter] = {}
        self._times: dict[tuple[str, str], Histogram] = {}
        self.watch_lag = gauge(metric.WATCH_SILENCE, r)
        self.watch_restarts = counter(metric.WATCH_RESTARTS, r)
        self.watch_events = counter(metric.WATCH_EVENTS, r)
        self.undecodable = counter(metric.UNDECODABLE, r)
        self.cached = gauge(metric.CACHED_OBJECTS, r)
        self.leader = gauge(metric.LEADER, r)
        self.events_dropped = counter(metric.EVENTS_DROPPED, r)
        self.admissions = counter(metric.ADMISSION_REVIEWS, r)
        self.certificate_expiry = gauge(metric.CERTIFICATE_EXPIRY, r)
        self.loop_lag = gauge(metric.LOOP_LAG, r)
        gauge(metric.BUILD_INFO, r).labels(__version__, platform.python_version()).set(1)

    def sent(self, verb: str, resource: str, code: int, seconds: float | None = None) -> None:
        """Count a request and, when given, the time it took; code 0 is no answer.

        The series are looked up here: the library's own look-up costs more than all else in it.
        """
        counter = self._sent.get((verb, resource, code))
        if counter is None:
            counter = self.requests.labels(verb, resource, str(code))
            self._sent[verb, resource, code] = counter
        counter.inc()
        if seconds is None:
            return
        histogram = self._times.get((verb, resource))
        if histogram is None:
            histogram = self.request_time.labels(verb, resource)
            self._times[verb, resource] = histogram
        histogram.observe(seconds)
