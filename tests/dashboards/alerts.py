"""Alert rules, each with a page of docs/runbooks.

An expression finds one series for each object that needs a person, with the labels of the page's
first command. It is a fault that lasts `lasts`, not a moment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

import yaml

from penstock.catalog import exporter_metric, metric
from penstock.catalog.runbook import BASE

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Alert:
    """One rule. `summary` may name labels, `runbook` is a page of docs/runbooks."""

    name: str
    expr: str
    lasts: str
    severity: Literal["critical", "warning", "info"]
    summary: str
    meaning: str
    runbook: str = ""

    @property
    def page(self) -> str:
        """Name of the runbook's page; empty where a label names it."""
        return self.runbook or self.name

    @property
    def address(self) -> str:
        """Address of the runbook."""
        return f"{BASE}{self.page}"

    def rule(self) -> Json:
        """The rule as Prometheus reads it."""
        return {
            "alert": self.name,
            "expr": self.expr,
            "for": self.lasts,
            "labels": {"severity": self.severity},
            "annotations": {
                "summary": self.summary,
                "description": self.meaning,
                "runbook_url": self.address,
            },
        }


def _first(exporter: str, slurmctld: str) -> str:
    """The exporter's series or, in a namespace without an exporter, slurmctld's own."""
    return f"({exporter}) or (({slurmctld}) unless on (namespace) slurm_node_info)"


_OUT: Final = 'is_unavailable="true",state_is_maintenance!="true"'
_DAY_S: Final = 86_400
_WORKS: Final = 'slurm_node_info{state_base="IDLE",is_unavailable=""}'
_LEADS: Final = (
    f"{metric.LEADER.name} and on (namespace, instance) "
    f'{metric.CACHED_OBJECTS.name}{{resource="nodesets"}}'
)
"""Of operators: sconfigcontroller serves the metric too, and keeps no NodeSets."""

_SHARE_OUT: Final = _first(
    f"count by (namespace) (slurm_node_info{{{_OUT}}}) / count by (namespace) (slurm_node_info)",
    "(max by (namespace) (slurm_nodes_down) + max by (namespace) (slurm_nodes_drain)) / "
    "max by (namespace) (slurm_nodes)",
)
_THREADS: Final = _first(
    f"max by (namespace) ({exporter_metric.SERVER_THREADS.name})",
    "max by (namespace) (slurm_server_thread_cnt)",
)

