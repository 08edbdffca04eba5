"""The StatefulSet and Deployment controllers, beside the simulated API server.

They do only what an operator can observe of the real ones: pods are numbered, a workload whose
template changes has its pods replaced unless its strategy is OnDelete, and a StatefulSet becomes
the controller of pods of its own that have none. OpenKruise's controller does the same.
"""

from __future__ import annotations

import asyncio

from penstock.api.kubernetes.meta import Json
from penstock.render.parts.digest import digest
from penstock.simulation.apiserver import ApiServer, Change
from penstock.simulation.kubelet.pod_manifests import TEMPLATE, owner_of, pod_of, revision_label

KRUISE = "apps.kruise.io/statefulsets"
KINDS = {
    "apps/statefulsets": "StatefulSet",
    "apps/deployments": "Deployment",
    KRUISE: "StatefulSet",
}
_PATHS = {KRUISE: "/apis/apps.kruise.io/v1beta1"}


class WorkloadControllers:
    """Makes the pods of workloads; `delay` are the seconds after which it looks at a change."""

    def __init__(self, server: ApiServer, *, delay: float = 0.05) -> None:
        self._server = server
        self._delay = delay
        self._loop = asyncio.get_running_loop()
        self._due: set[tuple[str, str, str]] = set()
        self.absent: set[str] = set()
        """Resources whose controller does not run, such as OpenKruise's."""
        server.store.listeners.append(self._changed)

    def _changed(self, change: Change) -> None:
        if change.resource in KINDS:
            self._schedule(change.resource, *change.key)
        elif change.resource == "/pods":
            meta = change.last.obj["metadata"]
            if not meta.get("ownerReferences"):
                stem = meta["name"].rpartition("-")[0]
                for resource in ("apps/statefulsets", KRUISE):
                    self._schedule(resource, change.key[0], stem)
            for owner in meta.get("ownerReferences", ()):
                for resource, kind in KINDS.items():
                    if owner["kind"] == kind:
                        self._schedule(resource, change.key[0], owner["name"])

    def _schedule(self, resource: str, namespace: str, name: str) -> None:
        key = (resource, namespace, name)
        if key not in self._due:
            self._due.add(key)
            self._loop.call_later(self._delay, self._reconcile, key)

    def _reconcile(self, key: tuple[str, str, str]) -> None:
        self._due.discard(key)
        resource, namespace, name = key
        workload = self._server.find(resource, namespace, name)
        if workload is None or workload["metadata"].get("deletionTimestamp"):
            return
        if resource in self.absent:
            return
        uid, path = workload["metadata"]["uid"], f"/api/v1/namespaces/{namespace}/pods"
        revision = digest(workload["spec"]["template"])
        wanted = [f"{name}-{number}" for number in range(workload["spec"].get("replicas", 1))]
        for pod_name in wanted if workload["kind"] == "StatefulSet" else ():
            self._adopt(workload, namespace, pod_name)
        waits = workload["spec"].get("updateStrategy", {}).get("type") == "OnDelete"
        pods = {
            pod["metadata"]["name"]: pod
            for pod in self._server.objects("/pods", namespace)
            if any(o["uid"] == uid for o in pod["metadata"].get("ownerReferences", ()))
        }
        for found, pod in pods.items():
            meta = pod["metadata"]
            old = meta.get("annotations", {}).get(TEMPLATE) != revision and not waits
            stale = found not in wanted or old
            ended = pod.get("status", {}).get("phase") in {"Failed", "Succeeded"}
            if (stale or ended) and not meta.get("deletionTimestamp"):
                self._server.ask("DELETE", f"{path}/{found}", {})
        for pod_name in wanted:
            if self._server.find("/pods", namespace, pod_name) is None:
                self._server.ask("POST", path, pod_of(workload, pod_name, revision))
        self._write_status(workload, resource, list(pods.values()))

    def _adopt(self, workload: Json, namespace: str, name: str) -> None:
        """Become the controller of a pod that has none. Source: Kubernetes, "StatefulSets"."""
        pod = self._server.find("/pods", namespace, name)
        labels: dict[str, str] = workload["spec"].get("selector", {}).get("matchLabels", {})
        if pod is None or not labels or pod["metadata"].get("ownerReferences"):
            return
        meta = pod["metadata"]
        if meta.get("deletionTimestamp") or not labels.items() <= meta.get("labels", {}).items():
            return
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        self._server.ask("PATCH", path, {"metadata": {"ownerReferences": [owner_of(workload)]}})

    def _write_status(self, workload: Json, resource: str, pods: list[Json]) -> None:
        ready = sum(_ready(pod) for pod in pods)
        meta = workload["metadata"]
        status = {
            "observedGeneration": meta["generation"],
            "replicas": len(pods),
            "readyReplicas": ready,
            "availableReplicas": ready,
            "updatedReplicas": len(pods),
        }
        if workload["kind"] == "StatefulSet":
            status["updateRevision"] = revision_label(
                workload, digest(workload["spec"]["template"])
            )
        plural = resource.partition("/")[2]
        group = _PATHS.get(resource, "/apis/apps/v1")
        path = f"{group}/namespaces/{meta['namespace']}/{plural}/{meta['name']}/status"
        self._server.ask("PATCH", path, {"status": status})


def _ready(pod: Json) -> bool:
    conditions: list[Json] = pod.get("status", {}).get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
