"""A real API server takes the manifests of a SlurmCluster, and shows no difference afterwards."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

import pytest

from api.kube_support import Kubectl
from penstock.kube.apply.difference import field_differences
from penstock.local.node import Node
from support.nebius_clusters import SHAPES, Rendered, of_shape

pytestmark = pytest.mark.api

MANAGER = "penstock"
LOGIN = "spec.slurmNodes.login"
EMPTY: dict[str, Any] = {
    f"{LOGIN}.sshdServiceNodePort": 0,
    f"{LOGIN}.sshd.customEnv": [{"name": "X", "value": ""}],
    f"{LOGIN}.sshd.resources": {"cpu": "1500m", "memory": 1073741824},
    f"{LOGIN}.customInitContainers": [
        {"name": "first", "image": "i", "args": [], "resources": {}, "env": [{"name": "Y"}]}
    ],
    f"{LOGIN}.volumes.jailSubMounts": [
        {
            "name": "own",
            "mountPath": "/own",
            "volumeClaimTemplateSpec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1024Mi"}},
            },
        }
    ],
    "spec.k8sNodeFilters.0.tolerations": [{"key": "a", "operator": "Exists", "value": ""}],
    "spec.volumeSources.0": {"name": "slurm-scripts", "hostPath": {"path": "/opt", "type": ""}},
    "spec.sConfigController.serviceAccountName": "",
}
"""Empty values, and amounts in other forms than the API server's."""
EMPTY_WORKERS: dict[str, Any] = {
    "spec.slurmd.customEnv": [{"name": "X", "value": ""}],
    "spec.affinity": {},
}
Space = tuple[Kubectl, str, Rendered]
OPTIONAL = ("ServiceMonitor",)
"""Kinds of other operators, which this API server does not have."""


def placed(value: Any, old: str, new: str) -> Any:
    return json.loads(json.dumps(value).replace(f'"namespace": "{old}"', f'"namespace": "{new}"'))


def objects(found: Rendered, namespace: str) -> list[dict[str, Any]]:
    return [
        placed(one, found.inputs.namespace, namespace)
        for one in found.objects()
        if one["kind"] not in OPTIONAL
    ]


@pytest.fixture(params=SHAPES)
def space(
    request: pytest.FixtureRequest, api_node: Node
) -> Iterator[tuple[Kubectl, str, Rendered]]:
    """A namespace with what pods name: a ServiceAccount, and priority classes."""
    kubectl, found = Kubectl(api_node), of_shape(request.param, EMPTY, EMPTY_WORKERS)
    namespace = f"manifests-{request.param.replace('.', '-')}"
    account = {"metadata": {"name": "default", "namespace": namespace}}
    before: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        {"apiVersion": "v1", "kind": "ServiceAccount", **account},
        *(
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": 1,
            }
            for name in sorted(priorities(found.objects()))
        ),
    ]
    for one in before:
        kubectl("apply", "-f", "-", manifest=one)
    yield kubectl, namespace, found
    kubectl("delete", "namespace", namespace, "--wait=false")


def priorities(value: Any) -> set[str]:
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        own = {name for key, name in fields.items() if key == "priorityClassName"}
        return own.union(*map(priorities, fields.values()))
    if isinstance(value, list):
        return set[str]().union(*map(priorities, cast("list[Any]", value)))
    return set()


def test_an_api_server_takes_each_object_and_then_it_does_not_differ(
    space: Space,
):
    """S085: objects of both shapes, with those of their NodeSets."""
    kubectl, namespace, found = space
    different: dict[str, tuple[str, ...]] = {}
    for one in objects(found, namespace):
        text = kubectl(
            "apply",
            "--server-side",
            f"--field-manager={MANAGER}",
            "--validate=strict",
            "--show-managed-fields",
            "-o",
            "json",
            "-f",
            "-",
            manifest=one,
        )
        live = json.loads(text)
        if one["kind"] == "Pod":
            # The API server adds tolerations to each pod, which is created and never applied.
            live["spec"]["tolerations"] = one["spec"].get("tolerations")
        if paths := field_differences(one, live, MANAGER):
            different[f"{one['kind']} {one['metadata']['name']}"] = paths
    assert different == {}
