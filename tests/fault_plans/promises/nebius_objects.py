"""Promises about the objects of SlurmClusters that no job depends on, and users do."""

from __future__ import annotations

from fault_plans import nebius_specs as specs
from fault_plans.api_names import CLUSTER
from penstock.api.kubernetes.meta import Json
from penstock.api.nebius import names
from penstock.base import times
from penstock.simulation.apiserver import ApiServer, Change
from penstock.simulation.kubelet.jobs import JOBS, overwrites
from penstock.simulation.kubelet.pod_lifecycle import PODS, app_of

KEYS = (names.munge_secret(CLUSTER), names.jwt_secret(CLUSTER))
_SEEN_S = 120.0
"""By then every process has seen a pod."""
_OF_USERS = {"/persistentvolumeclaims": specs.PVCS, "/secrets": (specs.HOST_KEYS,)}


class ObjectPromises:
    """Notes in `broken` a key that became another one, and a user's object that changed or went.

    A key may go with its cluster. While that exists, its Secrets keep their data. Nor is a Job made
    that replaces files of a jail under pods that use it, unless one of them is new.
    """

    def __init__(self, server: ApiServer, broken: list[str]) -> None:
        self.forgives: set[str] = set()
        """Names of objects that users themselves change."""
        self._broken = broken
        self._server = server
        server.store.listeners.append(self._changed)

    def _changed(self, change: Change) -> None:
        name = change.key[1]
        if change.old is None:
            if change.resource == JOBS and change.new is not None and overwrites(change.new.obj):
                self._overwrites(change.key[0])
            return
        if name in _OF_USERS.get(change.resource, ()) and name not in self.forgives:
            if change.new is None:
                self._broken.append(f"{change.resource} {name} of a user is gone")
            elif _owners(change.new.obj) or _data(change.new.obj) != _data(change.old.obj):
                self._broken.append(f"{change.resource} {name} of a user was changed")
        elif (
            change.resource == "/secrets"
            and name in set(KEYS) - self.forgives
            and change.new is not None
            and _data(change.new.obj) != _data(change.old.obj)
        ):
            self._broken.append(f"the key in {name} was generated once more")

    def _overwrites(self, space: str) -> None:
        now = self._server.now()
        for pod in self._server.objects(PODS, space):
            meta, status = pod["metadata"], pod.get("status", {})
            is_user = app_of(pod) in {"slurmd", "login"} and status.get("phase") == "Running"
            age = now - (times.parse(meta["creationTimestamp"]) or 0.0)
            if is_user and age > _SEEN_S:
                self._broken.append(f"the jail is overwritten while pod {meta['name']} uses it")


def _owners(obj: Json) -> list[Json]:
    return obj["metadata"].get("ownerReferences") or []


def _data(obj: Json) -> object:
    return obj.get("data"), obj.get("spec")
