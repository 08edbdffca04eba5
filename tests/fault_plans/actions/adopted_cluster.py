"""A cluster that slurm-operator left: what is there before the operator starts, and may not go.

Its objects have the names that plans give theirs, so users do the same to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fault_plans.plan import Family, Happening, Layout, Plan
from fault_plans.process import OPERATOR
from fault_plans.random_source import Dice
from fault_plans.specs import DATABASE, RECORDS, TOKEN, USER
from fault_plans.worker_sets import POLICY
from penstock.api.kubernetes.meta import Json
from penstock.simulation.apiserver import ApiServer, Change
from penstock.simulation.kubelet.pod_lifecycle import PODS
from penstock.simulation.slurm_operator import ACTIVE, MANAGER, Upstream, chart_made

RUNS_S = 60.0
"""After which all that was left runs."""
NOT_OF_IT = frozenset({"remake_nodeset", "rekey", "rekey_jwt"})
"""What does not happen to it: nothing holds its NodeSet yet, and its keys cannot be changed."""
NODESETS = "slinky.slurm.net/nodesets"
_GROUPS = {
    "StatefulSet": "/apis/apps/v1",
    "Deployment": "/apis/apps/v1",
    "ControllerRevision": "/apis/apps/v1",
    "PodDisruptionBudget": "/apis/policy/v1",
}
_KINDS = {
    "Controller": "slurm",
    "RestApi": "slurm",
    "Accounting": RECORDS,
    "LoginSet": "login",
    "NodeSet": "compute",
    "Token": USER,
}


def leave(server: ApiServer, space: str, replicas: int) -> None:
    """Make what slurm-operator leaves, as Helm and its program do."""
    declared = [_renamed(one, replicas) for one in chart_made(space)]
    for one in declared:
        _make(server, space, one, "helm")
    stored = [
        found
        for one in declared
        if (found := server.find(_resource(one), space, one["metadata"]["name"])) is not None
    ]
    upstream = Upstream(stored)
    (nodeset,) = upstream.of("NodeSet")
    workers = [upstream.worker(nodeset, ordinal) for ordinal in range(replicas)]
    for one in [*upstream.made(), *workers]:
        _make(server, space, one, MANAGER)
    status = {"status": upstream.status(nodeset)}
    path = f"{_path(space, nodeset)}/{nodeset['metadata']['name']}/status"
    server.ask("PATCH", path, status, user=MANAGER)


def activate(server: ApiServer, space: str) -> None:
    """Label slurmctld's pod as the one that works."""
    path = f"/api/v1/namespaces/{space}/pods/slurm-controller-0"
    server.ask("PATCH", path, {"metadata": {"labels": {ACTIVE: "true"}}}, user=MANAGER)


def _renamed(one: Json, replicas: int) -> Json:
    meta, spec, kind = one["metadata"], one.get("spec", {}), one["kind"]
    if kind == "Secret" and meta["name"] == "mariadb-password":
        return {**one, "metadata": {**meta, "name": DATABASE}}
    if kind not in _KINDS:
        return one
    more: dict[str, Any] = {}
    match kind:
        case "Controller":
            more = {"accountingRef": {"name": RECORDS}}
        case "Accounting":
            ref = {"name": DATABASE, "key": "password"}
            more = {"storageConfig": {**spec["storageConfig"], "passwordKeyRef": ref}}
        case "NodeSet":
            template: Json = spec["template"]
            pod = {k: v for k, v in template["spec"].items() if k != "hostname"}
            more = {
                "replicas": replicas,
                "partition": {"enabled": True},
                "template": {**template, "spec": pod},
            }
        case "Token":
            more = TOKEN
        case _:
            pass
    return {**one, "metadata": {**meta, "name": _KINDS[kind]}, "spec": {**spec, **more}}


def _path(space: str, one: Json) -> str:
    kind = one["kind"]
    group = _GROUPS.get(kind, "/api/v1")
    if kind in _KINDS:
        group = "/apis/slinky.slurm.net/v1beta1"
    return f"{group}/namespaces/{space}/{kind.lower()}s"


def _resource(one: Json) -> str:
    plural = f"{one['kind'].lower()}s"
    return f"slinky.slurm.net/{plural}" if one["kind"] in _KINDS else f"/{plural}"


def _make(server: ApiServer, space: str, one: Json, user: str) -> None:
    answer = server.ask("POST", _path(space, one), one, user=user)
    if answer.status >= 300:
        raise AssertionError((one["kind"], one["metadata"]["name"], answer.body))


class LeftPromises:
    """Notes in `broken` when a worker that slurm-operator left is deleted for nothing.

    What slurmctld, slurmdbd, slurmrestd and logins are made of is the promise of `restarts`.
    """

    def __init__(self, server: ApiServer, broken: list[str]) -> None:
        self._server = server
        self._broken = broken
        self._left = {one["metadata"]["uid"] for one in server.objects(PODS)}
        self._specs = {one["metadata"]["uid"]: _template(one) for one in server.objects(NODESETS)}
        self._replicas = {
            one["metadata"]["uid"]: one["spec"]["replicas"] for one in server.objects(NODESETS)
        }
        self._asked: set[str] = set()
        """Uids of NodeSets of which somebody wanted something else: scale-in takes any worker."""
        server.store.listeners.append(self._changed)
        server.deleting.append(self._delete)

    def unchanged(self, nodeset: Json) -> bool:
        """Whether the workers that were left are as they are declared."""
        return self._specs.get(nodeset["metadata"]["uid"]) == _template(nodeset)

    def _changed(self, change: Change) -> None:
        if change.resource != NODESETS:
            return
        meta, spec = change.last.obj["metadata"], change.last.obj["spec"]
        uid = meta["uid"]
        fewer = spec["replicas"] < self._replicas.get(uid, 0)
        if fewer or not self.unchanged(change.last.obj) or "deletionTimestamp" in meta:
            self._asked.add(uid)
        self._replicas[uid] = spec["replicas"]

    def _delete(self, user: str, obj: Json, resource: str) -> None:
        meta = obj["metadata"]
        if user != OPERATOR or resource != PODS or meta["uid"] not in self._left:
            return
        if "deletionTimestamp" in meta or obj["status"].get("phase") in {"Failed", "Succeeded"}:
            return
        owner = next((one["uid"] for one in meta.get("ownerReferences", ())), "")
        if owner not in self._asked:
            self._broken.append(f"pod {meta['name']}, which was left, was deleted for nothing")


def _template(nodeset: Json) -> Json:
    """What the pods of a NodeSet are made of, and more."""
    return {k: v for k, v in nodeset["spec"].items() if k not in _NOT_OF_PODS}


_NOT_OF_PODS = frozenset({"replicas", "partition", "updateStrategy", "pinToNode", POLICY})


def _draw(plan: Plan, dice: Dice, happenings: Mapping[str, Happening]) -> Plan:
    """The same steps happen to a cluster that slurm-operator left."""
    layout = Layout(left=True, login=True, accounted=True, tokens=True, leased=plan.layout.leased)
    steps = tuple(one for one in plan.steps if one.name not in NOT_OF_IT)
    return replace(plan, layout=layout, steps=steps)


FAMILY = Family("a cluster that slurm-operator left", dice=6, share=0.05, draw=_draw)
