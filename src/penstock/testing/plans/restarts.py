"""The promise that no daemon is restarted for nothing.

StatefulSets and Deployments make their pods anew when their template changes, so each change of a
template must have a cause. What may restart whom: docs/keys.md and docs/accounting.md.
"""

from __future__ import annotations

import asyncio

from penstock.api.meta import Json
from penstock.api.slinky.wellknown import APP_NAME
from penstock.testing.apiserver import ApiServer, Change
from penstock.testing.controllers import KINDS
from penstock.testing.plans.specs import JWT_SECRET, SLURM_SECRET

RING = f"{SLURM_SECRET}-ring"
JWT, KEY, RECORDS = "jwt.key", "slurm.key", "the Accounting"
CAUSES = {
    "slurmctld": (JWT,),
    "slurmdbd": (JWT, KEY, RECORDS),
    "slurmrestd": (RECORDS,),
    "login": (KEY,),
}
"""By app, what may give its pods another template; nothing but that changes in plans."""
_SECRETS = {JWT_SECRET: JWT, SLURM_SECRET: KEY, RING: KEY}


class RestartPromises:
    """Notes in `broken` when a workload gets another template, and nothing asks for it.

    `stale` are the seconds of the oldest view that anybody may act on: two processes of which one
    is late may write to and fro for so long.
    """

    def __init__(self, server: ApiServer, broken: list[str], stale: float) -> None:
        self._broken = broken
        self._stale = stale
        self._known: dict[tuple[str, ...], object] = {}
        self._caused: dict[tuple[str, str], float] = {}
        """By namespace and cause, when it last changed."""
        self._written: dict[str, float] = {}
        """By uid of a workload, when it last got another template."""
        server.store.listeners.append(self._changed)

    def _changed(self, change: Change) -> None:
        space, name = change.key
        obj = change.new.obj if change.new is not None else None
        match change.resource:
            case "/secrets" if name in _SECRETS and obj is not None:
                self._note(space, _SECRETS[name], name, obj.get("data"))
            case "slinky.slurm.net/accountings":
                self._note(space, RECORDS, name, obj is not None)
            case "slinky.slurm.net/controllers" if obj is not None:
                self._note(space, RECORDS, name, obj["spec"].get("accountingRef"))
            case resource if resource in KINDS and obj is not None and change.old is not None:
                self._template(change.old.obj, obj)
            case _:
                pass

    def _note(self, space: str, cause: str, name: str, value: object) -> None:
        key = (space, cause, name)
        if self._known.setdefault(key, value) != value:
            self._known[key] = value
            self._caused[space, cause] = _now()

    def _template(self, old: Json, new: Json) -> None:
        if old["spec"]["template"] == new["spec"]["template"]:
            return
        meta = new["metadata"]
        since = self._written.get(meta["uid"], float("-inf")) - self._stale
        self._written[meta["uid"]] = _now()
        app = meta.get("labels", {}).get(APP_NAME, "")
        causes = [(meta["namespace"], cause) for cause in CAUSES.get(app, ())]
        if not any(self._caused.get(one, float("-inf")) > since for one in causes):
            self._broken.append(f"the pods of {meta['name']} are made anew for nothing")


def _now() -> float:
    return asyncio.get_running_loop().time()
