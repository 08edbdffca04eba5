"""The engine's own Prometheus metrics. Times are seconds."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_FAST = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)


class Metrics:
    """One set of metrics in one registry; nothing is global."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry if registry is not None else CollectorRegistry()
        r = self.registry
        self.reconciles = Histogram(
            "penstock_reconcile_seconds",
            "Time of one reconcile by its result: ok, requeue, error.",
            ("controller", "result"),
            buckets=_FAST,
            registry=r,
        )
        self.running = Gauge(
            "penstock_reconciles_running", "Reconciles under way.", ("controller",), registry=r
        )
        self.queue_depth = Gauge(
            "penstock_queue_depth", "Keys waiting to be reconciled.", ("queue",), registry=r
        )
        self.queue_wait = Histogram(
            "penstock_queue_wait_seconds",
            "Time a key waited until its reconcile began.",
            ("queue",),
            buckets=_FAST,
            registry=r,
        )
        self.requests = Counter(
            "penstock_api_requests",
            "Requests to the API server; code 0 is no answer.",
            ("verb", "resource", "code"),
            registry=r,
        )
        self.request_time = Histogram(
            "penstock_api_request_seconds",
            "Time of one request to the API server.",
            ("verb", "resource"),
            buckets=_FAST,
            registry=r,
        )
        self._sent: dict[tuple[str, str, int], Counter] = {}
        self._times: dict[tuple[str, str], Histogram] = {}
        self.watch_lag = Gauge(
            "penstock_watch_silence_seconds",
            "Time since the watch last showed a sign of life.",
            ("resource",),
            registry=r,
        )
        self.watch_restarts = Counter(
            "penstock_watch_restarts",
            "Watches begun again, by reason: ended, gone, stalled, error.",
            ("resource", "reason"),
            registry=r,
        )
        self.watch_events = Counter(
            "penstock_watch_events", "Events received.", ("resource",), registry=r
        )
        self.undecodable = Counter(
            "penstock_undecodable_objects",
            "Objects that do not fit the type they are read as.",
            ("resource",),
            registry=r,
        )
        self.cached = Gauge(
            "penstock_cached_objects", "Objects in the cache.", ("resource",), registry=r
        )
        self.leader = Gauge("penstock_leader", "Leases with which this process leads.", registry=r)
        self.events_dropped = Counter(
            "penstock_events_dropped", "Events not written because too many waited.", registry=r
        )
        self.admissions = Counter(
            "penstock_admission_reviews",
            "Admission reviews by path and outcome: answered, error.",
            ("path", "outcome"),
            registry=r,
        )
        self.certificate_expiry = Gauge(
            "penstock_webhook_certificate_expiry_timestamp_seconds",
            "When the webhooks' certificate ends, in Unix seconds; 0 while there is none.",
            registry=r,
        )
        self.loop_lag = Gauge(
            "penstock_loop_lag_seconds", "Delay of the last timer of the event loop.", registry=r
        )

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
