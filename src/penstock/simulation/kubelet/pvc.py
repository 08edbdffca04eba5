"""Simulated PersistentVolumeClaims: one that a pod uses is not gone before that pod.

Source: Kubernetes documentation, "Persistent Volumes", "Storage Object in Use Protection".
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from penstock.api.kubernetes.meta import Json
from penstock.simulation.apiserver import ApiServer, Change

CLAIMS, PODS = "/persistentvolumeclaims", "/pods"
PROTECTION = "kubernetes.io/pvc-protection"


def pvcs_of(pod: Json) -> list[str]:
    """Names of the PVCs that a pod mounts."""
    volumes: list[Json] = pod["spec"].get("volumes") or []
    found: list[Json] = [one.get("persistentVolumeClaim") or {} for one in volumes]
    return [one["claimName"] for one in found if one]


def mountable(server: ApiServer, pod: Json) -> bool:
    """Whether a scheduler may place a pod, by its PVCs: each exists and is not terminating."""
    space = pod["metadata"]["namespace"]
    found = [server.find(CLAIMS, space, name) for name in pvcs_of(pod)]
    return all(one is not None and "deletionTimestamp" not in one["metadata"] for one in found)


class Volumes:
    """The controller that protects PVCs. `pause` gives the seconds that it takes each time."""

    def __init__(self, server: ApiServer, pause: Callable[[], float] = lambda: 0.5) -> None:
        self._server = server
        self._pause = pause
        self._loop = asyncio.get_running_loop()
        server.store.listeners.append(self._changed)

    def _changed(self, change: Change) -> None:
        if change.resource == CLAIMS and change.new is not None:
            if change.old is None:
                self._loop.call_soon(self._protect, *change.key)
            elif "deletionTimestamp" in change.new.obj["metadata"]:
                self._loop.call_later(self._pause(), self._release, *change.key)
        if change.resource == PODS and change.new is None:
            space = change.key[0]
            for name in pvcs_of(change.last.obj):
                self._loop.call_later(self._pause(), self._release, space, name)

    def _protect(self, space: str, name: str) -> None:
        claim = self._server.find(CLAIMS, space, name)
        if claim is not None:
            finalizers = [*claim["metadata"].get("finalizers", ()), PROTECTION]
            self._patch(space, name, finalizers)

    def _release(self, space: str, name: str) -> None:
        claim = self._server.find(CLAIMS, space, name)
        if claim is None or "deletionTimestamp" not in claim["metadata"]:
            return
        pods = self._server.objects(PODS, space)
        if any(pod["spec"].get("nodeName") and name in pvcs_of(pod) for pod in pods):
            return
        kept = [one for one in claim["metadata"].get("finalizers", ()) if one != PROTECTION]
        self._patch(space, name, kept)

    def _patch(self, space: str, name: str, finalizers: list[str]) -> None:
        path = f"/api/v1/namespaces/{space}/persistentvolumeclaims/{name}"
        body = {"metadata": {"finalizers": finalizers}}
        self._server.ask("PATCH", path, body, user="pvc-protection")
