"""The operator, and the writer of jail files (sconfigcontroller)."""

from __future__ import annotations

from typing import Final

from dashboards.model import NAMESPACE, RATE, Dashboard, Query, Row, Unit, curves, number
from penstock.catalog import metric

_RECONCILES: Final = metric.RECONCILES.name


def _rate(name: str, by: str, *more: str) -> str:
    selector = ",".join((NAMESPACE, *more))
    return f"sum by ({by}) (rate({name}{{{selector}}}[{RATE}]))"


_BUCKETS: Final = _rate(f"{_RECONCILES}_bucket", "le, controller")

OPERATOR: Final = Dashboard(
    "operator",
    "Slurm / Operator",
    "Processes of Penstock in one namespace: the operator, or sconfigcontroller of a SlurmCluster.",
    metric.LOOP_LAG.name,
    (
        Row(
            "Now",
            (
                number(
                    "Leases held",
                    Query(f"sum({metric.LEADER.name}{{{NAMESPACE}}})"),
                    about="One for each API group and replica set. At 0 nothing is reconciled.",
                ),
                number(
                    "Waiting keys",
                    Query(f"sum({metric.QUEUE_DEPTH.name}{{{NAMESPACE}}})"),
                    about="Objects that wait for a reconcile.",
                ),
                number(
                    "Event loop delay",
                    Query(f"max({metric.LOOP_LAG.name}{{{NAMESPACE}}})"),
                    about="Above a second something blocks the process.",
                    unit=Unit.SECONDS,
                ),
                number(
                    "Watch silence",
                    Query(f"max({metric.WATCH_SILENCE.name}{{{NAMESPACE}}})"),
                    about="Above two minutes the process misses changes.",
                    unit=Unit.SECONDS,
                ),
                number(
                    "Cached objects",
                    Query(f"sum({metric.CACHED_OBJECTS.name}{{{NAMESPACE}}})"),
                    about="Objects of all kinds.",
                ),
                number(
                    "Certificate ends",
                    Query(f"max({metric.CERTIFICATE_EXPIRY.name}{{{NAMESPACE}}} > 0) - time()"),
                    about="Time left of the webhooks' certificate; without webhooks there is none.",
                    unit=Unit.SECONDS,
                ),
            ),
        ),
        Row(
            "Reconciles",
            (
                curves(
                    "Reconciles by kind",
                    Query(_rate(f"{_RECONCILES}_count", "controller"), "{{controller}}"),
                    about="Reconciles in a second.",
                    unit=Unit.PER_SECOND,
                ),
                curves(
                    "Failed reconciles",
                    Query(
                        _rate(f"{_RECONCILES}_count", "controller", 'result="error"'),
                        "{{controller}}",
                    ),
                    about="Reconciles that ended with an error; the queue tries again.",
                    unit=Unit.PER_SECOND,
                ),
                curves(
                    "Duration of 95 % of reconciles",
                    Query(f"histogram_quantile(0.95, {_BUCKETS})", "{{controller}}"),
                    about="Time of one reconcile.",
                    unit=Unit.SECONDS,
                ),
                curves(
                    "Waiting keys",
                    Query(
                        f"max by (queue) ({metric.QUEUE_DEPTH.name}{{{NAMESPACE}}})", "{{queue}}"
                    ),
                    about="Objects that wait for a reconcile.",
                ),
            ),
        ),
        Row(
            "Requests",
            (
                curves(
                    "Requests to the API server",
                    Query(_rate(metric.API_REQUESTS.name, "verb"), "{{verb}}"),
                    about="By verb.",
                    unit=Unit.PER_SECOND,
                ),
                curves(
                    "Requests to slurmrestd",
                    Query(_rate(metric.SLURM_REQUESTS.name, "method"), "{{method}}"),
                    about="Of the operator.",
                    unit=Unit.PER_SECOND,
                ),
                curves(
                    "Deleted worker pods",
                    Query(
                        f"sum by (ground) ({metric.POD_DELETES.name}{{{NAMESPACE}}})", "{{ground}}"
                    ),
                    about="By the ground on which no job could be lost, since the process began.",
                ),
                curves(
                    "Files of the jail that were replaced",
                    Query(
                        f"sum by (kind) ({metric.FILES_REPLACED.name}{{{NAMESPACE}}})", "{{kind}}"
                    ),
                    about="Of sconfigcontroller, since the process began.",
                ),
            ),
        ),
    ),
)
