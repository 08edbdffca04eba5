"""What slurmctld reads was tried before, and what it is led back to has been served with."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar

from penstock.api.kubernetes.meta import Json
from penstock.decide.config.conditions import APPLIED
from penstock.simulation.apiserver import ApiServer, Change
from penstock.simulation.kubelet.mounts import Mounts

CONTROLLERS = "slinky.slurm.net/controllers"
REAL, ALIAS = "slurm-config", "slurm-config-slurm"
EDITED = "nonsense"
"""What users write into the alias."""
shown_at: ContextVar[float] = ContextVar("controllers_shown_at", default=float("-inf"))
"""Up to when the sender of a request was shown Controllers, in loop seconds."""


class FilePromises:
    """Notes in `broken` files that the operator writes and must not.

    The truth is what `mounts` saw in slurmctld's pods. A slurmctld that has not worked yet, as far
    as the operator can know, gets what is declared. Clusters in `left` were made by another one.
    """

    def __init__(self, server: ApiServer, mounts: Mounts, broken: list[str]) -> None:
        self.left = False
        self._mounts = mounts
        self._broken = broken
        self._worked_at: dict[str, float] = {}
        """By namespace since when the Controller says that slurmctld has worked."""
        self._external: set[str] = set()
        server.store.listeners.append(self._changed)

    def _changed(self, change: Change) -> None:
        if change.new is None or self.left:
            return
        space, name = change.key
        if change.resource == CONTROLLERS:
            if change.new.obj["spec"].get("external"):
                # Its file is for slurmrestd, and no slurmctld of ours reads it.
                self._external.add(space)
            every = change.new.obj.get("status", {}).get("conditions", ())
            if any(one["type"] == APPLIED for one in every):
                self._worked_at.setdefault(space, asyncio.get_running_loop().time())
        elif space in self._external:
            return
        elif change.resource == "/configmaps" and name in (REAL, ALIAS):
            text = _conf(change.new.obj)
            if change.old is None or text != _conf(change.old.obj):
                self._look(space, name, text)

    def _look(self, space: str, name: str, text: str) -> None:
        served = self._mounts.served[space]
        if name == ALIAS and text not in served and text != EDITED:
            told = "became the last known good one, and slurmctld has not served with it"
            self._broken.append(f"{_short(text)} of {space} {told}")
        if name == ALIAS:
            return
        known = self._worked_at.get(space, float("inf")) < shown_at.get()
        if known and text not in served | self._mounts.taken[space]:
            self._broken.append(f"slurmctld of {space} was given {_short(text)} untried")


def _conf(obj: Json) -> str:
    data: dict[str, str] = obj.get("data") or {}
    return data.get("slurm.conf", "")


def _short(text: str) -> str:
    return "slurm.conf with " + " / ".join(text.splitlines()[-3:])