SLURM: Final = (
    Alert(
        "SlurmctldUnreachable",
        'max by (namespace, job) (up{endpoint="slurmctld"}) == 0',
        "5m",
        "critical",
        "slurmctld in namespace {{ $labels.namespace }} does not answer",
        "Prometheus gets no metrics from slurmctld. Running jobs go on; none starts.",
    ),
    Alert(
        "SlurmExporterFails",
        f"sum by (namespace) (increase({exporter_metric.COLLECTION_FAILURES.name}[10m])) > 0",
        "15m",
        "warning",
        "The exporter in namespace {{ $labels.namespace }} cannot read Slurm",
        "Collections of the exporter fail. Its metrics are those of the last one that worked.",
    ),
    Alert(
        "SlurmNodesUnavailable",
        f"({_SHARE_OUT}) > 0.1",
        "15m",
        "warning",
        "{{ $value | humanizePercentage }} of the nodes in namespace {{ $labels.namespace }} "
        "take no job",
        "More than a tenth of the Slurm nodes are down, silent or drained, without maintenance.",
    ),
    Alert(
        "SlurmNodeDrainedLong",
        'max by (namespace, node_name, reason) (slurm_node_info{state_is_drain="true",'
        'state_is_maintenance!="true"})',
        "1d",
        "info",
        "Node {{ $labels.node_name }} is drained for a day: {{ $labels.reason }}",
        "Nobody brought the node back or gave it up.",
    ),
    Alert(
        "SlurmNodeFailsRepeatedly",
        "sum by (namespace, node_name) "
        f"(increase({exporter_metric.NODE_UNAVAILABILITY.name}_count[1d])) > 2.5",
        "5m",
        "warning",
        "Node {{ $labels.node_name }} was unavailable three times in a day",
        "The node comes back each time, and fails again.",
    ),
    Alert(
        "SlurmJobsWaitBesideIdleNodes",
        "count by (namespace) "
        '(slurm_job_info{job_state="PENDING",job_state_reason=~"None|Priority|Resources"}) '
        'unless on (namespace) slurm_job_info{job_state=~"RUNNING|CONFIGURING"} '
        f"and on (namespace) {_WORKS}",
        "15m",
        "warning",
        "{{ $value }} jobs wait in namespace {{ $labels.namespace }} although nodes are idle",
        "Jobs that need nothing but nodes wait although nodes are idle, and no job runs.",
    ),
    Alert(
        "SlurmctldBusy",
        f"({_THREADS}) > 200",
        "10m",
        "warning",
        "slurmctld in namespace {{ $labels.namespace }} answers {{ $value }} calls at once",
        "At 256 calls slurmctld lets further ones wait, and commands end with a timeout.",
    ),
    Alert(
        "SlurmdbdQueueGrows",
        "max by (namespace) (slurm_slurmdbd_queue_size) > 500",
        "15m",
        "warning",
        "{{ $value }} records of namespace {{ $labels.namespace }} wait for slurmdbd",
        "slurmdbd does not take records of jobs. slurmctld keeps 10,000 at least, then drops them.",
    ),
)
PENSTOCK: Final = (
    Alert(
        "PenstockNoLeader",
        f"sum by (namespace) ({_LEADS}) == 0",
        "2m",
        "critical",
        "No operator in namespace {{ $labels.namespace }} leads",
        "No process holds the Lease, so no object is reconciled. Slurm and its jobs go on.",
    ),
    Alert(
        "PenstockReconcilesFail",
        "sum by (namespace, controller) "
        f'(rate({metric.RECONCILES.name}_count{{result="error"}}[10m])) > 0',
        "15m",
        "warning",
        "Reconciles of {{ $labels.controller }} fail",
        "An error that the operator has no condition for. Other objects go on.",
        "InternalError",
    ),
    Alert(
        "PenstockQueueWaits",
        f"max by (namespace, queue) ({metric.QUEUE_DEPTH.name}) > 0",
        "15m",
        "warning",
        "Objects of {{ $labels.queue }} have waited for their reconcile for 15 minutes",
        "Changes take effect late, or not at all.",
    ),
    Alert(
        "PenstockWatchSilent",
        f"max by (namespace, resource) ({metric.WATCH_SILENCE.name}) > 120",
        "2m",
        "warning",
        "The watch of {{ $labels.resource }} is silent for {{ $value | humanizeDuration }}",
        "The process gets no changes of these objects from the API server.",
    ),
    Alert(
        "PenstockWebhookCertificateEnds",
        f"(max by (namespace) ({metric.CERTIFICATE_EXPIRY.name}) > 0) - time() < {20 * _DAY_S}",
        "1h",
        "warning",
        "The webhooks' certificate ends in {{ $value | humanizeDuration }}",
        "The operator renews its own certificate 30 days ahead; this one was not renewed.",
    ),
    Alert(
        "PenstockEventLoopBlocked",
        f"max by (namespace, pod) ({metric.LOOP_LAG.name}) > 1",
        "5m",
        "warning",
        "Process {{ $labels.pod }} is late by {{ $value | humanizeDuration }}",
        "The process has too little CPU, or does something that lasts. It may lose its Lease.",
    ),
    Alert(
        "PenstockObjectsUndecodable",
        f"sum by (namespace, resource) (increase({metric.UNDECODABLE.name}[1h])) > 0",
        "5m",
        "warning",
        "Objects of {{ $labels.resource }} do not fit their schema",
        "The operator ignores them, as they have fields of another type than its kinds.",
    ),
    Alert(
        "PenstockJailFilesFail",
        f"sum by (namespace, kind) (increase({metric.JAIL_FAILURES.name}[15m])) > 0",
        "15m",
        "warning",
        "Files of {{ $labels.kind }} cannot be written into the jail",
        "Workers and logins keep the files that they have.",
    ),
)
STALLED: Final = Alert(
    "SlurmObjectStalled",
    "max by (namespace, customresource_kind, name, reason) "
    '(kube_customresource_condition{type="Stalled",status="True"}) == 1',
    "5m",
    "warning",
    "{{ $labels.customresource_kind }} {{ $labels.name }} needs a person: {{ $labels.reason }}",
    "The condition Stalled is True; its message has the cause and the next step.",
    "{{ $labels.reason }}",
)
"""Needs kube-state-metrics with metrics of these kinds, so it is in a group of its own."""

GROUPS: Final[dict[str, tuple[Alert, ...]]] = {
    "slurm": SLURM,
    "penstock": PENSTOCK,
    "penstock-objects": (STALLED,),
}
ALERTS: Final = tuple(alert for alerts in GROUPS.values() for alert in alerts)


def text() -> str:
    """The file of rules, as Prometheus reads it."""
    groups = [
        {"name": name, "rules": [alert.rule() for alert in alerts]}
        for name, alerts in GROUPS.items()
    ]
    return yaml.safe_dump({"groups": groups}, sort_keys=False, width=100)
