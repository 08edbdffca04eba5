"""Kubernetes' Job controller, and the Jobs that fill the jails of simulated SlurmClusters."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping

from penstock.api.kubernetes.meta import Json
from penstock.simulation.apiserver import ApiServer, Change
from penstock.simulation.kubelet.jail import Jail
from penstock.simulation.kubelet.pod_lifecycle import PODS, RandomSource
from penstock.simulation.kubelet.pod_manifests import pod_of

JOBS = "batch/jobs"
MOST_FAILURES = 2
"""After so many a Job has failed. Kubernetes' default is six, which takes ten minutes."""
_COPY_S = (1.0, 4.0)
_AGAIN_S = 5.0


class Jobs:
    """All Jobs; `jails` are by namespace, and a Job of one in `failing` cannot fill it.

    `reports` has termination messages by the name of the Job, and Jobs in `broken` fail at once.
    Those in `held` run on.
    """

    def __init__(
        self,
        server: ApiServer,
        jails: Mapping[str, Jail],
        random_source: RandomSource,
        silent: set[str],
    ) -> None:
        self.failing: set[str] = set()
        self.reports: dict[str, str] = {}
        self.broken: set[str] = set()
        self.held: set[str] = set()
        self._server = server
        self._jails = jails
        self._random_source = random_source
        self._silent = silent
        self._loop = asyncio.get_running_loop()
        self._failures: Counter[str] = Counter()
        self._copying: set[str] = set()
        self._made = 0
        server.store.listeners.append(self._changed)

    def _changed(self, change: Change) -> None:
        if change.resource == JOBS and change.new is not None:
            self._loop.call_later(0.05, self._reconcile, *change.key)
        if change.resource == PODS:
            for owner in change.last.obj["metadata"].get("ownerReferences", ()):
                if owner["kind"] == "Job":
                    self._loop.call_later(0.05, self._reconcile, change.key[0], owner["name"])

    def _reconcile(self, space: str, name: str) -> None:
        job = self._server.find(JOBS, space, name)
        if job is None or "deletionTimestamp" in job["metadata"] or _has_ended(job):
            return
        uid = job["metadata"]["uid"]
        pods = [
            pod
            for pod in self._server.objects(PODS, space)
            if any(one["uid"] == uid for one in pod["metadata"].get("ownerReferences", ()))
            and pod.get("status", {}).get("phase") not in {"Failed", "Succeeded"}
        ]
        if self._failures[uid] >= MOST_FAILURES:
            self._end(space, name, "Failed", "Job has reached the specified backoff limit")
        elif not pods:
            self._made += 1
            made = pod_of(job, f"{name}-{self._made}", "job")
            self._server.ask("POST", f"/api/v1/namespaces/{space}/pods", made)
        for pod in pods:
            if pod.get("status", {}).get("phase") == "Running":
                self._copy(space, name, pod)

    def _copy(self, space: str, job: str, pod: Json) -> None:
        uid = pod["metadata"]["uid"]
        if uid in self._copying:
            return
        self._copying.add(uid)
        if _containers_overwrite(pod["spec"]):
            # What is cut off leaves no jail that counts as filled.
            self._jails[space].is_filled = False
        pause = self._random_source(*_COPY_S)
        self._loop.call_later(pause, self._copied, space, job, pod["metadata"]["name"], uid)

    def _copied(self, space: str, job: str, name: str, uid: str) -> None:
        pod = self._server.find(PODS, space, name)
        if pod is None or pod["metadata"]["uid"] != uid or "deletionTimestamp" in pod["metadata"]:
            return
        if pod["spec"].get("nodeName") in self._silent or job in self.held:
            self._loop.call_later(2.0, self._copied, space, job, name, uid)
            return
        failed = job in self.broken or (space in self.failing and not self._jails[space].is_filled)
        path = f"/api/v1/namespaces/{space}/pods/{name}/status"
        words = self.reports.get(job, "rsync: No space left on device")
        ended = {"exitCode": int(failed), "message": words}
        containers = [
            {**one, "ready": False, "state": {"terminated": ended}}
            for one in pod["status"]["containerStatuses"]
        ]
        status = {
            "phase": "Failed" if failed else "Succeeded",
            "conditions": [{"type": "Ready", "status": "False"}],
            "containerStatuses": containers,
        }
        if not failed:
            self._jails[space].is_filled = True
        self._server.ask("PATCH", path, {"status": status}, kind="strategic", user="kubelet")
        owner = next(one["uid"] for one in pod["metadata"]["ownerReferences"])
        found = self._server.find(JOBS, space, job)
        if found is None or found["metadata"]["uid"] != owner:
            return
        if job in self.broken:
            self._end(space, job, "Failed", "Job has reached the specified backoff limit")
        elif failed:
            self._failures[owner] += 1
            self._loop.call_later(_AGAIN_S, self._reconcile, space, job)
        else:
            self._end(space, job, "Complete", "")

    def _end(self, space: str, name: str, type_: str, message: str) -> None:
        path = f"/apis/batch/v1/namespaces/{space}/jobs/{name}/status"
        condition = {"type": type_, "status": "True", "message": message}
        self._server.ask("PATCH", path, {"status": {"conditions": [condition]}}, user="jobs")


def _has_ended(job: Json) -> bool:
    found: list[Json] = job.get("status", {}).get("conditions", [])
    return any(one["status"] == "True" for one in found if one["type"] in {"Complete", "Failed"})


def overwrites(job: Json) -> bool:
    """Whether a Job replaces the files of a filled jail."""
    return _containers_overwrite(job["spec"]["template"]["spec"])


def _containers_overwrite(spec: Json) -> bool:
    return any(
        one["name"] == "OVERWRITE" and one.get("value") == "1"
        for container in spec["containers"]
        for one in container.get("env") or ()
    )
