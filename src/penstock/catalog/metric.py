"""Metrics of the operator and of sconfigcontroller. Times are seconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

BOTH: Final = "operator, sconfigcontroller"
OPERATOR: Final = "operator"
WRITER: Final = "sconfigcontroller"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric as it is served. `unit` is that of its value; empty for a plain number."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    meaning: str
    labels: tuple[str, ...] = ()
    unit: str = ""
    served_by: str = BOTH


RECONCILES: Final = Metric(
    "penstock_reconcile_seconds",
    "histogram",
    "Time of one reconcile by its result: ok, requeue, error.",
    ("controller", "result"),
    "seconds",
)
RUNNING: Final = Metric(
    "penstock_reconciles_running", "gauge", "Reconciles under way.", ("controller",)
)
QUEUE_DEPTH: Final = Metric(
    "penstock_queue_depth", "gauge", "Keys waiting to be reconciled.", ("queue",)
)
QUEUE_WAIT: Final = Metric(
    "penstock_queue_wait_seconds",
    "histogram",
    "Time a key waited until its reconcile began.",
    ("queue",),
    "seconds",
)
API_REQUESTS: Final = Metric(
    "penstock_api_requests_total",
    "counter",
    "Requests to the API server; code 0 is no answer.",
    ("verb", "resource", "code"),
)
API_REQUEST_TIME: Final = Metric(
    "penstock_api_request_seconds",
    "histogram",
    "Time of one request to the API server.",
    ("verb", "resource"),
    "seconds",
)
WATCH_SILENCE: Final = Metric(
    "penstock_watch_silence_seconds",
    "gauge",
    "Time since the watch last showed a sign of life.",
    ("resource",),
    "seconds",
)
WATCH_RESTARTS: Final = Metric(
    "penstock_watch_restarts_total",
    "counter",
    "Watches begun again, by reason: ended, gone, stalled, error.",
    ("resource", "reason"),
)
WATCH_EVENTS: Final = Metric(
    "penstock_watch_events_total", "counter", "Events received.", ("resource",)
)
UNDECODABLE: Final = Metric(
    "penstock_undecodable_objects_total",
    "counter",
    "Objects that do not fit the type they are read as.",
    ("resource",),
)
CACHED_OBJECTS: Final = Metric(
    "penstock_cached_objects", "gauge", "Objects in the cache.", ("resource",)
)
LEADER: Final = Metric("penstock_leader", "gauge", "Leases with which this process leads.")
EVENTS_DROPPED: Final = Metric(
    "penstock_events_dropped_total", "counter", "Events not written because too many waited."
)
ADMISSION_REVIEWS: Final = Metric(
    "penstock_admission_reviews_total",
    "counter",
    "Admission reviews by path and outcome: answered, error.",
    ("path", "outcome"),
)
CERTIFICATE_EXPIRY: Final = Metric(
    "penstock_webhook_certificate_expiry_timestamp_seconds",
    "gauge",
    "When the webhooks' certificate ends, in Unix seconds; 0 while there is none.",
    unit="Unix seconds",
)
LOOP_LAG: Final = Metric(
    "penstock_loop_lag_seconds",
    "gauge",
    "Delay of the last timer of the event loop.",
    unit="seconds",
)
SLURM_REQUESTS: Final = Metric(
    "penstock_slurm_requests_total",
    "counter",
    "Requests sent to slurmrestd.",
    ("controller", "method", "path"),
    served_by=OPERATOR,
)
POD_DELETES: Final = Metric(
    "penstock_pod_deletes_total",
    "counter",
    "Worker pods deleted, by the ground on which no job could be lost.",
    ("ground",),
    served_by=OPERATOR,
)
BACKUP_LAST_GOOD: Final = Metric(
    "penstock_backup_last_good_timestamp_seconds",
    "gauge",
    "When the last good backup of a Backup ended, in Unix seconds; 0 before the first. Its age is "
    "time() less this.",
    ("namespace", "backup"),
    "Unix seconds",
    OPERATOR,
)
FILES_REPLACED: Final = Metric(
    "penstock_jail_files_replaced_total",
    "counter",
    "Files of the jail that were replaced, by the object with their content.",
    ("kind",),
    served_by=WRITER,
)
JAIL_FAILURES: Final = Metric(
    "penstock_jail_failures_total",
    "counter",
    "Objects whose files could not be written, by their kind.",
    ("kind",),
    served_by=WRITER,
)
JAIL_RECONFIGURES: Final = Metric(
    "penstock_jail_reconfigures_total",
    "counter",
    "Reconfigures of slurmctld after files changed, by their result.",
    ("result",),
    served_by=WRITER,
)
BUILD_INFO: Final = Metric(
    "penstock_build_info",
    "gauge",
    "Always 1; the labels are the versions of Penstock and of Python.",
    ("version", "python"),
)
METRICS: Final = (
    BUILD_INFO,
    RECONCILES,
    RUNNING,
    QUEUE_DEPTH,
    QUEUE_WAIT,
    API_REQUESTS,
    API_REQUEST_TIME,
    WATCH_SILENCE,
    WATCH_RESTARTS,
    WATCH_EVENTS,
    UNDECODABLE,
    CACHED_OBJECTS,
    LEADER,
    EVENTS_DROPPED,
    ADMISSION_REVIEWS,
    CERTIFICATE_EXPIRY,
    LOOP_LAG,
    SLURM_REQUESTS,
    POD_DELETES,
    BACKUP_LAST_GOOD,
    FILES_REPLACED,
    JAIL_FAILURES,
    JAIL_RECONFIGURES,
)
