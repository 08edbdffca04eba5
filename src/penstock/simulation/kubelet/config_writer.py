"""The process sconfigcontroller of simulated SlurmClusters: its part about their configuration.

It runs in the pods of its Deployment and renames files one by one, in the order of the real one's
decision (`decide.jail.configuration`). When its pod ends between two of them, the next one goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from penstock.api.cluster.labels import APP_INSTANCE
from penstock.api.kubernetes.meta import Json
from penstock.api.nebius import names
from penstock.decide.jail.configuration import MANIFEST_PATH, delivery
from penstock.simulation.apiserver import ApiServer, Change
from penstock.simulation.kubelet.jail import Jail
from penstock.simulation.kubelet.pod_lifecycle import PODS, RandomSource, app_of
from penstock.slurm.conf.includes import FOLDER, SLURM_CONF
from penstock.slurm.conf.manifest import MANIFEST

APP = "sconfigcontroller"
CONFIG_MAPS = "/configmaps"
_NOTICED_S = (0.05, 0.8)
_NOTICED_BY_SIDECAR_S = (0.1, 1.0)
_RENAME_S = (0.0, 0.05)
_FILLED_POLL_S = 0.5


class ConfigWriter:
    """Those of all clusters in `jails`, by namespace; there is one cluster in each.

    `delivered` is called with the namespace some time after files of its jail changed. Clusters in
    `paused` have one that does nothing.
    """

    def __init__(
        self,
        server: ApiServer,
        jails: Mapping[str, Jail],
        random_source: RandomSource,
        delivered: Callable[[str], None],
    ) -> None:
        self.paused: set[str] = set()
        self._server = server
        self._jails = jails
        self._random_source = random_source
        self._delivered = delivered
        self._loop = asyncio.get_running_loop()
        self._busy: set[str] = set()
        self._due: set[str] = set()
        server.store.listeners.append(self._changed)

    def _changed(self, change: Change) -> None:
        space = change.key[0]
        if space not in self._jails:
            return
        is_file = change.resource == CONFIG_MAPS and change.key[1].endswith(names.slurm_configs(""))
        is_own = change.resource == PODS and app_of(change.last.obj) == APP
        if is_file or is_own:
            self.schedule(space)

    def schedule(self, space: str) -> None:
        """Deliver soon what the ConfigMap has."""
        if space not in self._due:
            self._due.add(space)
            self._loop.call_later(self._random_source(*_NOTICED_S), self._begin, space)

    def _begin(self, space: str) -> None:
        self._due.discard(space)
        pod, jail = self._pod(space), self._jails[space]
        if space in self._busy or space in self.paused or pod is None:
            return
        if not jail.is_filled:
            self._due.add(space)
            self._loop.call_later(_FILLED_POLL_S, self._begin, space)
            return
        cluster = pod["metadata"]["labels"][APP_INSTANCE]
        found = self._server.find(CONFIG_MAPS, space, names.slurm_configs(cluster))
        data: dict[str, str] = (found.get("data") or {}) if found is not None else {}
        if SLURM_CONF not in data:
            return
        files = {name: text.encode() for name, text in data.items()}
        wanted = delivery(files, jail.files.get(MANIFEST, b"").decode())
        steps = [
            (_name(one.path), one.content)
            for one in wanted.files
            if jail.files.get(_name(one.path)) != one.content
        ]
        if not steps and jail.files.get(MANIFEST) == wanted.manifest.content:
            return
        first = wanted.announcement
        every: list[tuple[str, bytes | None]] = [
            *([(MANIFEST, first.content)] if first is not None else []),
            *steps,
            *((_name(path), None) for path in wanted.removed if _name(path) in jail.files),
            (_name(MANIFEST_PATH), wanted.manifest.content),
        ]
        self._busy.add(space)
        self._step(space, pod["metadata"]["uid"], every)

    def _step(self, space: str, uid: str, left: list[tuple[str, bytes | None]]) -> None:
        pod = self._pod(space)
        if pod is None or pod["metadata"]["uid"] != uid:
            self._busy.discard(space)
            self.schedule(space)
            return
        (name, content), *others = left
        if content is None:
            self._jails[space].remove(name)
        else:
            self._jails[space].put(name, content)
        if others:
            pause = self._random_source(*_RENAME_S)
            self._loop.call_later(pause, self._step, space, uid, others)
            return
        self._busy.discard(space)
        pause = self._random_source(*_NOTICED_BY_SIDECAR_S)
        self._loop.call_later(pause, self._delivered, space)
        # The ConfigMap may have changed meanwhile.
        self.schedule(space)

    def _pod(self, space: str) -> Json | None:
        """The one that runs."""
        for pod in self._server.objects(PODS, space):
            runs = pod.get("status", {}).get("phase") == "Running"
            if app_of(pod) == APP and runs and "deletionTimestamp" not in pod["metadata"]:
                return pod
        return None


def _name(path: str) -> str:
    return path.removeprefix(f"{FOLDER}/")
