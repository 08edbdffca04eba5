"""Copies of pods of the operator that lack something."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Protocol

from e2e_kit.api import Json
from e2e_kit.site import eventually

Change = Callable[[Json, Json], Any]
"""What is different in a copy: in the spec of the pod, and in its main container."""
ENDED_S = 60.0
ADDRESS: Json = {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}


class Namespace(Protocol):
    """A namespace by kubectl."""

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Output of kubectl. Raises LocalError when it fails."""
        ...


def copy_pod(namespace: Namespace, pod: str, name: str, change: Change) -> None:
    """Create a pod that differs from another one by its name and a change.

    It has no labels, so no workload counts it, and no Service has its address: slurmd of a
    SlurmCluster registers a dynamic Slurm node with the pod's name and address.
    """
    found: Json = json.loads(namespace.kubectl("get", "pod", pod, "-o", "json"))
    spec: Json = found["spec"]
    (main,) = spec["containers"]
    for one in main.get("env", ()):
        if one["name"] == "SLURMD_OPTIONS":
            one["value"] = f"-Z -N {name} --conf NodeAddr=$(POD_IP)"
    main["env"] = [ADDRESS, *main.get("env", ())]
    change(spec, main)
    spec |= {"hostname": name, "restartPolicy": "Never", "terminationGracePeriodSeconds": 1}
    made = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    namespace.kubectl("create", "-f", "-", stdin=json.dumps(made))


def log_of_failed(namespace: Namespace, name: str) -> str:
    """The log of a pod's main container, once the pod has failed."""
    where = ("get", "pod", name, "-o", "jsonpath={.status.phase}")
    eventually(f"{name} fails", lambda: namespace.kubectl(*where) == "Failed", ENDED_S)
    return namespace.kubectl("logs", name)
