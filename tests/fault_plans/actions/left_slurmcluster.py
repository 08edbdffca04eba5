"""A SlurmCluster that soperator left: its objects are there before the operator starts.

They are those of `support.soperator_left`, with the names that plans give theirs. OpenKruise's
controller is played by the simulation, or is absent.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

from fault_plans import nebius_specs as specs
from fault_plans.api_names import CLUSTER
from fault_plans.process import OPERATOR
from penstock.api.kubernetes.meta import Json
from penstock.api.nebius import names
from penstock.simulation.apiserver import ApiServer
from penstock.simulation.kubelet.pod_lifecycle import PODS
from penstock.simulation.kubelet.workload_controllers import KRUISE
from support.soperator_left import (
    MANAGER,
    NODE_LABEL,
    WORKERS,
    SoperatorObjects,
    manager,
    path_of,
    plural_of,
)

if TYPE_CHECKING:
    from fault_plans.nebius_world import NebiusWorld

VERSIONS = {specs.OLDER: "1.23", specs.CURRENT: "5.0"}
RUNS_S = 60.0
"""After which all that was left runs."""
_WITH_STATUS = ("Job", "SlurmCluster", "NodeSet", "NodeSetPowerState")
LEFT_NODESET = "worker-cpu"
"""The NodeSet of version 5.0 that plans have."""
_EPHEMERAL = "worker-eph"
_CLUSTER_WIDE = "ResourceDistribution"


def leave(world: NebiusWorld, space: str, replicas: int, *, plain: bool = False) -> None:
    """Make what soperator leaves, as its chart and its program do.

    With `plain` its StatefulSets are of `apps/v1`, and nothing else is different.
    """
    server = world.server
    for machine in server.objects("/nodes"):
        body: Json = {"metadata": {"labels": NODE_LABEL}}
        server.ask("PATCH", f"/api/v1/nodes/{machine['metadata']['name']}", body)
    left = SoperatorObjects(VERSIONS[world.layout.nebius], CLUSTER)
    jail = world.jails[space]
    jail.is_filled = True
    files = left.find("ConfigMap", names.slurm_configs(CLUSTER))["data"]
    for name, text in files.items():
        jail.put(name, text.encode())
    for one in left.objects:
        if one["kind"] == _CLUSTER_WIDE or _is_ephemeral(one):
            continue
        made = _sized(left.fresh(one), replicas)
        group = path_of(one)
        if plain and one["kind"] == "StatefulSet":
            group, made = "/apis/apps/v1", {**made, "apiVersion": "apps/v1"}
        path = f"{group}/namespaces/{space}/{plural_of(one)}"
        answer = server.ask("POST", path, made, user=manager(one))
        if answer.status >= 300:
            raise AssertionError((one["kind"], one["metadata"]["name"], answer.body))
        left.is_now(one, json.loads(answer.body))
        if one["kind"] in _WITH_STATUS and "status" in one:
            status: Json = {"status": one["status"]}
            server.ask("PATCH", f"{path}/{one['metadata']['name']}/status", status, user=MANAGER)


def _is_ephemeral(one: Json) -> bool:
    """Whether it is of the NodeSet whose nodes jobs power up: plans have none."""
    text = json.dumps([one["metadata"]["name"], one["metadata"].get("labels") or {}])
    return _EPHEMERAL in text


def _sized(one: Json, replicas: int) -> Json:
    """With so many workers as the plan has."""
    spec: Json = one.get("spec") or {}
    workers = [name for every in WORKERS.values() for name in every]
    if one["kind"] == "SlurmCluster" and "worker" in spec["slurmNodes"]:
        spec["slurmNodes"]["worker"]["size"] = replicas
    elif one["metadata"]["name"] in workers and one["kind"] in ("NodeSet", "StatefulSet"):
        spec["replicas"] = replicas
    return one


class LeftPromises:
    """Notes in `broken` when a pod that soperator left is deleted for nothing, or a key changes.

    `asked` are set once somebody wanted other pods: by namespace.
    """

    def __init__(self, server: ApiServer, broken: list[str]) -> None:
        self._server = server
        self._broken = broken
        self._left = {one["metadata"]["uid"] for one in server.objects(PODS)}
        self._specs = {one["metadata"]["uid"]: one["spec"] for one in _declared(server)}
        self._keys = {
            (one["metadata"]["namespace"], one["metadata"]["name"]): _decoded(one)
            for one in server.objects("/secrets")
        }
        server.deleting.append(self._delete)

    def _delete(self, user: str, obj: Json, resource: str) -> None:
        meta = obj["metadata"]
        if resource != PODS or meta["uid"] not in self._left:
            return
        if "deletionTimestamp" in meta or obj["status"].get("phase") in {"Failed", "Succeeded"}:
            return
        # Users, kubelets and drains of Kubernetes nodes are nobody's fault.
        ours = user in (OPERATOR, "system", "") or "garbage" in user
        if ours and not self.is_changed(meta["namespace"]):
            self._broken.append(f"pod {meta['name']}, which was left, was deleted for nothing")

    def is_changed(self, space: str) -> bool:
        """Whether users declare something else by now."""
        found = [one for one in _declared(self._server) if one["metadata"]["namespace"] == space]
        return any(
            self._specs.get(one["metadata"]["uid"]) != one["spec"]
            or "deletionTimestamp" in one["metadata"]
            for one in found
        ) or len(found) < sum(1 for _ in self._specs)

    def missing(self) -> list[str]:
        """What is not taken over."""
        left = [f"StatefulSet {name} of OpenKruise is left" for name in kruise_left(self._server)]
        keys = [f"Secret {name} has other data" for name in self.changed_keys()]
        return [*left, *keys]

    def changed_keys(self) -> list[str]:
        """Names of Secrets whose data is another one."""
        return [
            name
            for (space, name), data in self._keys.items()
            if (found := self._server.find("/secrets", space, name)) is not None
            and _decoded(found) != data
        ]


def _declared(server: ApiServer) -> list[Json]:
    return [
        one
        for resource in ("slurm.nebius.ai/slurmclusters", "slurm.nebius.ai/nodesets")
        for one in server.objects(resource)
    ]


def _decoded(secret: Json) -> dict[str, bytes]:
    data: dict[str, str] = secret.get("data") or {}
    return {key: base64.b64decode(value) for key, value in data.items()}


def kruise_left(server: ApiServer) -> list[str]:
    """Names of StatefulSets of OpenKruise that there are."""
    return [one["metadata"]["name"] for one in server.objects(KRUISE)]
