"""Simulated Kubernetes nodes: a scheduler and kubelets beside the simulated API server.

Pods are bound, start after a while, become ready, end when they are deleted and are gone a while
later. Worker pods bring a slurmd that registers with the simulated slurmctld; the pods of slurmctld
and slurmrestd bring those. All of it happens in the running loop's time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import cast

from penstock.api.kubernetes.meta import Json
from penstock.simulation.apiserver import ApiServer, Change
from penstock.simulation.apiserver.status import StatusError
from penstock.simulation.kubelet import auth_log, munge
from penstock.simulation.kubelet.mounts import Mounts
from penstock.simulation.kubelet.pod_lifecycle import (
    PODS,
    Pace,
    PodLifecycle,
    PodLifecycles,
    RandomSource,
    app_of,
    key_of,
    node_name,
)
from penstock.simulation.kubelet.pod_manifests import (
    address,
    fallen,
    has_hook,
    image_missing,
    node_conf,
    restarts_of,
    running,
    terminating_reason,
)
from penstock.simulation.kubelet.pvc import mountable
from penstock.simulation.kubelet.scheduler import takes
from penstock.simulation.slurm import slurmdbd
from penstock.simulation.slurm.auth_keys import Keys
from penstock.simulation.slurm.auth_keys import read as keys_in
from penstock.simulation.slurm.cluster import SimulatedSlurm
from penstock.simulation.slurm.reconfigure import HANGS, data_of, fatal
from penstock.simulation.slurm.slurmdbd import Slurmdbds

NODES = "/nodes"
MISSING = "missing:1"
"""An image that no node can pull."""
LABELS = {"slurm": "worker"}
"""Labels of Kubernetes nodes beside those that a kubelet sets."""
DAEMONS = ("slurmctld", "slurmrestd", "slurmdbd")


class SimulatedNodes:
    """The Kubernetes nodes of a cluster, and what runs on them.

    `slurms` are the Slurm clusters by namespace. Nodes in `silent` have a kubelet that does
    nothing; what runs there goes on. The kubelet of one in `lazy` updates files in its periodic
    sync only.
    """

    def __init__(
        self,
        server: ApiServer,
        slurms: Mapping[str, SimulatedSlurm],
        *,
        names: tuple[str, ...] = ("machine-0", "machine-1", "machine-2"),
        random_source: RandomSource = lambda low, high: (low + high) / 2,
        pace: Pace | None = None,
    ) -> None:
        self.server = server
        self.slurms = slurms
        self.silent: set[str] = set()
        self.lazy: set[str] = set()
        self.unreadable_logs: dict[str, int] = {}
        """By namespace the HTTP status of a request for the log of a reconfigure container."""
        self._random_source = random_source
        self._pace = pace or Pace()
        self._loop = asyncio.get_running_loop()
        self._lifecycles = PodLifecycles(server, random_source)
        self.slurmdbds = Slurmdbds(server.find)
        self._ready: dict[tuple[str, str], set[str]] = {
            (space, app): set() for space in slurms for app in DAEMONS
        }
        for name in names:
            self.add(name)
        server.store.listeners.append(self._changed)
        self.mounts = Mounts(
            self._lifecycles,
            slurms,
            self._pace,
            silent=self.silent,
            lazy=self.lazy,
            register=self._register,
        )
        server.logs = self.log
        for space, slurm in slurms.items():
            slurm.ctld.slurmdbd = partial(self._accounts, space)
            slurm.ctld.rereads = partial(self.mounts.reread, space)

    def add(self, name: str) -> None:
        """A Kubernetes node joins the cluster."""
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        known = {"kubernetes.io/os": "linux", "kubernetes.io/hostname": name}
        machine: Json = {"kind": "Node", "metadata": {"name": name, "labels": LABELS | known}}
        self.server.ask("POST", "/api/v1/nodes", {**machine, "status": {"conditions": [ready]}})

    def remove(self, name: str) -> None:
        """A Kubernetes node leaves the cluster; its pods are collected a while later."""
        self.server.ask("DELETE", f"/api/v1/nodes/{name}", {})
        self._loop.call_later(self._random_source(*self._pace.collect), self._collect, name)

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
        """The log of a sidecar, slurmdbd or login; that of a silent Kubernetes node gives none."""
        pod, life = (
            self.server.find(PODS, namespace, name),
            self._lifecycles.get(f"{namespace}/{name}"),
        )
        sidecar = life.sidecar if life is not None and container == "reconfigure" else None
        others = {*slurmdbd.CONTAINERS, munge.CONTAINER, auth_log.SSHD}
        if pod is None or (sidecar is None and container not in others):
            return None
        if pod["spec"].get("nodeName") in self.silent:
            raise StatusError(500, "the kubelet does not answer")
        if sidecar and (status := self.unreadable_logs.get(namespace)):
            raise StatusError(status, "logs cannot be read")
        if container == munge.CONTAINER:
            return munge.log(self.server, pod)
        if container in slurmdbd.CONTAINERS:
            return self.slurmdbds.log(namespace, name)
        keys = auth_log.log(pod, container, data_of(self.server.find, namespace))
        return "\n".join([*(sidecar.lines if sidecar else ()), keys])

    def database(self, namespace: str, *, answers: bool) -> None:
        """The database of a namespace's slurmdbd goes, or is back."""
        (self.slurmdbds.lost.discard if answers else self.slurmdbds.lost.add)(namespace)
        for pod in self.server.objects(PODS, namespace):
            life = self._lifecycles.get(key_of(pod))
            if app_of(pod) == "slurmdbd" and life is not None and life.started and not life.ending:
                self._set_ready(pod, ready=answers)

    def fall_silent(self, name: str) -> None:
        """The kubelet of a node stops, and the node controller sets Ready to Unknown."""
        self.silent.add(name)
        self._report_ready(name, "Unknown", "NodeStatusUnknown")
        for pod in self.on(name):
            self._set_ready(pod, ready=False)

    def come_back(self, name: str) -> None:
        """The kubelet is back, and does what it missed."""
        self.silent.discard(name)
        self._report_ready(name, "True", "KubeletReady")
        for pod in self.on(name):
            life = self._lifecycles.get(key_of(pod))
            fallen = app_of(pod) == "slurmctld" and not self.runs_daemon(pod)
            if life is not None and life.started and not life.ending and not fallen:
                self._set_ready(pod, ready=True)

    def crash_slurmd(self, pod_name: str, namespace: str) -> None:
        """The slurmd container of a pod ends and starts again a while later; its jobs are lost."""
        pod = self.server.find(PODS, namespace, pod_name)
        life = self._lifecycles.get(f"{namespace}/{pod_name}")
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
        self._lifecycles.later(life, (10.0, 20.0), lambda: self._start(key_of(pod), life.uid))
        self._loop.call_later(self._pace.silent, slurm.give_up_silent_nodes)

    def slurmctld_returns(self, namespace: str) -> bool:
        """Whether the slurmctld of a namespace, which ended, comes up with the files of its pod."""
        if self.slurms[namespace].external:
            return True
        for key, life in list(self._lifecycles.items()):
            running = life.uid in self._ready[namespace, "slurmctld"]
            if not running or not key.startswith(f"{namespace}/"):
                continue
            pod = self._lifecycles.pod(key, life.uid)
            waits = pod is not None and self.mounts.waits_for_jail(pod)
            if waits or fatal(self.mounts.files(life)) is not None:
                self._fall(key, life)
                return False
        return self.runs(namespace, "slurmctld")

    def _fall(self, key: str, life: PodLifecycle) -> None:
        """Slurmctld does not come up; its container is started again a while later."""
        if (going_on := self._lifecycles.going_on(key, life.uid)) is None:
            return
        pod, space = going_on[0], going_on[0]["metadata"]["namespace"]
        self._ready[space, "slurmctld"].discard(life.uid)
        self._daemons(space)
        hangs = fatal(self.mounts.files(life)) == HANGS
        self._write_status(pod, fallen(pod, self._stamp(), hangs=hangs))
        pause = self._pace.hangs if hangs else self._pace.back_off
        self._lifecycles.later(life, pause, lambda: self._rise(key, life.uid))

    def _rise(self, key: str, uid: str) -> None:
        """The container of a slurmctld that fell is started again."""
        if (going_on := self._lifecycles.going_on(key, uid)) is None:
            return
        pod, life = going_on
        space = pod["metadata"]["namespace"]
        if pod["spec"]["nodeName"] in self.silent or self.mounts.waits_for_jail(pod):
            self._lifecycles.later(life, self._pace.retry, lambda: self._rise(key, uid))
        elif fatal(self.mounts.files(life)) is not None:
            self._fall(key, life)
        else:
            self.mounts.reread(space)
            self._ready[space, "slurmctld"].add(uid)
            self._daemons(space)
            again = running(pod, self._stamp(), restarts=restarts_of(pod) + 1)
            self._write_status(pod, again)

    def taint(self, name: str, effect: str | None) -> None:
        """Taint a Kubernetes node, or remove the taint; `NoExecute` also evicts its pods.

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
        """The pods of a Kubernetes node."""
        return [pod for pod in self.server.objects(PODS) if pod["spec"].get("nodeName") == name]

    def _accounts(self, space: str) -> bool:
        """Whether slurmdbd answers, and its database."""
        return self.runs(space, "slurmdbd") and space not in self.slurmdbds.lost

    def runs(self, namespace: str, app: str) -> bool:
        """Whether a pod of slurmctld or slurmrestd runs."""
        return bool(self._ready[namespace, app])

    def runs_daemon(self, pod: Json) -> bool:
        """Whether the slurmctld, slurmrestd or slurmdbd of that very pod runs, in truth."""
        ready = self._ready.get((pod["metadata"]["namespace"], app_of(pod)), set())
        return pod["metadata"]["uid"] in ready

    def begun_with(self, pod: Json) -> Keys | None:
        """The keys that a pod which runs has read at its start."""
        life = self._lifecycles.get(key_of(pod))
        return life.keys if life is not None and life.started and not life.ending else None

    def runs_slurmd(self, pod: Json) -> bool:
        """Whether a slurmd runs in that very pod, in truth."""
        return self._slurm(pod).runs_slurmd(node_name(pod), pod["metadata"]["uid"])

    def _changed(self, change: Change) -> None:
        if change.resource != PODS:
            return
        key = "/".join(change.key)
        if change.new is None:
            life = self._lifecycles.pop(key, None)
            if life is not None:
                self._gone(change.last.obj, life)
            return
        pod = change.new.obj
        uid = cast("str", pod["metadata"]["uid"])
        life = self._lifecycles.get(key)
        if life is None or life.uid != uid:
            life = self._lifecycles[key] = PodLifecycle(uid)
            self._lifecycles.later(life, self._pace.bind, lambda: self._bind(key, uid))
        if pod["spec"].get("nodeName") and not life.bound:
            life.bound = True
            self._lifecycles.later(life, self._pace.start, lambda: self._start(key, uid))
        self.mounts.noted(key, pod, life)
        if pod["metadata"].get("deletionTimestamp") and not life.ending:
            life.ending = True
            self._end_soon(key, pod, life)

    def _bind(self, key: str, uid: str) -> None:
        pod = self._lifecycles.pod(key, uid)
        if pod is None or pod["metadata"].get("deletionTimestamp") or pod["spec"].get("nodeName"):
            return
        machines = [
            one["metadata"]["name"]
            for one in self.server.objects(NODES)
            if takes(one, pod) and one["metadata"]["name"] not in self.silent
        ]
        machines = machines if mountable(self.server, pod) else []
        if not machines:
            life = self._lifecycles[key]
            self._lifecycles.later(life, self._pace.retry, lambda: self._bind(key, uid))
            return
        machine = min(machines, key=lambda name: (len(self.on(name)), name))
        path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{key.partition('/')[2]}"
        self.server.ask("POST", f"{path}/binding", {"metadata": {}, "target": {"name": machine}})

    def _start(self, key: str, uid: str) -> None:
        if (going_on := self._lifecycles.going_on(key, uid)) is None:
            return
        pod, life = going_on
        if pod["spec"]["nodeName"] in self.silent:
            self._lifecycles.later(life, self._pace.retry, lambda: self._start(key, uid))
            return
        if any(one["image"] == MISSING for one in pod["spec"]["containers"]):
            self._write_status(pod, image_missing(pod))
            return
        app = app_of(pod)
        if self.mounts.waits_for_jail(pod):
            # Entry points begin once the jail is filled and has a configuration.
            self._lifecycles.later(life, self._pace.retry, lambda: self._start(key, uid))
            return
        life.started = True
        self.mounts.begin(pod, life)
        if app == "slurmd":
            self._slurm(pod).slurmd_starts(
                node_name(pod), uid, node_conf(pod), life.keys, address(pod)
            )
            self._lifecycles.later(life, self._pace.register, lambda: self._register(key, uid))
        elif app in DAEMONS:
            space = pod["metadata"]["namespace"]
            if app == "slurmctld":
                self.mounts.begin_slurmctld(key, pod, life)
                if fatal(self.mounts.files(life)) is not None:
                    self._fall(key, life)
                    return
            self._ready[space, app].add(uid)
            self._daemons(space)
        self._write_status(pod, running(pod, self._stamp()))
        if app == "slurmdbd" and pod["metadata"]["namespace"] in self.slurmdbds.lost:
            self._set_ready(pod, ready=False)

    def _register(self, key: str, uid: str) -> None:
        going_on = self._lifecycles.going_on(key, uid)
        if going_on is None or not self.runs_slurmd(going_on[0]):
            return
        pod, life = going_on
        slurm, name = self._slurm(pod), node_name(pod)
        if slurm.turned_away(name):
            # Its container starts again, with the files that are there by now.
            life.keys = keys_in(life.files)
            slurm.slurmd_starts(name, uid, node_conf(pod), life.keys, address(pod))
        # Also later: slurmctld asks the nodes that it knows now and then.
        again = (60.0, 90.0) if slurm.registers(name) else self._pace.retry
        self._lifecycles.later(life, again, lambda: self._register(key, uid))

    def _end_soon(self, key: str, pod: Json, life: PodLifecycle) -> None:
        machine = pod["spec"].get("nodeName")
        if machine in self.silent:
            self._lifecycles.later(life, self._pace.retry, lambda: self._end_soon(key, pod, life))
            return
        if self.runs_slurmd(pod) and has_hook(pod):
            self._slurm(pod).pre_stop(node_name(pod), terminating_reason(pod))
        self._lifecycles.later(life, self._pace.end, lambda: self._end(key, life.uid))

    def _end(self, key: str, uid: str) -> None:
        pod = self._lifecycles.pod(key, uid)
        if pod is None:
            return
        self._gone(pod, self._lifecycles[key])
        path = f"/api/v1/namespaces/{key.partition('/')[0]}/pods/{key.partition('/')[2]}"
        body = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
        self.server.ask("DELETE", path, body, user="kubelet")

    def _gone(self, pod: Json, life: PodLifecycle) -> None:
        for timer in life.timers:
            timer.cancel()
        slurm = self._slurm(pod)
        slurm.slurmd_ends(node_name(pod), life.uid)
        if app_of(pod) == "slurmd" and not has_hook(pod):
            self._loop.call_later(self._pace.silent, slurm.give_up_silent_nodes)
        if app_of(pod) in DAEMONS:
            space = pod["metadata"]["namespace"]
            self._ready[space, app_of(pod)].discard(life.uid)
            self._daemons(space)

    def _daemons(self, space: str) -> None:
        slurm = self.slurms[space]
        ctld = slurm.external or bool(self._ready[space, "slurmctld"])
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

    def _report_ready(self, kubernetes_node: str, status: str, reason: str) -> None:
        ready = {"type": "Ready", "status": status, "reason": reason}
        path = f"/api/v1/nodes/{kubernetes_node}/status"
        body = {"status": {"conditions": [ready]}}
        self.server.ask("PATCH", path, body, kind="strategic", user="kubelet")

    def _set_ready(self, pod: Json, *, ready: bool) -> None:
        lost = self.slurmdbds.lost if app_of(pod) == "slurmdbd" else ()
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
