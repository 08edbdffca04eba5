"""metrics-server in a cluster of built-in nodes: `kubectl top` works where it was added.

Not part of each node: it scrapes every kubelet each 15 seconds.
"""

import json
import os
from pathlib import Path
from typing import Any

from penstock.local import single
from penstock.local.cache import digest, keyed
from penstock.local.golang import compiled
from penstock.local.node import Node
from penstock.local.programs import METRICS_SERVER_PROGRAM
from penstock.local.progress import step
from penstock.local.versions import METRICS_SERVER

IMAGE = f"penstock.local/metrics-server:{METRICS_SERVER}"
NAME, NAMESPACE = "metrics-server", "kube-system"
PORT = 10250
_LABELS = {"k8s-app": NAME}
_RBAC = "rbac.authorization.k8s.io"
_AUTHORITY = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"
"""It signs the certificates of the kubelets as well."""

Json = dict[str, Any]


def add(node: Node) -> None:
    """Run it on the cluster's first node; nothing is done where it runs. Raises LocalError."""
    there = node.kubectl("get", "deployment", NAME, "-n", NAMESPACE, "--ignore-not-found")
    if there.strip():
        return
    with step("adding metrics-server"):
        node.import_image(_archive())
        items = objects(node.nodes()[0].name)
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
        node.kubectl("apply", "-f", "-", stdin=text)


def objects(node_name: str) -> list[Json]:
    """Its objects; the pod is on the Kubernetes node of that name, which has the API server.

    While nothing answers for an API of the cluster, namespaces cannot be deleted.
    """
    return [
        _object("v1", "ServiceAccount", NAME, NAMESPACE),
        *_rights(),
        {
            **_object("v1", "Service", NAME, NAMESPACE),
            "spec": {"selector": _LABELS, "ports": [{"port": 443, "targetPort": PORT}]},
        },
        {
            **_object("apiregistration.k8s.io/v1", "APIService", "v1beta1.metrics.k8s.io"),
            "spec": {
                "service": {"name": NAME, "namespace": NAMESPACE},
                "group": "metrics.k8s.io",
                "version": "v1beta1",
                # Each pod makes a certificate of its own.
                "insecureSkipTLSVerify": True,
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
            },
        },
        {
            **_object("apps/v1", "Deployment", NAME, NAMESPACE),
            "spec": {
                "selector": {"matchLabels": _LABELS},
                "template": {"metadata": {"labels": _LABELS}, "spec": _pod_spec(node_name)},
            },
        },
    ]


def _pod_spec(node_name: str) -> Json:
    container = {
        "name": NAME,
        "image": IMAGE,
        "imagePullPolicy": "Never",
        "args": [
            "--cert-dir=/tmp",
            f"--secure-port={PORT}",
            "--kubelet-preferred-address-types=InternalIP",
            f"--kubelet-certificate-authority={_AUTHORITY}",
            "--metric-resolution=15s",
        ],
        "resources": {"requests": {"cpu": "20m", "memory": "64Mi"}},
        "readinessProbe": {
            "httpGet": {"path": "/readyz", "port": PORT, "scheme": "HTTPS"},
            "periodSeconds": 2,
        },
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108 - its own
    }
    return {
        "serviceAccountName": NAME,
        "priorityClassName": "system-cluster-critical",
        "nodeSelector": {"kubernetes.io/hostname": node_name},
        "tolerations": [{"operator": "Exists"}],
        "containers": [container],
        "volumes": [{"name": "tmp", "emptyDir": {}}],
    }


def _rights() -> list[Json]:
    rules = [
        {"apiGroups": [""], "resources": ["nodes/metrics"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["pods", "nodes"], "verbs": ["get", "list", "watch"]},
    ]
    role = f"system:{NAME}"
    return [
        {**_object(f"{_RBAC}/v1", "ClusterRole", role), "rules": rules},
        _binding("ClusterRoleBinding", role, "ClusterRole", role),
        # It authenticates by the API server who asks for metrics.
        _binding(
            "ClusterRoleBinding", f"{NAME}:auth-delegator", "ClusterRole", "system:auth-delegator"
        ),
        _binding(
            "RoleBinding",
            f"{NAME}-auth-reader",
            "Role",
            "extension-apiserver-authentication-reader",
        ),
    ]


def _binding(kind: str, name: str, of: str, role: str) -> Json:
    namespace = NAMESPACE if kind == "RoleBinding" else ""
    return {
        **_object(f"{_RBAC}/v1", kind, name, namespace),
        "roleRef": {"apiGroup": _RBAC, "kind": of, "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}],
    }


def _object(version: str, kind: str, name: str, namespace: str = "") -> Json:
    metadata: Json = {"name": name, "labels": _LABELS}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


def _archive() -> Path:
    """The image's archive, from the cache."""
    program = compiled(METRICS_SERVER_PROGRAM)

    def build(folder: Path) -> None:
        data = single.archive(program, IMAGE, os.uname().machine)
        (folder / "image.tar").write_bytes(data)

    key = digest(METRICS_SERVER_PROGRAM.key, IMAGE)
    return keyed("image-metrics-server", key, build) / "image.tar"
