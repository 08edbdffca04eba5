"""Recreates pods whose daemon exited because of its configuration, once that has changed.

The kubelet would wait up to five minutes before it restarts such a container, and a minute or more
before it refreshes files.
"""

from __future__ import annotations

import contextlib

from penstock.api.cluster import marks
from penstock.api.kubernetes.kinds import PODS, Pod
from penstock.api.kubernetes.meta import KubeObject
from penstock.catalog.event import Event
from penstock.controllers.runtime.report import Events
from penstock.decide.pod.workload import crashed
from penstock.kube import Client, NotFoundError


class PodRestarter:
    """Marks pods with the hash of the configuration that they have, and deletes crashed ones."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def annotate(self, pod: Pod, wanted: str, key: str = marks.CONFIG_HASH) -> bool:
        """Write the hash to the pod; returns whether it had another one or none. Raises KubeError.

        The kubelet refreshes the pod's files when an annotation changes.
        """
        meta = pod.metadata
        if meta.deleting or meta.annotations.get(key) == wanted:
            return False
        body = {"metadata": {"uid": meta.uid, "annotations": {key: wanted}}}
        try:
            await self._client.patch(PODS, meta.namespace, meta.name, body)
        except NotFoundError:
            return False
        return True

    async def refresh(self, pod: Pod, mark: str) -> None:
        """Have the kubelet look at the pod's files once more: it may have missed a change.

        It looks at a Secret or ConfigMap through a watch of its own, which the pod's change may
        overtake. Raises KubeError.
        """
        meta = pod.metadata
        body = {"metadata": {"uid": meta.uid, "annotations": {marks.CONFIG_REFRESH: mark}}}
        with contextlib.suppress(NotFoundError):
            await self._client.patch(PODS, meta.namespace, meta.name, body)

    async def restart_if_crashed(
        self, of: KubeObject, events: Events, pod: Pod, container: str, wanted: str
    ) -> bool:
        """Recreate a pod if its daemon exited with another configuration than the wanted one.

        Returns whether it was recreated. Raises KubeError.
        """
        meta = pod.metadata
        had = meta.annotations.get(marks.CONFIG_HASH)
        if meta.deleting or had in (None, wanted) or not crashed(pod, container):
            return False
        note = f"Recreating pod {meta.name} with the changed files: {container} had ended"
        await self.restart(of, events, pod, note)
        return True

    async def restart(
        self, of: KubeObject, events: Events, pod: Pod, note: str, *, within_s: int | None = None
    ) -> None:
        """Delete the pod in exactly this version; its workload makes another.

        It ends `within_s` seconds, else within its own grace period. Raises KubeError.
        """
        meta = pod.metadata
        try:
            await self._client.delete(
                PODS,
                meta.namespace,
                meta.name,
                uid=meta.uid,
                resource_version=meta.resource_version,
                grace_period_seconds=within_s,
            )
        except NotFoundError:
            return
        events.normal(of, Event.POD_REPLACED, note, "Replace")
