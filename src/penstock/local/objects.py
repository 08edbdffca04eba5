"""The Kubernetes objects that a node starts with, beside those Kubernetes makes itself."""

from typing import Any

from penstock.local.addresses import Addresses
from penstock.local.config import SIMULATED_KUBELET

Placed = tuple[str, dict[str, Any]]
"""The path of a collection, and an object for it."""


def node_objects(addresses: Addresses) -> list[Placed]:
    """Default StorageClass, and DNS: a Service whose only endpoint is the node."""
    labels = {"k8s-app": "kube-dns", "kubernetes.io/name": "CoreDNS"}
    ports = [
        {"name": "dns", "port": 53, "protocol": "UDP"},
        {"name": "dns-tcp", "port": 53, "protocol": "TCP"},
    ]
    storage_class = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {
            "name": "hostpath",
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": "kubernetes.io/host-path",
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "kube-dns", "namespace": "kube-system", "labels": labels},
        "spec": {"clusterIP": addresses.dns, "ports": ports},
    }
    endpoints = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": "kube-dns-node",
            "namespace": "kube-system",
            "labels": {"kubernetes.io/service-name": "kube-dns"},
        },
        "addressType": "IPv4",
        "endpoints": [{"addresses": [addresses.node], "conditions": {"ready": True}}],
        "ports": ports,
    }
    return [
        ("/apis/storage.k8s.io/v1/storageclasses", storage_class),
        ("/api/v1/namespaces/kube-system/services", service),
        ("/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices", endpoints),
        *_role("penstock:coredns", "coredns"),
    ]


def fleet_objects(count: int, address: str) -> list[Placed]:
    """`count` simulated nodes that KWOK keeps ready, with a kubelet at that address."""
    return [("/api/v1/nodes", fleet_node(index, address)) for index in range(count)]


def fleet_name(index: int) -> str:
    """Name of a simulated node."""
    return f"fleet-{index:04d}"


def fleet_node(index: int, address: str) -> dict[str, Any]:
    """One simulated node with room for 110 pods."""
    name = fleet_name(index)
    room = {"cpu": "64", "memory": "256Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            # Those of the kubelet: charts select machines by their system.
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "type": "kwok",
            },
            "annotations": {"kwok.x-k8s.io/node": "fake"},
        },
        "status": {
            "allocatable": room,
            "capacity": room,
            "addresses": [{"type": "InternalIP", "address": address}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": SIMULATED_KUBELET}},
        },
    }


def _role(name: str, user: str) -> list[Placed]:
    """What CoreDNS' kubernetes plugin reads."""
    read = ["list", "watch"]
    group = "rbac.authorization.k8s.io"
    role = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": [
            {"apiGroups": [""], "resources": ["services", "pods", "namespaces"], "verbs": read},
            {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": read},
        ],
    }
    binding = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
    }
    return [
        (f"/apis/{group}/v1/clusterroles", role),
        (f"/apis/{group}/v1/clusterrolebindings", binding),
    ]
