"""Dashboards on a real cluster: where Prometheus reads, which queries find nothing, pictures."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from dashboards.all import DASHBOARDS
from dashboards.files import files
from dashboards.model import RATE
from dashboards.picture import Fetch, Series, draw
from e2e_kit.api import Json
from e2e_kit.exporter import Exporter
from e2e_kit.prometheus import WINDOW, Prometheus, Target
from e2e_kit.site import Site
from e2e_kit.slurmcluster import SlurmClusterSite
from penstock.local.install import SYSTEM

PICTURES = Path(__file__).parents[2] / "docs/pictures"
PATHS = ("jobs", "jobs-users-accts", "nodes", "partitions", "scheduler")
"""Of slurmctld, below /metrics."""


def targets(site: Site, cluster: SlurmClusterSite) -> list[Target]:
    """All that monitors of the operator and of a SlurmCluster name, with their labels."""
    space = {"namespace": cluster.namespace}
    operator = site.operator_pod()
    exporter = Exporter(site, cluster)
    service = _get(cluster, "service", f"{cluster.name}-exporter-svc")["spec"]["clusterIP"]
    slurmctld = _address(cluster, cluster.slurmctld)
    own = _address(cluster, exporter.running())
    found = [
        Target(
            "operator",
            f"{operator['status']['podIP']}:8080",
            {"namespace": SYSTEM, "pod": operator["metadata"]["name"]},
        ),
        Target("slurm-exporter", f"{service}:8080", space),
        Target("slurm-exporter-own", f"{own}:8081", space),
    ]
    # As the ServiceMonitor of slurmctld has them.
    labels = {**space, "endpoint": "slurmctld"}
    dropped = "pod|instance|container"
    at = f"{slurmctld}:6817"
    found += [Target("slurmctld", at, labels, f"/metrics/{path}", dropped) for path in PATHS]
    for pod in cluster.kubectl("get", "pods", "-o", "name").split():
        name = pod.removeprefix("pod/")
        if name.startswith("sconfigcontroller"):
            found.append(
                Target(
                    "sconfigcontroller", f"{_address(cluster, name)}:8080", {**space, "pod": name}
                )
            )
    return found


def _get(cluster: SlurmClusterSite, kind: str, name: str) -> Json:
    return json.loads(cluster.kubectl("get", kind, name, "-o", "json"))


def _address(cluster: SlurmClusterSite, pod: str) -> str:
    return str(_get(cluster, "pod", pod)["status"]["podIP"])


def _filled(expr: str, namespace: str) -> str:
    return expr.replace("$namespace", namespace).replace(RATE, WINDOW)


def _queries(namespace: str) -> Iterator[tuple[str, list[str]]]:
    """Each part of each query, by its panel, for the namespaces that a reader may choose."""
    for board in DASHBOARDS:
        chosen = (SYSTEM, namespace) if board.name == "operator" else (namespace,)
        for panel in board.panels():
            for query in panel.queries:
                for part in query.parts:
                    yield (
                        f"{board.name}: {panel.title}",
                        [_filled(part, one) for one in chosen],
                    )


def absent_queries(prometheus: Prometheus, namespace: str) -> set[str]:
    """Panels with a query that has found nothing since the start."""
    return {
        title
        for title, exprs in _queries(namespace)
        if not any(prometheus.series(expr) for expr in exprs)
    }


def write_pictures(prometheus: Prometheus, namespace: str) -> None:
    """Draw each dashboard with the answers of the Prometheus."""
    texts = files()
    for board in DASHBOARDS:
        document: Json = json.loads(texts[f"dashboards/{board.name}.json"])
        chosen = SYSTEM if board.name == "operator" else namespace
        text = draw(document, _fetch(prometheus, chosen))
        # Names of a test's namespace and pods would differ in each picture.
        (PICTURES / f"dashboard-{board.name}.svg").write_text(text, encoding="utf-8")


def _fetch(prometheus: Prometheus, namespace: str) -> Fetch:
    def fetch(expr: str) -> Sequence[Series]:
        return prometheus.series(_filled(expr, namespace))

    return fetch
