"""What pods and their workloads look like while they run: manifests and statuses."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from penstock.api.cluster import labels as app_labels
from penstock.api.kubernetes.meta import Json
from penstock.api.nebius import labels as nebius
from penstock.decide.observed import drain_reason
from penstock.decide.slurm_node import parameters as live_conf
from penstock.translate.slinky.worker_set import MARKS

TEMPLATE = "test.penstock.dev/template"
"""Annotation of a pod: the digest of the template that it was made from."""

_REASON = re.compile(r"reason='([^']*)'")


@dataclass(frozen=True, slots=True)
class NodeConf:
    """Parameters with which a slurmd registers a dynamic node."""

    features: tuple[str, ...] = ()
    weight: int = live_conf.USUAL_WEIGHT

    @property
    def values(self) -> dict[str, Any]:
        """As a node record has them."""
        both = {"features": list(self.features), "active_features": list(self.features)}
        return {**both, "weight": self.weight}


SILENT = NodeConf()
"""Of a slurmd without parameters."""


def node_conf(pod: Json) -> NodeConf:
    """What the slurmd of a worker pod is given by `--conf`."""
    for container in pod["spec"]["containers"]:
        words = _slurmd_options(container)
        if "--conf" in words:
            found = live_conf.read(words[words.index("--conf") + 1])
            return NodeConf(tuple(sorted(found.features)), found.weight)
    return SILENT


def _slurmd_options(container: Json) -> list[str]:
    """Its arguments, or for a SlurmCluster's worker the shell text in its environment."""
    args: list[str] = container.get("args") or []
    for one in container.get("env") or ():
        if one["name"] == "SLURMD_OPTIONS":
            return [*args, *shlex.split(one.get("value", ""))]
    return args


def running(pod: Json, started: str = "2026-01-01T00:00:00Z", *, restarts: int = 0) -> Json:
    """The status of a pod whose containers all run and are ready, after so many `restarts`."""
    return {
        "phase": "Running",
        "podIP": address(pod),
        "podIPs": [{"ip": address(pod)}],
        "conditions": [
            {"type": "PodScheduled", "status": "True"},
            {"type": "Ready", "status": "True"},
        ],
        "initContainerStatuses": [_running(one, started) for one in _beside(pod)],
        "containerStatuses": [
            {**_running(one, started), "restartCount": restarts}
            for one in pod["spec"]["containers"]
        ],
    }


def address(pod: Json) -> str:
    """The pod's own IP address, made of its uid."""
    found = blake2b(str(pod["metadata"].get("uid", "")).encode(), digest_size=3).digest()
    return ".".join(map(str, (10, *found)))


def fallen(pod: Json, started: str, *, hangs: bool) -> Json:
    """The status of a slurmctld pod whose slurmctld ends at each start, or `hangs` in it."""
    status = running(pod, started, restarts=restarts_of(pod) + 1)
    for container in status["containerStatuses"]:
        if container["name"] == "slurmctld":
            container["ready"] = False
            if not hangs:
                ended = {"exitCode": 1, "message": "slurmctld: fatal: it ends with these files"}
                container["lastState"] = {"terminated": ended}
                container["state"] = {"waiting": {"reason": "CrashLoopBackOff"}}
    status["conditions"][-1]["status"] = "False"
    return status


def has_hook(pod: Json) -> bool:
    """Whether a worker reports its end to slurmctld. One of a SlurmCluster does not."""
    return pod["metadata"].get("labels", {}).get(app_labels.APP_NAME) != nebius.NAME


def terminating_reason(pod: Json) -> str:
    """The reason that a worker's preStop hook gives slurmctld."""
    for container in pod["spec"]["containers"]:
        hook: Json = container.get("lifecycle", {}).get("preStop", {})
        script = " ".join(hook.get("exec", {}).get("command") or ())
        if found := _REASON.search(script):
            return found[1]
    return drain_reason.terminating(MARKS)


def restarts_of(pod: Json) -> int:
    """How often the containers of a pod were started again."""
    every: list[Json] = pod.get("status", {}).get("containerStatuses") or []
    return max((one["restartCount"] for one in every), default=0)


def _beside(pod: Json) -> list[Json]:
    """Containers that run beside the others for as long as the pod lives."""
    every: list[Json] = pod["spec"].get("initContainers") or []
    return [one for one in every if one.get("restartPolicy") == "Always"]


def _running(container: Json, started: str) -> Json:
    return {
        "name": container["name"],
        "image": container["image"],
        "imageID": "",
        "ready": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": started}},
    }


def image_missing(pod: Json) -> Json:
    """The status of a pod whose images cannot be pulled."""
    waiting = {"waiting": {"reason": "ErrImagePull", "message": "not found"}}
    return {
        "phase": "Pending",
        "conditions": [
            {"type": "PodScheduled", "status": "True"},
            {"type": "Ready", "status": "False"},
        ],
        "containerStatuses": [
            {
                "name": container["name"],
                "image": container["image"],
                "imageID": "",
                "ready": False,
                "restartCount": 0,
                "state": waiting,
            }
            for container in pod["spec"]["containers"]
        ],
    }


def revision_label(workload: Json, revision: str) -> str:
    """The name of a StatefulSet's revision, which is a label of its pods: 63 characters at most."""
    return f"{workload['metadata']['name']}-{revision[:10]}"


def _revision(workload: Json, revision: str) -> dict[str, str]:
    """The label that a StatefulSet's pods have. Source: Kubernetes documentation, StatefulSets."""
    stateful = workload["kind"] == "StatefulSet"
    return {"controller-revision-hash": revision_label(workload, revision)} if stateful else {}


def owner_of(workload: Json) -> Json:
    """The reference of a pod to the workload that controls it."""
    owner = {key: workload[key] for key in ("apiVersion", "kind")}
    owner |= {key: workload["metadata"][key] for key in ("name", "uid")}
    return {**owner, "controller": True}


def pod_of(workload: Json, name: str, revision: str) -> Json:
    """The pod that a StatefulSet or Deployment makes from its template."""
    template: Json = workload["spec"]["template"]
    meta: Json = template.get("metadata", {})
    claims = [one["metadata"]["name"] for one in workload["spec"].get("volumeClaimTemplates", ())]
    volumes: list[Json] = [*template["spec"].get("volumes", ())]
    volumes += [{"name": name, "emptyDir": {}} for name in claims]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": workload["metadata"]["namespace"],
            "labels": {**meta.get("labels", {}), **_revision(workload, revision)},
            "annotations": {**meta.get("annotations", {}), TEMPLATE: revision},
            "ownerReferences": [owner_of(workload)],
        },
        "spec": {**template["spec"], "volumes": volumes},
    }
