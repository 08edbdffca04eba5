"""Simulated machines: a scheduler and kubelets beside the simulated API server.

Pods are bound, start after a while, become ready, end when they are deleted and are gone a while
later. Worker pods bring a slurmd that registers with the simulated slurmctld; the pods of slurmctld
and slurmrestd bring those. All of it happens in the running loop's time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

from penstock.api.meta import Json
from penstock.api.slinky import wellknown
from penstock.api.slinky.names import SLURM_JWKS
from penstock.api.slinky.wellknown import KEYS
from penstock.decide.drain_reason import TERMINATING
from penstock.slurm.keyring import WORKERS
from penstock.testing import slurmdbd
from penstock.testing.apiserver import ApiServer, Change
from penstock.testing.apiserver.status import RefusedError
from penstock.testing.keys import Keys
from penstock.testing.keys import read as keys_in
from penstock.testing.placing import takes
from penstock.testing.sidecar import ETC, SECRETS, Data, Files, Sidecar, data_of, mounted
from penstock.testing.slurm import SimulatedSlurm
from penstock.testing.slurmdbd import Slurmdbds
from penstock.testing.volumes import mountable
from penstock.testing.workloads import image_missing, node_conf, running

PODS, NODES = "/pods", "/nodes"
MISSING = "missing:1"
"""An image that no machine can pull."""
LABELS = {"slurm": "worker"}
"""What machines have beside the labels that a kubelet gives."""
LOGIN_KEYS = "slurm-config"
"""The volume with a login's keys."""
DAEMONS = ("slurmctld", "slurmrestd", "slurmdbd")
Dice = Callable[[float, float], float]
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
    reconfigure: tuple[float, float] = (0.3, 3.0)
    collect: tuple[float, float] = (1.0, 20.0)
    """From the end of a Node until its pods are collected."""
    silent: float = 30.0
    """After which slurmctld gives up a node that does not answer."""


@dataclass
class _Life:
    """How far the kubelet is with one pod."""

    uid: str
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


