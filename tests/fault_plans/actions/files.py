"""What slurmctld reads was tried before, and what it is led back to has been served with."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar

from fault_plans.api_names import OF_SLINKY, ApiNames
from penstock.api.kubernetes.meta import Json
from penstock.decide.config.conditions import APPLIED
from penstock.simulation.apiserver import ApiServer, Change
from penstock.simulation.kubelet.mounts import Mounts
from penstock.simulation.slurm.reconfigure import slurm_conf

EDITED = "nonsense"
"""What users write into the alias."""
shown_at: ContextVar[float] = ContextVar("controllers_shown_at", default=float("-inf"))
"""Up to when the sender of a request was shown what declares clusters, in loop seconds."""


class FilePromises:
    """Notes in `broken` files that the operator writes and must not.

    The truth is what `mounts` saw in slurmctld's pods. A slurmctld that has not worked yet, as far
    as the operator can know, gets what is declared. Clusters in `left` were made by another one.
    """

    def __init__(
        self, server: ApiServer, mounts: Mounts, broken: list[str], names: ApiNames = OF_SLINKY
    ) -> None:
        self.left = False
        self._names = names
        self._mounts = mounts
        self._broken = broken
        self._worked_at: dict[str, float] = {}
        """By namespace since when the Controller says that slurmctld has worked."""
        self._external: set[str] = set()
        self._uids: dict[str, str] = {}
        """Uid of each namespace's cluster."""
        server.store.listeners.append(self._changed)

    def _changed(self, change: Change) -> None:
        if change.new is None or self.left:
            return
        space, name = change.key
        if change.resource == self._names.clusters:
            if change.new.obj["spec"].get("external"):
                # Its file is for slurmrestd, and no slurmctld of ours reads it.
                self._external.add(space)
            uid = change.new.obj["metadata"]["uid"]
            if self._uids.setdefault(space, uid) != uid and self._names is not OF_SLINKY:
                # The slurmctld of another SlurmCluster of that name has not worked yet.
                self._uids[space] = uid
                self._worked_at.pop(space, None)
            every = change.new.obj.get("status", {}).get("conditions", ())
            if any(one["type"] == APPLIED for one in every):
                self._worked_at.setdefault(space, asyncio.get_running_loop().time())
        elif space in self._external:
            return
        elif change.resource == "/configmaps" and name in self._files:
            text = _conf(change.new.obj)
            if change.old is None or text != _conf(change.old.obj):
                self._look(space, name, text)

    @property
    def _files(self) -> tuple[str, str]:
        return self._names.startup, self._names.last_known_good

    def _look(self, space: str, name: str, text: str) -> None:
        served = self._mounts.served[space]
        alias = self._names.last_known_good
        if name == alias and text not in served and text != EDITED:
            told = "became the last known good one, and slurmctld has not served with it"
            self._broken.append(f"{_short(text)} of {space} {told}")
        if name == alias:
            return
        known = self._worked_at.get(space, float("inf")) < shown_at.get()
        if known and text not in served | self._mounts.taken[space]:
            self._broken.append(f"slurmctld of {space} was given {_short(text)} untried")


def _conf(obj: Json) -> str:
    return slurm_conf(obj.get("data") or {})


def _short(text: str) -> str:
    return "slurm.conf with " + " / ".join(text.splitlines()[-3:])
