"""A real API server takes the manifests of a SlurmCluster, and shows no difference afterwards."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from typing import Any, cast

import pytest

from api.kube_support import Kubectl
from penstock.api.nebius.active_check import ActiveCheck
from penstock.kube.apply.difference import field_differences
from penstock.local.node import Node
from penstock.render.nebius.check import account, cron_job
from support import nebius
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
OPTIONAL = ("PodMonitor", "ServiceMonitor")
"""Kinds of other operators, which this API server does not have."""


def placed(value: Any, old: str, new: str) -> Any:
    return json.loads(json.dumps(value).replace(f'"namespace": "{old}"', f'"namespace": "{new}"'))


def objects(found: Rendered, namespace: str) -> list[dict[str, Any]]:
    return [
        placed(one, found.inputs.namespace, namespace)
        for one in (*found.objects(), *of_checks(found))
        if one["kind"] not in OPTIONAL
    ]


def of_checks(found: Rendered) -> list[dict[str, Any]]:
    """The objects of the checks of the chart."""
    out = account.objects(found.inputs.cluster)
    for name in nebius.names():
        if name.startswith("activechecks"):
            check = cast("ActiveCheck", nebius.made(name))
            out += cron_job.objects(found.inputs, check, suspend=True)
    return out


@pytest.fixture(params=SHAPES)
def space(
    request: pytest.FixtureRequest, api_node: Node
) -> Iterator[tuple[Kubectl, str, Rendered]]:
    """A namespace with what pods name: a ServiceAccount, and priority classes."""
    kubectl, found = Kubectl(api_node), of_shape(request.param, EMPTY, EMPTY_WORKERS)
    namespace = f"manifests-{request.param.replace('.', '-')}-{secrets.token_hex(2)}"
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


COLUMNS = (
    "custom-columns=NAME:.metadata.name,READY:.status.readyReplicas,"
    "CONTAINERS:.spec.containers[*].name,INIT_CONTAINERS:.spec.initContainers[*].name"
)
EXPECTED = {
    "accounting": ["<none>", "accounting", "munge"],
    "controller": ["<none>", "slurmctld", "munge,reconfigure"],
    "exporter": ["<none>", "exporter", "<none>"],
    "login": ["<none>", "sshd", "first,munge"],
    "nodeset": ["<none>", "slurmd", "munge"],
    "populate-jail": ["<none>", "populate-jail", "<none>"],
    "rest": ["<none>", "slurmrestd", "<none>"],
    "sconfigcontroller": ["<none>", "sconfigctrl", "init-dir"],
    "worker": ["<none>", "slurmd", "munge"],
}


def pods(found: Rendered, namespace: str) -> Iterator[dict[str, Any]]:
    """Pods as their controllers create them, each with the name of its component."""
    for one in objects(found, namespace):
        template = one if one["kind"] == "Pod" else one.get("spec", {}).get("template")
        if template is not None:
            labels: dict[str, str] = template["metadata"]["labels"]
            name = labels["app.kubernetes.io/component"]
            meta = {"name": name, "namespace": namespace, "labels": labels}
            spec = {
                key: each for key, each in template["spec"].items() if "erviceAccount" not in key
            }
            yield {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def test_custom_columns_show_the_containers_of_each_pod(space: Space):
    """S130: a pod has no field readyReplicas."""
    kubectl, namespace, found = space
    names: set[str] = set()
    for one in pods(found, namespace):
        if one["metadata"]["name"] in names:
            continue  # each NodeSet has such pods
        one["spec"].setdefault("volumes", []).extend(
            {"name": each["metadata"]["name"], "emptyDir": {}}
            for owner in objects(found, namespace)
            if owner["kind"] == "StatefulSet"
            for each in owner["spec"].get("volumeClaimTemplates", ())
        )
        names.add(one["metadata"]["name"])
        kubectl("apply", "-f", "-", manifest=one)
    head, *lines = kubectl("get", "pods", "-n", namespace, "-o", COLUMNS).splitlines()
    assert head.split() == ["NAME", "READY", "CONTAINERS", "INIT_CONTAINERS"]
    shown = {name: rest for name, *rest in map(str.split, lines)}
    if "nodeset" in names:
        # A custom container of the declaration.
        init = shown["controller"][2].removeprefix("pod-node-exporter,")
        assert init != shown["controller"][2]
        shown["controller"][2] = init
    assert shown == {name: EXPECTED[name] for name in names}
