"""The exporter of a SlurmCluster: its pod, and its metrics as Prometheus reads them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from e2e_kit.api import Json, ready
from e2e_kit.site import Site, eventually
from e2e_kit.slurmcluster import SlurmClusterSite

INTERVAL_S = 1
COMPONENT = "app.kubernetes.io/component=exporter"
Series = list[tuple[Mapping[str, str], float]]


class Exporter:
    """The exporter of a cluster."""

    def __init__(self, site: Site, cluster: SlurmClusterSite) -> None:
        self._site = site
        self._cluster = cluster

    def declare(self, **fields: Any) -> None:
        """Merge into its part of the SlurmCluster."""
        self._cluster.patch({"slurmNodes": {"exporter": fields}})

    def enable(self, *arguments: str, **fields: Any) -> None:
        """Switch it on, with the operator's image, and wait for its pod."""
        container = {"exporterContainer": {"image": "", "args": list(arguments)}}
        interval = {"collectionInterval": f"{INTERVAL_S}s"}
        self.declare(enabled=True, **interval, **container, **fields)
        eventually("the exporter runs", self.running, 120)

    def objects(self) -> list[str]:
        """Kinds and names of its objects."""
        kinds = "deployments,services,configmaps,serviceaccounts,roles,rolebindings"
        found = self._cluster.kubectl("get", kinds, "-l", COMPONENT, "-o", "name")
        return sorted(found.split())

    def pods(self) -> list[Json]:
        """Its pods."""
        return json.loads(self._cluster.kubectl("get", "pods", "-l", COMPONENT, "-o", "json"))[
            "items"
        ]

    def running(self) -> str:
        """Name of its pod, once it is ready and not being deleted."""
        for one in self.pods():
            if ready(one) and "deletionTimestamp" not in one["metadata"]:
                return str(one["metadata"]["name"])
        return ""

    def text(self, port: int = 8080) -> str:
        """One scrape, by its Service or for other ports by its pod."""
        space = f"/api/v1/namespaces/{self._cluster.namespace}"
        where = f"services/{self._cluster.name}-exporter-svc:metrics"
        if port != 8080:
            where = f"pods/{self.running()}:{port}"
        return self._site.kubectl("get", "--raw", f"{space}/{where}/proxy/metrics")

    def series(self, port: int = 8080) -> dict[str, Series]:
        """Labels and values of one scrape, by name."""
        found: dict[str, Series] = {}
        for family in text_string_to_metric_families(self.text(port)):
            for one in family.samples:
                found.setdefault(one.name, []).append((one.labels, one.value))
        return found

    def by(self, name: str, label: str) -> dict[str, float]:
        """Values of a metric by one of its labels."""
        return {labels[label]: value for labels, value in self.series().get(name, [])}
