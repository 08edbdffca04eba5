"""The promises about workers' claims: whose they are, and which go."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass

from fault_plans import worker_sets
from fault_plans.daemonset import is_daemon, workers
from fault_plans.process import OPERATOR
from penstock.api.cluster.labels import APP_INSTANCE
from penstock.api.kubernetes.meta import Json
from penstock.api.nebius.labels import NODE_SET
from penstock.simulation.apiserver import ApiServer, Change
from penstock.simulation.apiserver.server import COLLECTOR
from penstock.simulation.kubelet.pvc import CLAIMS, PODS, pvcs_of

RETAIN, DELETE = "Retain", "Delete"
REPLACED_S = 10.0
"""For so long a pod that went counts as one that is being replaced."""


@dataclass(frozen=True, slots=True)
class _Wish:
    """What is declared of a NodeSet since `at`, in the loop's seconds."""

    at: float
    uid: str
    going: bool
    replicas: int
    daemon: bool
    scaled: str
    deleted: str


class ClaimPromises:
    """Notes in `broken` when two workers have one claim, or one goes that should stay.

    `stale` are the seconds of the oldest view that anybody may act on. A claim that somebody else
    than the operator and the garbage collector deletes is nobody's promise. Users made those in
    `shared`, for several pods.
    """

    def __init__(
        self, server: ApiServer, broken: list[str], stale: float, shared: frozenset[str]
    ) -> None:
        self._shared = shared
        self.deleted: set[str] = set()
        """Uids of claims that users deleted."""
        self._server = server
        self._broken = broken
        self._stale = stale
        self._wishes: defaultdict[tuple[str, str], list[_Wish]] = defaultdict(list)
        self._went: dict[tuple[str, str], float] = {}
        """When pods went, by namespace and name: another one may be on its way."""
        self._unwanted: dict[str, str] = {}
        """Why nobody can have asked for it, by uid of a claim that is to go with its pod."""
        server.store.listeners.append(self._changed)
        server.deleting.append(self._delete)

    def _changed(self, change: Change) -> None:
        if change.resource in worker_sets.RESOURCES and worker_sets.is_set(change.last.obj):
            self._wishes[change.key].append(self._wish(change.last.obj, gone=change.new is None))
        elif change.resource == worker_sets.CLUSTERS:
            # Its maintenance decides how many workers its NodeSets have.
            for nodeset in worker_sets.every(self._server, change.key[0]):
                key = change.key[0], nodeset["metadata"]["name"]
                self._wishes[key].append(self._wish(nodeset, gone=False))
        if change.resource == PODS and change.new is None:
            self._went[change.key] = asyncio.get_running_loop().time()
        elif change.resource == PODS and change.old is None and change.new is not None:
            self._made(change.new.obj)
        if change.resource == CLAIMS and change.new is not None:
            self._owned(
                change.new.obj["metadata"], change.old.obj["metadata"] if change.old else {}
            )

    def _owned(self, meta: Json, before: Json) -> None:
        """A claim that a pod owns goes with it: whether it may is seen when it is given to it."""
        if not _pods(meta):
            self._unwanted.pop(meta["uid"], None)
        elif not _pods(before) and (why := self._kept(meta)) is not None:
            self._unwanted[meta["uid"]] = why

    def _made(self, pod: Json) -> None:
        mine, meta = set(pvcs_of(pod)) - self._shared, pod["metadata"]
        if not mine:
            return
        for other in self._server.objects(PODS, meta["namespace"]):
            name = other["metadata"]["name"]
            if name != meta["name"] and (shared := mine & set(pvcs_of(other))):
                self._broken.append(f"pods {meta['name']} and {name} share {sorted(shared)}")

    def _delete(self, user: str, claim: Json, resource: str) -> None:
        if resource != CLAIMS:
            return
        meta = claim["metadata"]
        if user != COLLECTOR:
            self.deleted.add(meta["uid"])
            if user == OPERATOR:
                self._broken.append(f"claim {meta['name']} was deleted by the operator")
            return
        for pod in self._server.objects(PODS, meta["namespace"]):
            # As Kubernetes' own protection has it: a pod without a machine uses nothing yet, and
            # the next look gives it another claim.
            stays = pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"]
            if stays and meta["name"] in pvcs_of(pod):
                told = f"claim {meta['name']} goes while pod {pod['metadata']['name']} has it"
                self._broken.append(told)
        if (why := self._unasked(meta)) is not None:
            self._broken.append(f"claim {meta['name']} goes {why}")

    def _unasked(self, meta: Json) -> str | None:
        """Why nobody can have asked for the end of a claim."""
        lately = self._lately(_nodeset(meta))
        if any(
            (one.going or one.uid != lately[-1].uid) and one.deleted == DELETE for one in lately
        ):
            return None
        scaled = [one for one in lately if one.scaled == DELETE and not one.going]
        if not scaled:
            return "though it shall be retained"
        return self._unwanted.get(meta["uid"])

    def _kept(self, meta: Json) -> str | None:
        """Why a claim's place is one that stays."""
        key = _nodeset(meta)
        lately, nodeset = self._lately(key), worker_sets.find(self._server, *key)
        scaled = [one for one in lately if one.scaled == DELETE and not one.going]
        if nodeset is None or not scaled or any(one.daemon for one in lately):
            return None
        now, space = asyncio.get_running_loop().time(), key[0]
        there = {pod["metadata"]["name"] for pod in workers(self._server, nodeset)}
        of_it = f"{key[1]}-"
        there |= {
            name
            for (where, name), at in self._went.items()
            if where == space and name.startswith(of_it) and now - at < REPLACED_S
        }
        fewest = min(one.replicas for one in scaled)
        return f"though all {len(there)} workers are wanted" if len(there) <= fewest else None

    def _wish(self, obj: Json, *, gone: bool) -> _Wish:
        return _Wish(
            asyncio.get_running_loop().time(),
            obj["metadata"]["uid"],
            gone or "deletionTimestamp" in obj["metadata"],
            worker_sets.replicas(self._server, obj),
            is_daemon(obj),
            *worker_sets.retention(obj),
        )

    def _lately(self, key: tuple[str, str]) -> list[_Wish]:
        history, since = self._wishes[key], asyncio.get_running_loop().time() - self._stale
        return [one for one in history if one.at <= since][-1:] + [
            one for one in history if one.at > since
        ]


def missing(server: ApiServer, pods: list[Json], deleted: set[str]) -> list[str]:
    """Claims that pods that stay do not have, or not for good.

    `deleted` are the uids of what users deleted.
    """
    found: list[str] = []
    for pod in pods:
        for name in pvcs_of(pod):
            claim = server.find(CLAIMS, pod["metadata"]["namespace"], name)
            if claim is None:
                found.append(f"there is no claim {name}")
            elif (
                "deletionTimestamp" in claim["metadata"] and claim["metadata"]["uid"] not in deleted
            ):
                found.append(f"claim {name} is on its way out")
            elif "deletionTimestamp" not in claim["metadata"] and _pods(claim["metadata"]):
                # One that a user deleted goes with its pod, whoever owns it.
                found.append(f"claim {name} would go with its pod")
    return found


def _nodeset(meta: Json) -> tuple[str, str]:
    """Namespace and name of a claim's NodeSet."""
    labels: dict[str, str] = meta.get("labels", {})
    return meta["namespace"], labels.get(NODE_SET) or labels.get(APP_INSTANCE, "")


def _pods(meta: Json) -> bool:
    """Whether a pod owns a claim."""
    return any(one["kind"] == "Pod" for one in meta.get("ownerReferences", ()))
