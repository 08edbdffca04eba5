"""What simulated kubelets show of ConfigMaps and Secrets in pods, and what daemons read of it.

A change is shown a while later: soon after a pod's annotations changed, else with the kubelet's
full pass. Source: Kubernetes documentation, "Mounted ConfigMaps are updated automatically".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from penstock.api.cluster.marks import KEYS
from penstock.api.kubernetes.meta import Json
from penstock.simulation.apiserver import Change
from penstock.simulation.kubelet.auth_log import has_keys
from penstock.simulation.kubelet.jail import Jail
from penstock.simulation.kubelet.pod_lifecycle import (
    Pace,
    PodLifecycle,
    PodLifecycles,
    app_of,
    node_name,
)
from penstock.simulation.slurm.auth_keys import read as keys_in
from penstock.simulation.slurm.cluster import SimulatedSlurm
from penstock.simulation.slurm.reconfigure import (
    ETC,
    SECRETS,
    Data,
    Files,
    Sidecar,
    data_of,
    mounted,
    release,
    slurm_conf,
)
from penstock.slurm.auth.key_files import SLURM_JWKS
from penstock.slurm.auth.key_rotation import SLURMCTLD, WORKERS

LOGIN_KEYS = "slurm-config"
"""The volume with a login's keys."""
_OF_JAIL = frozenset({"slurmctld", "slurmd", "slurmrestd", "login"})
"""Daemons that read their configuration in the jail of a SlurmCluster."""