class Machines:
    """The machines of a cluster, each a Kubernetes Node, and what runs on them.

    `slurms` are the Slurm clusters by namespace. Machines in `silent` have a kubelet that does
    nothing; what runs there goes on. The kubelet of one in `lazy` brings files up to date in its
    full pass only.
    """

    def __init__(
        self,
        server: ApiServer,
        slurms: Mapping[str, SimulatedSlurm],
        *,
        names: tuple[str, ...] = ("machine-0", "machine-1", "machine-2"),
        dice: Dice = lambda low, high: (low + high) / 2,
        pace: Pace | None = None,
    ) -> None:
        self.server = server
        self.slurms = slurms
        self.silent: set[str] = set()
        self.lazy: set[str] = set()
        self._dice = dice
        self._pace = pace or Pace()
        self._loop = asyncio.get_running_loop()
        self._lives: dict[str, _Life] = {}
        self.slurmdbds = Slurmdbds(server.find)
        self._ready: dict[tuple[str, str], set[str]] = {
            (space, app): set() for space in slurms for app in DAEMONS
        }
        for name in names:
            self.add(name)
        server.store.listeners.append(self._changed)
        server.store.listeners.append(self._rekeyed)
        server.logs = self.log

    def add(self, name: str) -> None:
        """A machine joins the cluster."""
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        known = {"kubernetes.io/os": "linux", "kubernetes.io/hostname": name}
        machine: Json = {"kind": "Node", "metadata": {"name": name, "labels": LABELS | known}}
        self.server.ask("POST", "/api/v1/nodes", {**machine, "status": {"conditions": [ready]}})

    def remove(self, name: str) -> None:
        """A machine leaves the cluster; what runs there is collected a while later."""
        self.server.ask("DELETE", f"/api/v1/nodes/{name}", {})
        self._loop.call_later(self._dice(*self._pace.collect), self._collect, name)

    def _collect(self, name: str) -> None:
        """What PodGC does. Source: Kubernetes documentation, "Pod garbage collection"."""
        if self.server.find(NODES, "", name) is not None:
            return
        for pod in self.on(name):
            meta = pod["metadata"]
            path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
            self.server.ask("DELETE", path, {"gracePeriodSeconds": 0}, user="podgc")
        for slurm in self.slurms.values():
            self._loop.call_later(self._pace.silent, slurm.give_up_silent_nodes)

    def log(self, namespace: str, name: str, container: str) -> str | None:
        """The log of a reconfigure container or a slurmdbd; a silent kubelet gives none."""
        pod, life = self.server.find(PODS, namespace, name), self._lives.get(f"{namespace}/{name}")
        sidecar = life.sidecar if life is not None and container == "reconfigure" else None
        if pod is None or (sidecar is None and container != slurmdbd.CONTAINER):
            return None
        if pod["spec"].get("nodeName") in self.silent:
            raise RefusedError(500, "the kubelet does not answer")
        return "\n".join(sidecar.lines) if sidecar else self.slurmdbds.log(namespace, name)

    def database(self, namespace: str, *, answers: bool) -> None:
        """The database of a namespace's slurmdbd goes, or is back."""
        (self.slurmdbds.lost.discard if answers else self.slurmdbds.lost.add)(namespace)
        for pod in self.server.objects(PODS, namespace):
            life = self._lives.get(_key(pod))
            if _app(pod) == "slurmdbd" and life is not None and life.started and not life.ending:
                self._set_ready(pod, ready=answers)

    def fall_silent(self, name: str) -> None:
        """The kubelet of a machine stops; the node controller says so."""
        self.silent.add(name)
        self._tell(name, "Unknown", "NodeStatusUnknown")
        for pod in self.on(name):
            self._set_ready(pod, ready=False)

    def come_back(self, name: str) -> None:
        """The kubelet is back, and does what it missed."""
        self.silent.discard(name)
        self._tell(name, "True", "KubeletReady")
        for pod in self.on(name):
            life = self._lives.get(_key(pod))
            if life is not None and life.started and not life.ending:
                self._set_ready(pod, ready=True)

    def crash_sidecar(self, namespace: str) -> None:
        """The reconfigure container of slurmctld's pod ends and starts again, with a new log."""
        for key, life in list(self._lives.items()):
            if life.sidecar is not None and not life.ending and key.startswith(f"{namespace}/"):
                life.sidecar.restart()
                self._later(life, self._pace.try_, lambda k=key, u=life.uid: self._look(k, u))

    def reread(self, namespace: str) -> None:
        """Slurmctld reads the files that its pod has, and forgets what it was told since."""
        for key, life in self._lives.items():
            if life.sidecar is not None and key.startswith(f"{namespace}/"):
                self._reads(namespace, life.sidecar.etc)

    def crash_slurmd(self, pod_name: str, namespace: str) -> None:
        """The slurmd container of a pod ends and starts again a while later; its jobs are lost."""
        pod = self.server.find(PODS, namespace, pod_name)
        life = self._lives.get(f"{namespace}/{pod_name}")
        if pod is None or life is None or not life.started or life.ending:
            return
        slurm = self.slurms[namespace]
        slurm.slurmd_ends(node_name(pod), life.uid)
        status = running(pod, self._stamp())
        for container in status["containerStatuses"]:
            if container["name"] == "slurmd":
                waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
                ended = {"terminated": {"exitCode": 1}}
                container |= {"ready": False, "restartCount": 1}
                container |= {"state": waiting, "lastState": ended}
        status["conditions"][-1]["status"] = "False"
        life.started = False
        self._write_status(pod, status)
        self._later(life, (10.0, 20.0), lambda: self._start(_key(pod), life.uid))
        self._loop.call_later(self._pace.silent, slurm.give_up_silent_nodes)

    def taint(self, name: str, effect: str | None) -> None:
        """Taint a machine, or take the taint back; `NoExecute` also ends the pods on it.

        Source: Kubernetes documentation, "Taints and Tolerations".
        """
        taints = [{"key": "maintenance", "effect": effect}] if effect else None
        self.server.ask("PATCH", f"/api/v1/nodes/{name}", {"spec": {"taints": taints}})
        if effect == "NoExecute":
            for pod in self.on(name):
                meta = pod["metadata"]
                path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
                self.server.ask("DELETE", path, {}, user="taint-eviction")

    def on(self, name: str) -> list[Json]:
        """The pods of a machine."""
        return [pod for pod in self.server.objects(PODS) if pod["spec"].get("nodeName") == name]

    def runs(self, namespace: str, app: str) -> bool:
        """Whether a pod of slurmctld or slurmrestd runs."""
        return bool(self._ready[namespace, app])

    def runs_daemon(self, pod: Json) -> bool:
        """Whether the slurmctld, slurmrestd or slurmdbd of that very pod runs, in truth."""
        ready = self._ready.get((pod["metadata"]["namespace"], _app(pod)), set())
        return pod["metadata"]["uid"] in ready

    def begun_with(self, pod: Json) -> Keys | None:
        """The keys that a pod which runs has read at its start."""
        life = self._lives.get(_key(pod))
        return life.keys if life is not None and life.started and not life.ending else None

    def runs_slurmd(self, pod: Json) -> bool:
        """Whether a slurmd runs in that very pod, in truth."""
        slurmd = self._slurm(pod).slurmds.get(node_name(pod))
        return slurmd is not None and slurmd.pod_uid == pod["metadata"]["uid"]

    def _changed(self, change: Change) -> None:
        if change.resource != PODS:
            return
        key = "/".join(change.key)
        if change.new is None:
            life = self._lives.pop(key, None)
            if life is not None:
                self._gone(change.last.obj, life)
            return
        pod = change.new.obj
        uid = cast("str", pod["metadata"]["uid"])
        life = self._lives.get(key)
        if life is None or life.uid != uid:
            life = self._lives[key] = _Life(uid)
            self._later(life, self._pace.bind, lambda: self._bind(key, uid))
        if pod["spec"].get("nodeName") and not life.bound:
            life.bound = True
            self._later(life, self._pace.start, lambda: self._start(key, uid))
        notes: Json = pod["metadata"].get("annotations") or {}
        if life.sidecar is not None and notes != life.notes:
            life.notes = notes
            if pod["spec"]["nodeName"] not in self.lazy:
                self._later(life, self._pace.refresh, lambda: self._refresh(key, uid))
        if life.started and life.sidecar is None and notes.get(KEYS) != life.notes.get(KEYS):
            life.notes = notes
            if pod["spec"]["nodeName"] not in self.lazy:
                self._later(life, self._pace.refresh, lambda: self._show(key, uid))
        if pod["metadata"].get("deletionTimestamp") and not life.ending:
            life.ending = True
            self._end_soon(key, pod, life)

    def _bind(self, key: str, uid: str) -> None:
        pod = self._find(key, uid)
        if pod is None or pod["metadata"].get("deletionTimestamp") or pod["spec"].get("nodeName"):
            return
        machines = [
            one["metadata"]["name"]
            for one in self.server.objects(NODES)
            if takes(one, pod) and one["metadata"]["name"] not in self.silent
        ]
        machines = machines if mountable(self.server, pod) else []
        if not machines:
            life = self._lives[key]
            self._later(life, self._pace.retry, lambda: self._bind(key, uid))
            return
        machine = min(machines, key=lambda name: (len(self.on(name)), name))
        path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{key.partition('/')[2]}"
        self.server.ask("POST", f"{path}/binding", {"metadata": {}, "target": {"name": machine}})

    def _start(self, key: str, uid: str) -> None:
        pod, life = self._find(key, uid), self._lives.get(key)
        if pod is None or life is None or life.ending:
            return
        if pod["spec"]["nodeName"] in self.silent:
            self._later(life, self._pace.retry, lambda: self._start(key, uid))
            return
        if any(one["image"] == MISSING for one in pod["spec"]["containers"]):
            self._write_status(pod, image_missing(pod))
            return
        life.started = True
        app = _app(pod)
        life.files = self._shown(pod)
        life.keys = keys_in(life.files)
        if app == "slurmd":
            self._slurm(pod).slurmd_starts(node_name(pod), uid, node_conf(pod), life.keys)
            self._later(life, self._pace.register, lambda: self._register(key, uid))
        elif app in DAEMONS:
            space = pod["metadata"]["namespace"]
            if app == "slurmctld":
                life.notes = pod["metadata"].get("annotations") or {}
                slurm = self._slurm(pod)
                life.sidecar = Sidecar(
                    mounted(pod, ETC, self._data(space)),
                    reads=lambda files: self._reads(space, files),
                    up=lambda: slurm.up,
                    spend=lambda end: self._later(life, self._pace.reconfigure, end),
                )
                life.sidecar.mount(pod, self._data(space))
                self._later(life, self._pace.try_, lambda: self._look(key, uid))
                self._later(life, self._pace.resync, lambda: self._resync(key, uid))
            self._ready[space, app].add(uid)
            self._daemons(space)
        self._write_status(pod, running(pod, self._stamp()))
        if app == "slurmdbd" and pod["metadata"]["namespace"] in self.slurmdbds.lost:
            self._set_ready(pod, ready=False)

    def _data(self, space: str) -> Data:
        return data_of(self.server.find, space)

    def _shown(self, pod: Json) -> Files:
        """What a worker or a login finds at /etc/slurm."""
        data = self._data(pod["metadata"]["namespace"])
        return mounted(pod, LOGIN_KEYS, data) or mounted(pod, ETC, data)

    def _reads(self, space: str, files: Files) -> None:
        """Slurmctld reads its files, and one that runs tells its slurmds to read theirs.

        What that does is only of interest where keys change.
        """
        slurm = self.slurms[space]
        before = slurm.keys
        slurm.reads(files)
        if not slurm.up or before is None or SLURM_JWKS not in files:
            return
        for key, life in list(self._lives.items()):
            pod = self._find(key, life.uid)
            if pod is None or not key.startswith(f"{space}/") or not self.runs_slurmd(pod):
                continue
            if slurm.rereads(node_name(pod), keys_in(life.files)):
                self._later(
                    life, self._pace.register, lambda k=key, u=life.uid: self._register(k, u)
                )

    def _rekeyed(self, change: Change) -> None:
        """A key ring changed: kubelets show it in their full pass, if not sooner."""
        found = change.new.obj if change.new is not None else {}
        if change.resource != SECRETS or WORKERS not in (found.get("data") or ()):
            return
        for key, life in self._lives.items():
            if life.started and key.startswith(f"{change.key[0]}/"):
                self._later(life, self._pace.resync, lambda k=key, u=life.uid: self._show(k, u))

    def _show(self, key: str, uid: str) -> None:
        """The kubelet brings the files of a worker or a login up to date."""
        pod, life = self._find(key, uid), self._lives.get(key)
        if pod is None or life is None or life.ending or life.sidecar is not None:
            return
        if pod["spec"]["nodeName"] in self.silent:
            self._later(life, self._pace.retry, lambda: self._show(key, uid))
            return
        life.files = self._shown(pod)

    def _resync(self, key: str, uid: str) -> None:
        """The kubelet's full pass."""
        self._refresh(key, uid)
        if (life := self._lives.get(key)) is not None and life.uid == uid:
            self._later(life, self._pace.resync, lambda: self._resync(key, uid))

    def _refresh(self, key: str, uid: str) -> None:
        """The kubelet brings the files of a slurmctld pod up to date."""
        pod, life = self._find(key, uid), self._lives.get(key)
        if pod is None or life is None or life.ending or life.sidecar is None:
            return
        if pod["spec"]["nodeName"] in self.silent:
            self._later(life, self._pace.retry, lambda: self._refresh(key, uid))
            return
        life.sidecar.mount(pod, self._data(pod["metadata"]["namespace"]))
        self._later(life, self._pace.try_, lambda: self._look(key, uid))

    def _look(self, key: str, uid: str) -> None:
        """The reconfigure container sees the files; it comes back to a slurmctld that is away."""
        pod, life = self._find(key, uid), self._lives.get(key)
        if pod is None or life is None or life.ending or life.sidecar is None:
            return
        life.sidecar.look()
        if not self._slurm(pod).up:
            self._later(life, self._pace.retry, lambda: self._look(key, uid))

    def _register(self, key: str, uid: str) -> None:
        pod, life = self._find(key, uid), self._lives.get(key)
        if pod is None or life is None or life.ending or not self.runs_slurmd(pod):
            return
        slurm, name = self._slurm(pod), node_name(pod)
        if slurm.turned_away(name):
            # Its container starts again, with the files that are there by now.
            life.keys = keys_in(life.files)
            slurm.slurmd_starts(name, uid, node_conf(pod), life.keys)
        # Also later: slurmctld may lose its state and has to hear of it again.
        again = (60.0, 90.0) if slurm.registers(name) else self._pace.retry
        self._later(life, again, lambda: self._register(key, uid))

    def _end_soon(self, key: str, pod: Json, life: _Life) -> None:
        machine = pod["spec"].get("nodeName")
        if machine in self.silent:
            self._later(life, self._pace.retry, lambda: self._end_soon(key, pod, life))
            return
        if self.runs_slurmd(pod):
            self._slurm(pod).pre_stop(node_name(pod), TERMINATING)
        self._later(life, self._pace.end, lambda: self._end(key, life.uid))

    def _end(self, key: str, uid: str) -> None:
        pod = self._find(key, uid)
        if pod is None:
            return
        self._gone(pod, self._lives[key])
        path = f"/api/v1/namespaces/{key.partition('/')[0]}/pods/{key.partition('/')[2]}"
        body = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
        self.server.ask("DELETE", path, body, user="kubelet")

    def _gone(self, pod: Json, life: _Life) -> None:
        for timer in life.timers:
            timer.cancel()
        self._slurm(pod).slurmd_ends(node_name(pod), life.uid)
        if _app(pod) in DAEMONS:
            space = pod["metadata"]["namespace"]
            self._ready[space, _app(pod)].discard(life.uid)
            self._daemons(space)

    def _daemons(self, space: str) -> None:
        slurm = self.slurms[space]
        ctld = slurm.outside or bool(self._ready[space, "slurmctld"])
        running = self._ready[space, "slurmctld"]
        slurm.ctld.hosts = tuple(
            pod["metadata"]["name"]
            for pod in self.server.objects(PODS, space)
            if pod["metadata"]["uid"] in running
        )
        if ctld and not slurm.up:
            slurm.start()
        elif not ctld and slurm.up:
            slurm.stop()
        slurm.rest_up = bool(self._ready[space, "slurmrestd"])

    def _slurm(self, pod: Json) -> SimulatedSlurm:
        return self.slurms[pod["metadata"]["namespace"]]

    def _find(self, key: str, uid: str) -> Json | None:
        namespace, _, name = key.partition("/")
        pod = self.server.find(PODS, namespace, name)
        return pod if pod is not None and pod["metadata"]["uid"] == uid else None

    def _tell(self, machine: str, status: str, reason: str) -> None:
        ready = {"type": "Ready", "status": status, "reason": reason}
        path = f"/api/v1/nodes/{machine}/status"
        body = {"status": {"conditions": [ready]}}
        self.server.ask("PATCH", path, body, kind="strategic", user="kubelet")

    def _set_ready(self, pod: Json, *, ready: bool) -> None:
        lost = self.slurmdbds.lost if _app(pod) == "slurmdbd" else ()
        ready = ready and pod["metadata"]["namespace"] not in lost
        condition = {"type": "Ready", "status": "True" if ready else "False"}
        self._write_status(pod, {"conditions": [condition]})

    def _write_status(self, pod: Json, status: Json) -> None:
        meta = pod["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/status"
        body = {"metadata": {"uid": meta["uid"]}, "status": status}
        self.server.ask("PATCH", path, body, kind="strategic", user="kubelet")

    def _stamp(self) -> str:
        now = datetime.fromtimestamp(self.server.now(), UTC)
        return now.strftime("%Y-%m-%dT%H:%M:%SZ")

    def _later(
        self, life: _Life, between: tuple[float, float], callback: Callable[[], None]
    ) -> None:
        life.timers = [one for one in life.timers if one.when() > self._loop.time()]
        life.timers.append(self._loop.call_later(self._dice(*between), callback))


def node_name(pod: Json) -> str:
    """Name under which the pod's slurmd registers, if it is not in the host's network."""
    return pod["spec"].get("hostname") or pod["metadata"]["name"]


def _app(pod: Json) -> str:
    return pod["metadata"].get("labels", {}).get(wellknown.APP_NAME, "")


def _key(pod: Json) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
