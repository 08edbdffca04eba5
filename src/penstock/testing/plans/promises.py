"""What must hold in every state, checked against the truth of the simulated world."""

from __future__ import annotations

from collections.abc import Callable

from penstock.api.meta import Json
from penstock.decide.drain_reason import is_ours
from penstock.slurm.rest.http import Answer
from penstock.testing.apiserver import ApiServer
from penstock.testing.kubelet import PODS, Machines, node_name
from penstock.testing.plans.budget import Budget
from penstock.testing.plans.process import OPERATOR
from penstock.testing.slurm import Knowledge, SimulatedSlurm
from penstock.testing.slurm_answers import Asked

NODESETS = "slinky.slurm.net/nodesets"
CONTROLLERS = "slinky.slurm.net/controllers"
AT_ONCE_S = 0.5
"""How soon after a fresh answer a request must be sent that relies on it."""


class Promises:
    """Notes in `broken` what the operator did and must never do."""

    def __init__(self, server: ApiServer, slurm: SimulatedSlurm, machines: Machines) -> None:
        self.broken: list[str] = []
        self.budget = Budget(server, slurm, self.broken)
        self._server = server
        self._slurm = slurm
        self._machines = machines
        server.deleting.append(self._delete)

    def _delete(self, user: str, obj: Json, resource: str) -> None:
        """No pod is deleted whose slurmd runs and whose node has a job or may get one."""
        if user != OPERATOR or resource != PODS or "deletionTimestamp" in obj["metadata"]:
            return
        if not self._machines.runs_slurmd(obj) or self._abandoned(obj):
            return
        name, node = obj["metadata"]["name"], node_name(obj)
        jobs = [job.id for job in self._slurm.jobs_on(node)]
        if jobs:
            self.broken.append(f"pod {name} was deleted while jobs {jobs} ran on it")
        record = self._slurm.ctld.nodes.get(node)
        if record is None:
            self.broken.append(f"pod {name} was deleted though its slurmd runs unregistered")
        elif "DRAIN" not in record.flags:
            self.broken.append(f"pod {name} was deleted while its node took jobs")

    def heard(self, asked: Asked, answer: Callable[[Asked], Answer], knew: Knowledge) -> Answer:
        """Drains of others are never cleared or reworded, records in use never deleted.

        Slurm knows no preconditions: a drain that was set between a fresh answer and the request
        that follows it at once cannot be seen by anybody.
        """
        if asked.method == "GET":
            return answer(asked)
        ctld, name = self._slurm.ctld, asked.path.rpartition("/")[2]
        before = ctld.nodes.get(name)
        unseen = self._slurm.drained_at.get(name, 0.0) >= knew.listed_at
        blameless = unseen and knew.sent_at - knew.listed_at < AT_ONCE_S
        drained = before is not None and "DRAIN" in before.flags and not is_ours(before.reason)
        foreign = drained and not blameless
        reason = before.reason if before else ""
        in_use = name in self._slurm.slurmds and bool(self._slurm.jobs_on(name))
        usable = self.budget.usable(name)
        found = answer(asked)
        if usable and b"DRAIN" in asked.body and b"for update" in asked.body:
            self.budget.took(name)
        if drained and blameless:
            self._slurm.drains.pop(name, None)
        after = ctld.nodes.get(name)
        if after is None:
            self._slurm.drains.pop(name, None)
        if before is not None and after is None and in_use:
            self.broken.append(f"record {name} was deleted under a job")
        if foreign and after is not None:
            if "DRAIN" not in after.flags:
                self.broken.append(f"the drain of {name} ({reason!r}) was undone by {asked.body!r}")
            elif after.reason != reason:
                self.broken.append(f"the drain of {name} ({reason!r}) became {after.reason!r}")
        return found

    def _abandoned(self, pod: Json) -> bool:
        """Whether its NodeSet goes and its Controller is gone: nothing to ask, nothing to keep."""
        space = pod["metadata"]["namespace"]
        owners = {one["name"] for one in pod["metadata"].get("ownerReferences", ())}
        for name in owners:
            nodeset = self._server.find(NODESETS, space, name)
            if nodeset is None or "deletionTimestamp" not in nodeset["metadata"]:
                return False
            controller = nodeset["spec"]["controllerRef"]["name"]
            found = self._server.find(CONTROLLERS, space, controller)
            return found is None or "deletionTimestamp" in found["metadata"]
        return False
