"""What the simulated kubelets know of the pods that they look after, and when they do what."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from penstock.api.cluster import labels as app_labels
from penstock.api.kubernetes.meta import Json
from penstock.api.nebius import labels as nebius
from penstock.simulation.apiserver import ApiServer
from penstock.simulation.slurm.auth_keys import Keys
from penstock.simulation.slurm.reconfigure import Files, Sidecar

PODS = "/pods"
_DAEMONS = {
    "controller": "slurmctld",
    "rest": "slurmrestd",
    "worker": "slurmd",
    "nodeset": "slurmd",
    "accounting": "slurmdbd",
}
"""Slurm daemons by the component of pods of a SlurmCluster; others are called as these are."""
RandomSource = Callable[[float, float], float]
"""A number between the two."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How long things take, each from and to, in seconds."""

    bind: tuple[float, float] = (0.05, 0.5)
    start: tuple[float, float] = (0.5, 4.0)
    register: tuple[float, float] = (0.1, 2.0)
    end: tuple[float, float] = (0.5, 6.0)
    retry: tuple[float, float] = (2.0, 2.0)
    refresh: tuple[float, float] = (0.1, 1.0)
    """From a change of a pod's annotations until its files are as they should be."""
    resync: tuple[float, float] = (60.0, 90.0)
    try_: tuple[float, float] = (0.1, 0.5)
    again: tuple[float, float] = (8.0, 30.0)
    """Until a trial without a verdict is repeated."""
    reconfigure: tuple[float, float] = (0.3, 3.0)
    back_off: tuple[float, float] = (10.0, 40.0)
    """Until a container that ended by itself is started again."""
    hangs: tuple[float, float] = (300.0, 310.0)
    """Until a container that does not answer is started again."""
    collect: tuple[float, float] = (1.0, 20.0)
    """From the end of a Node until its pods are collected."""
    silent: float = 30.0
    """After which slurmctld gives up a node that does not answer."""


@dataclass
class PodLifecycle:
    """How far the kubelet is with one pod."""

    uid: str
    space: str = ""
    """Namespace, once it has a sidecar."""
    bound: bool = False
    started: bool = False
    ending: bool = False
    notes: Json = field(default_factory=dict[str, Any])
    sidecar: Sidecar | None = None
    files: Files = field(default_factory=dict[str, str])
    """What a worker or a login is shown at /etc/slurm."""
    keys: Keys | None = None
    """What it read of that when it started."""
    timers: list[asyncio.TimerHandle] = field(default_factory=list[asyncio.TimerHandle])


class PodLifecycles(dict[str, PodLifecycle]):
    """Lifecycles by their pod's key, with the pods that belong to them."""

    def __init__(self, server: ApiServer, random_source: RandomSource) -> None:
        super().__init__()
        self.server = server
        self._random_source = random_source
        self._loop = asyncio.get_running_loop()

    def pod(self, key: str, uid: str) -> Json | None:
        """The pod of a key, if it is still that one."""
        namespace, _, name = key.partition("/")
        pod = self.server.find(PODS, namespace, name)
        return pod if pod is not None and pod["metadata"]["uid"] == uid else None

    def going_on(self, key: str, uid: str) -> tuple[Json, PodLifecycle] | None:
        """A pod that has not begun to end, with its life."""
        pod, life = self.pod(key, uid), self.get(key)
        return None if pod is None or life is None or life.ending else (pod, life)

    def later(
        self, life: PodLifecycle, between: tuple[float, float], callback: Callable[[], None]
    ) -> None:
        """Do something after a time from one to the other, unless the pod is gone by then."""
        life.timers = [one for one in life.timers if one.when() > self._loop.time()]
        life.timers.append(self._loop.call_later(self._random_source(*between), callback))


def key_of(pod: Json) -> str:
    """Where a pod stands in `PodLifecycles`: namespace/name."""
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def app_of(pod: Json) -> str:
    """The Slurm daemon of a pod, by its labels."""
    labels: dict[str, str] = pod["metadata"].get("labels", {})
    name = labels.get(app_labels.APP_NAME, "")
    if name != nebius.NAME:
        return name
    component = labels.get(app_labels.APP_COMPONENT, "")
    return _DAEMONS.get(component, component)


def node_name(pod: Json) -> str:
    """Name under which the pod's slurmd registers, unless the pod has `hostNetwork`."""
    return pod["spec"].get("hostname") or pod["metadata"]["name"]
