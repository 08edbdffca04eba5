"""Marks of Kubernetes, Helm and other tools that are written or read."""

from __future__ import annotations

from typing import Final

from penstock.catalog.mark import OPERATOR, OTHERS, USER, Mark

APP_NAME: Final = Mark(
    "app.kubernetes.io/name",
    "label",
    "all created objects",
    OPERATOR,
    "The daemon; `slurmcluster` on objects of a SlurmCluster.",
)
APP_INSTANCE: Final = Mark(
    "app.kubernetes.io/instance",
    "label",
    "all created objects",
    OPERATOR,
    "Name of the owning object; on a JailedConfig, by the user: its SlurmCluster.",
)
APP_COMPONENT: Final = Mark(
    "app.kubernetes.io/component",
    "label",
    "all created objects",
    OPERATOR,
    "The component, such as worker or login.",
)
PART_OF: Final = Mark(
    "app.kubernetes.io/part-of",
    "label",
    "objects of a SlurmCluster; webhooks",
    OPERATOR,
    "`slurm-operator`; `penstock` on the Secret of the webhooks.",
)
MANAGED_BY: Final = Mark(
    "app.kubernetes.io/managed-by",
    "label",
    "objects of a SlurmCluster; objects of a chart",
    OPERATOR,
    "`slurm-operator`, or `Helm`, by which messages name a chart's values.",
)
APP_VERSION: Final = Mark(
    "app.kubernetes.io/version",
    "label",
    "objects of a chart",
    OTHERS,
    "Version of the chart's application. Pods get it, their template does not.",
)
CHART: Final = Mark(
    "helm.sh/chart",
    "label",
    "objects of a chart",
    OTHERS,
    "The chart. Pods get it, their template does not.",
)
HELM_POLICY: Final = Mark(
    "helm.sh/resource-policy",
    "annotation",
    "Secrets of keys, CRDs",
    OPERATOR,
    "`keep`: Helm does not delete the object with its release.",
)
REVISION: Final = Mark(
    "controller-revision-hash",
    "label",
    "worker pod of a SlurmCluster, pods of a StatefulSet",
    OPERATOR,
    "Hash of the pod's template; read on workers of earlier versions of Penstock, too.",
)
STATEFUL_SET_POD: Final = Mark(
    "statefulset.kubernetes.io/pod-name",
    "label",
    "pods of a StatefulSet",
    OTHERS,
    "Services of backups select one pod by it.",
)
DEFAULT_CONTAINER: Final = Mark(
    "kubectl.kubernetes.io/default-container",
    "annotation",
    "all created pods",
    OPERATOR,
    "The container that kubectl takes for logs and exec.",
)
LAST_APPLIED: Final = Mark(
    "kubectl.kubernetes.io/last-applied-configuration",
    "annotation",
    "any",
    OTHERS,
    "Of kubectl apply; it is not compared, and removed from Secrets of a Token.",
)
POD_DELETION_COST: Final = Mark(
    "controller.kubernetes.io/pod-deletion-cost",
    "annotation",
    "worker pod of a SlurmCluster",
    USER,
    "A whole number of 32 bits: the pod with the lower one is deleted first.",
)
INJECT_CA: Final = Mark(
    "cert-manager.io/inject-ca-from",
    "annotation",
    "webhook configurations",
    OTHERS,
    "cert-manager writes caBundle, and the operator does not.",
)
INJECT_CA_SECRET: Final = Mark(
    "cert-manager.io/inject-ca-from-secret",
    "annotation",
    "webhook configurations",
    OTHERS,
    "The same from a Secret.",
)
MARKS: Final = (
    APP_NAME,
    APP_INSTANCE,
    APP_COMPONENT,
    PART_OF,
    MANAGED_BY,
    APP_VERSION,
    CHART,
    HELM_POLICY,
    REVISION,
    STATEFUL_SET_POD,
    DEFAULT_CONTAINER,
    LAST_APPLIED,
    POD_DELETION_COST,
    INJECT_CA,
    INJECT_CA_SECRET,
)