class Mounts:
    """The files of all pods in `lives`.

    `silent` and `lazy` are Kubernetes nodes of `SimulatedNodes`. `register` makes a slurmd that
    read other keys register again, by its pod's key and uid.
    """

    def __init__(
        self,
        lifecycles: PodLifecycles,
        slurms: Mapping[str, SimulatedSlurm],
        pace: Pace,
        *,
        silent: set[str],
        lazy: set[str],
        register: Callable[[str, str], None],
    ) -> None:
        self._lifecycles = lifecycles
        self._slurms = slurms
        self._pace = pace
        self._silent = silent
        self._lazy = lazy
        self._register = register
        self.taken: defaultdict[str, set[str]] = defaultdict(set)
        """By namespace each slurm.conf that a trial start took."""
        self.served: defaultdict[str, set[str]] = defaultdict(set)
        """By namespace each slurm.conf that a slurmctld which worked has had."""
        self.unsure: set[str] = set()
        """Namespaces in which trial starts give no verdict."""
        self.jails: dict[str, Jail] = {}
        """By namespace the jail of its SlurmCluster."""
        lifecycles.server.store.listeners.append(self._rekeyed)

    def begin(self, pod: Json, life: PodLifecycle) -> None:
        """A container starts with the files that there are."""
        life.files = self._shown(pod)
        life.keys = keys_in(life.files)

    def begin_slurmctld(self, key: str, pod: Json, life: PodLifecycle) -> None:
        """A pod of slurmctld starts, and its reconfigure container with it."""
        space = pod["metadata"]["namespace"]
        life.notes, life.space = _notes(pod), space
        slurm = self._slurms[space]
        jail = self.jails.get(space)
        life.sidecar = Sidecar(
            mounted(pod, ETC, self._data(space)) if jail is None else jail.present(),
            taken=lambda files: self.taken[space].add(_conf(files)),
            has=lambda files: self._has(space, files),
            reads=lambda files: self._read(space, files),
            up=lambda: slurm.up,
            release=release(pod),
            spend=lambda end: self._lifecycles.later(life, self._pace.reconfigure, end),
        )
        self._mount(life.sidecar, pod)
        self._lifecycles.later(
            life, self._pace.try_, lambda: self._try_configuration(key, life.uid)
        )
        self._lifecycles.later(life, self._pace.resync, lambda: self._resync(key, life.uid))

    def noted(self, key: str, pod: Json, life: PodLifecycle) -> None:
        """A pod changed: other annotations have its files brought up to date at once."""
        notes = _notes(pod)
        if life.sidecar is not None and notes != life.notes:
            bring = self._refresh
        elif life.started and life.sidecar is None and notes.get(KEYS) != life.notes.get(KEYS):
            bring = self._show
        else:
            return
        life.notes = notes
        if pod["spec"]["nodeName"] not in self._lazy:
            self._lifecycles.later(life, self._pace.refresh, lambda: bring(key, life.uid))

    def crash_sidecar(self, namespace: str) -> None:
        """The reconfigure container of slurmctld's pod ends and starts again, with a new log."""
        for key, life in list(self._lifecycles.items()):
            if life.sidecar is not None and not life.ending and key.startswith(f"{namespace}/"):
                life.sidecar.restart()
                self._lifecycles.later(
                    life, self._pace.try_, lambda k=key, u=life.uid: self._try_configuration(k, u)
                )

    def files(self, life: PodLifecycle) -> Files:
        """What a slurmctld that starts in a pod now would read."""
        if life.sidecar is None:
            return {}
        jail = self.jails.get(life.space)
        return life.sidecar.etc if jail is None else jail.present()

    def waits_for_jail(self, pod: Json) -> bool:
        """Whether a daemon cannot start yet, as its jail has no configuration."""
        jail = self.jails.get(pod["metadata"]["namespace"])
        return jail is not None and app_of(pod) in _OF_JAIL and not jail.is_usable()

    def jail_changed(self, namespace: str) -> None:
        """Files of a jail changed: the reconfigure container sees it in the folder itself."""
        for key, life in list(self._lifecycles.items()):
            if life.sidecar is not None and not life.ending and key.startswith(f"{namespace}/"):
                self._refresh(key, life.uid)

    def reread(self, namespace: str) -> None:
        """Slurmctld reads the files that its pod has, and drops all changes made by requests."""
        for key, life in self._lifecycles.items():
            if life.sidecar is not None and key.startswith(f"{namespace}/"):
                self._read(namespace, self.files(life))

    def _data(self, space: str) -> Data:
        return data_of(self._lifecycles.server.find, space)

    def _shown(self, pod: Json) -> Files:
        """What a worker or a login finds at /etc/slurm."""
        data = self._data(pod["metadata"]["namespace"])
        return mounted(pod, LOGIN_KEYS, data) or mounted(pod, ETC, data)

    def _read(self, space: str, files: Files) -> None:
        """Slurmctld reads its files, and a running one makes its slurmds read theirs.

        What that does is only of interest where keys change.
        """
        slurm = self._slurms[space]
        before = slurm.keys
        self.served[space].add(_conf(files))
        slurm.reads(files)
        if not slurm.up or before is None or SLURM_JWKS not in files:
            return
        for key, life in list(self._lifecycles.items()):
            pod = self._lifecycles.pod(key, life.uid)
            if pod is None or not key.startswith(f"{space}/"):
                continue
            name = node_name(pod)
            if slurm.runs_slurmd(name, life.uid) and slurm.rereads(name, keys_in(life.files)):
                self._lifecycles.later(
                    life, self._pace.register, lambda k=key, u=life.uid: self._register(k, u)
                )

    def _has(self, space: str, files: Files) -> None:
        """Files came of which slurmctld has all without reading them."""
        self.served[space].add(_conf(files))
        self._slurms[space].ctld.has(_conf(files))

    def _rekeyed(self, change: Change) -> None:
        """A key ring changed: kubelets show it in their full pass, if not sooner."""
        found = change.new.obj if change.new is not None else {}
        if change.resource != SECRETS or WORKERS not in (found.get("data") or ()):
            return
        for key, life in self._lifecycles.items():
            if life.started and key.startswith(f"{change.key[0]}/"):
                self._lifecycles.later(
                    life, self._pace.resync, lambda k=key, u=life.uid: self._show(k, u)
                )
        before: Json = (change.old.obj.get("data") if change.old is not None else None) or {}
        if before.get(SLURMCTLD) != found["data"].get(SLURMCTLD):
            self._reread_keys(change.key[0])

    def _reread_keys(self, space: str) -> None:
        """Slurmctld of a SlurmCluster has its slurmds reconfigure for keys beside the files."""
        slurm = self._slurms[space]
        for key, life in list(self._lifecycles.items()):
            pod = self._lifecycles.pod(key, life.uid)
            if pod is None or not key.startswith(f"{space}/") or not has_keys(pod):
                continue
            if slurm.runs_slurmd(node_name(pod), life.uid):
                self._lifecycles.later(
                    life, self._pace.register, lambda p=pod, k=key, u=life.uid: self._again(p, k, u)
                )

    def _again(self, pod: Json, key: str, uid: str) -> None:
        """A new process of slurmd registers with the keys of its pod."""
        slurm = self._slurms[pod["metadata"]["namespace"]]
        if slurm.rereads(node_name(pod), None):
            self._register(key, uid)

    def _resync(self, key: str, uid: str) -> None:
        """The kubelet's full pass."""
        self._refresh(key, uid)
        if (life := self._lifecycles.get(key)) is not None and life.uid == uid:
            self._lifecycles.later(life, self._pace.resync, lambda: self._resync(key, uid))

    def _show(self, key: str, uid: str) -> None:
        """The kubelet brings the files of a worker or a login up to date."""
        going_on = self._lifecycles.going_on(key, uid)
        if going_on is None or going_on[1].sidecar is not None:
            return
        pod, life = going_on
        if pod["spec"]["nodeName"] in self._silent:
            self._lifecycles.later(life, self._pace.retry, lambda: self._show(key, uid))
            return
        life.files = self._shown(pod)

    def _refresh(self, key: str, uid: str) -> None:
        """The kubelet brings the files of a slurmctld pod up to date."""
        going_on = self._lifecycles.going_on(key, uid)
        if going_on is None or (sidecar := going_on[1].sidecar) is None:
            return
        pod, life = going_on
        if pod["spec"]["nodeName"] in self._silent:
            self._lifecycles.later(life, self._pace.retry, lambda: self._refresh(key, uid))
            return
        self._mount(sidecar, pod)
        self._lifecycles.later(life, self._pace.try_, lambda: self._try_configuration(key, uid))

    def _mount(self, sidecar: Sidecar, pod: Json) -> None:
        """Show a sidecar what is mounted now. A folder of a jail between two states is not read."""
        space = pod["metadata"]["namespace"]
        sidecar.mount(pod, self._data(space))
        if (jail := self.jails.get(space)) is not None and jail.is_complete():
            sidecar.etc = jail.present()

    def _try_configuration(self, key: str, uid: str) -> None:
        """The reconfigure container sees the files; it comes back to a slurmctld that is away.

        Each run sets one timer at most: two that each set two more would be without end.
        """
        going_on = self._lifecycles.going_on(key, uid)
        if going_on is None or (sidecar := going_on[1].sidecar) is None:
            return
        pod, life = going_on
        sidecar.unsure = pod["metadata"]["namespace"] in self.unsure
        sidecar.try_candidate()
        if not self._slurms[pod["metadata"]["namespace"]].up:
            self._lifecycles.later(
                life, self._pace.retry, lambda: self._try_configuration(key, uid)
            )
        elif sidecar.unsure:
            self._lifecycles.later(
                life, self._pace.again, lambda: self._try_configuration(key, uid)
            )


def _conf(files: Files) -> str:
    return slurm_conf(files)


def _notes(pod: Json) -> dict[str, Any]:
    return pod["metadata"].get("annotations") or {}
