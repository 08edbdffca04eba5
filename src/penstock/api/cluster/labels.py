"""Labels and annotations of Kubernetes, kubectl and Helm that generated objects have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from penstock.catalog.marks import kubernetes

APP_NAME: Final = kubernetes.APP_NAME.key
APP_INSTANCE: Final = kubernetes.APP_INSTANCE.key
APP_COMPONENT: Final = kubernetes.APP_COMPONENT.key
COMPONENTS: Final = {
    "slurmctld": "controller",
    "slurmrestd": "restapi",
    "slurmdbd": "accounting",
    "slurmdbd-database": "database",
    "slurmd": "worker",
    "login": "login",
}
"""Label app.kubernetes.io/component of each app.kubernetes.io/name."""
STATEFUL_SET_POD: Final = kubernetes.STATEFUL_SET_POD.key
DEFAULT_CONTAINER: Final = kubernetes.DEFAULT_CONTAINER.key
MANAGED_BY: Final = kubernetes.MANAGED_BY.key
CHART_LABELS: Final = (kubernetes.CHART.key, kubernetes.APP_VERSION.key)
"""Labels that change with each release of a chart. A pod has them, its template does not."""
HELM_POLICY: Final = kubernetes.HELM_POLICY.key
HELM_KEEP: Final = "keep"
"""Of HELM_POLICY: Helm does not delete the object when a release has it no more."""
TRUE: Final = "true"


def is_from_chart(labels: Mapping[str, str]) -> bool:
    """Whether Helm created an object with these labels, for a release of a chart."""
    return labels.get(MANAGED_BY) == "Helm"


def selector_text(labels: Mapping[str, str]) -> str:
    """A selector of these labels, as kubectl's option `-l` takes it."""
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels))


def selector_labels(name: str, instance: str) -> dict[str, str]:
    """What a Service or workload selects by: the daemon's name and the owning object's."""
    return {APP_INSTANCE: instance, APP_NAME: name}


def labels(name: str, instance: str) -> dict[str, str]:
    """Labels of a generated object: the selector's and the component."""
    return {APP_COMPONENT: COMPONENTS[name], **selector_labels(name, instance)}
