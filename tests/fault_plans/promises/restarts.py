"""The promise that no daemon is restarted for nothing.

StatefulSets and Deployments make their pods anew when their template changes, so each change of a
template must have a cause. What may restart whom: docs/admin/keys.md and docs/admin/accounting.md.
"""

from __future__ import annotations

import asyncio

from fault_plans.api_names import OF_NEBIUS
from fault_plans.specs import DATABASE, JWT_SECRET, SLURM_SECRET
from penstock.api.kubernetes.meta import Json
from penstock.simulation.apiserver import ApiServer, Change
from penstock.simulation.kubelet.pod_lifecycle import app_of
from penstock.simulation.kubelet.workload_controllers import KINDS

RING = f"{SLURM_SECRET}-ring"
JWT, KEY = "jwt.key", "slurm.key"
RECORDS, MADE_ANEW = "whether there is an Accounting", "whether there is such an object"
POWER = "whether there is an ephemeral NodeSet"
CAUSES: dict[str, tuple[str, ...]] = {
    "slurmctld": (JWT, POWER),
    "slurmdbd": (JWT, KEY, RECORDS),
    "slurmrestd": (RECORDS, MADE_ANEW),
    "login": (KEY, MADE_ANEW),
}
"""By app, what may give its pods another template; nothing but that changes in plans."""
CONTROLLER, NODESETS, ACCOUNTING = "a Controller", "a NodeSet", "an Accounting"
LOGIN_TO_DATABASE = "the password of the database"
SLURM_CLUSTER = "a SlurmCluster, or one of its NodeSets"
CAUSES["exporter"] = (SLURM_CLUSTER,)
OF_THE_LEFT = {
    "slurmctld": (CONTROLLER, NODESETS, RECORDS),
    "slurmdbd": (ACCOUNTING, LOGIN_TO_DATABASE),
}
"""What pods of another operator are made anew for besides: ours can be told of it, they cannot."""
_SECRETS = {JWT_SECRET: JWT, SLURM_SECRET: KEY, RING: KEY}


class RestartPromises:
    """Notes in `broken` when a workload gets another template, and nothing asks for it.

    `stale` are the seconds of the oldest view that anybody may act on: two processes of which one
    is late may write to and fro for so long.
    """

    def __init__(self, server: ApiServer, broken: list[str], stale: float) -> None:
        self._broken = broken
        self._stale = stale
        self.left = False
        """Whether pods of another operator are there."""
        self._known: dict[tuple[str, ...], object] = {}
        self._caused: dict[tuple[str, str], float] = {}
        """By namespace and cause, when it last changed."""
        self._written: dict[str, float] = {}
        """By uid of a workload, when it last got another template."""
        server.store.listeners.append(self._changed)

    def _changed(self, change: Change) -> None:
        space, name = change.key
        obj = change.new.obj if change.new is not None else None
        match change.resource:
            case "/secrets" if name in _SECRETS and obj is not None:
                self._note(space, _SECRETS[name], name, obj.get("data"))
            case "/secrets" if name == DATABASE and obj is not None:
                self._note(space, LOGIN_TO_DATABASE, name, obj["data"])
            case "slinky.slurm.net/accountings":
                self._note(space, RECORDS, name, obj is not None)
                self._note(space, ACCOUNTING, name, obj and obj["spec"])
            case "slinky.slurm.net/controllers" if obj is not None:
                self._note(space, RECORDS, name, obj["spec"].get("accountingRef"))
                self._note(space, CONTROLLER, name, obj["spec"])
            case "/configmaps" if name == OF_NEBIUS.startup and obj is not None:
                # slurmrestd of a SlurmCluster follows the files in force, which take a while.
                data: dict[str, str] = obj.get("data") or {}
                self._note(
                    space, RECORDS, name, any("AccountingStorageHost=" in t for t in data.values())
                )
            case "slinky.slurm.net/loginsets" | "slinky.slurm.net/restapis":
                self._note(space, MADE_ANEW, name, obj and obj["metadata"]["uid"])
            case "slinky.slurm.net/nodesets":
                spec: Json = obj["spec"] if obj is not None else {}
                wish = {k: v for k, v in spec.items() if k != "replicas"}
                self._note(space, NODESETS, name, wish)
            case "slurm.nebius.ai/slurmclusters" if obj is not None:
                asked = obj["metadata"].get("annotations")
                self._note(space, SLURM_CLUSTER, name, (obj["spec"], asked))
            case "slurm.nebius.ai/nodesets":
                self._note(space, SLURM_CLUSTER, f"nodesets/{name}", obj is not None)
                self._known.setdefault((space, POWER, name), False)
                ephemeral = obj is not None and bool(obj["spec"].get("ephemeralNodes"))
                self._note(space, POWER, name, ephemeral)
            case resource if resource in KINDS and obj is not None and change.old is not None:
                self._template(change.old.obj, obj)
            case _:
                pass

    def _note(self, space: str, cause: str, name: str, value: object) -> None:
        key = (space, cause, name)
        if self._known.setdefault(key, value) != value:
            self._known[key] = value
            self._caused[space, cause] = _now()

    def _template(self, old: Json, new: Json) -> None:
        if old["spec"]["template"] == new["spec"]["template"]:
            return
        meta = new["metadata"]
        since = self._written.get(meta["uid"], float("-inf")) - self._stale
        self._written[meta["uid"]] = _now()
        app = app_of(new)
        causes = [(meta["namespace"], cause) for cause in CAUSES.get(app, ())]
        if self.left:
            others = (SLURM_CLUSTER, *OF_THE_LEFT.get(app, ()))
            causes += [(meta["namespace"], cause) for cause in others]
        if not any(self._caused.get(one, float("-inf")) > since for one in causes):
            self._broken.append(f"the pods of {meta['name']} are made anew for nothing")


def _now() -> float:
    return asyncio.get_running_loop().time()
