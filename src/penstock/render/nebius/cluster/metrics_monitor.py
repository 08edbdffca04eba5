"""The ServiceMonitor by which Prometheus finds slurmctld's metrics.

A Kubernetes cluster without Prometheus' operator has no such kind.
"""

from __future__ import annotations

from typing import Final

from penstock.api.kubernetes.meta import Json
from penstock.api.nebius import labels, names
from penstock.api.nebius.version_defaults import versioned_values
from penstock.render.nebius.inputs import ClusterInputs
from penstock.render.parts.owner import owner
from penstock.render.parts.pod_template import object_metadata

_PATHS: Final = ("jobs", "jobs-users-accts", "nodes", "partitions", "scheduler")
_OF_THE_POD: Final = "pod|instance|container"
"""Labels that would make other series of each new pod of slurmctld."""


def objects(cluster: ClusterInputs) -> list[Json]:
    """The ServiceMonitor, while slurmctld serves metrics."""
    metrics = versioned_values(cluster.spec).open_metrics
    if not metrics.enabled:
        return []
    monitor = metrics.service_monitor
    return [
        {
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "ServiceMonitor",
            "metadata": object_metadata(
                names.controller_monitor(cluster.name),
                cluster.namespace,
                labels.object_labels("controller", cluster.name),
                owner(cluster.cluster),
            ),
            "spec": {
                "endpoints": [
                    {
                        "path": f"/metrics/{path}",
                        "port": "slurmctld",
                        "scheme": "http",
                        "interval": monitor.interval,
                        "scrapeTimeout": monitor.scrape_timeout,
                        "metricRelabelings": [{"action": "labeldrop", "regex": _OF_THE_POD}],
                    }
                    for path in monitor.endpoints or _PATHS
                ],
                "namespaceSelector": {"matchNames": [cluster.namespace]},
                "selector": {"matchLabels": labels.selector_labels("controller", cluster.name)},
            },
        }
    ]
