"""Controller: how Prometheus finds slurmctld's metrics."""

from __future__ import annotations

from penstock.api.cluster import labels as app_labels
from penstock.api.cluster import marks
from penstock.api.kubernetes.meta import Json
from penstock.api.slinky import names
from penstock.api.slinky.controller import Controller, MetricsEndpoint, ServiceMonitor
from penstock.render.parts.owner import owner
from penstock.render.parts.pod_template import object_metadata
from penstock.render.slinky.inputs import ClusterInputs

_PATHS = ("/metrics/jobs", "/metrics/nodes", "/metrics/partitions", "/metrics/scheduler")
"""What slurmctld serves below /metrics, which only lists them. Source: Slurm's Metrics guide."""


def requested(controller: Controller) -> ServiceMonitor | None:
    """The requested ServiceMonitor; None without a request, or if slurmctld has no metrics."""
    metrics = controller.spec.metrics
    wish = metrics.service_monitor
    shown = metrics.enabled and not controller.spec.external
    return wish if shown and wish is not None and wish.enabled else None


def objects(cluster: ClusterInputs) -> list[Json]:
    """The ServiceMonitor, if it is asked for.

    Of the Services that lead to slurmctld it selects one, or each slurmctld would be read twice.
    """
    controller, wish = cluster.controller, requested(cluster.controller)
    if wish is None:
        return []
    instance = controller.metadata.name
    labels = {**(wish.labels or {}), **app_labels.labels("slurmctld", instance)}
    metadata = object_metadata(
        names.controller_monitor(controller), cluster.namespace, labels, owner(controller)
    )
    if wish.annotations:
        metadata["annotations"] = dict(wish.annotations)
    paths = wish.endpoints or tuple(MetricsEndpoint(path) for path in _PATHS)
    found = app_labels.selector_labels("slurmctld", instance) | {marks.METRICS: app_labels.TRUE}
    return [
        {
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "ServiceMonitor",
            "metadata": metadata,
            "spec": {
                "endpoints": [_endpoint(one, wish) for one in paths],
                "namespaceSelector": {"matchNames": [cluster.namespace]},
                "selector": {"matchLabels": found},
            },
        }
    ]


def _endpoint(one: MetricsEndpoint, monitor: ServiceMonitor) -> Json:
    out: Json = {"path": one.path, "port": "slurmctld", "scheme": "http"}
    if interval := one.interval or monitor.interval:
        out["interval"] = interval
    if timeout := one.scrape_timeout or monitor.scrape_timeout:
        out["scrapeTimeout"] = timeout
    return out
