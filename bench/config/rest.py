"""When a cluster is at rest: nothing of the last change is under way, in Penstock or in Slurm."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass

from penstock.api.kubernetes.meta import Json
from penstock.local.errors import LocalError
from penstock.local.node import Node

TIMEOUT_S = 180.0
# Three seconds after its start, which each reconfigure is, slurmctld asks whether all nodes live.
_ASKED_S = 5
_MOMENT = re.compile(r"^(?:sdiag output at|Data since) .*\((\d+)\)$", re.MULTILINE)
_AT_WORK = re.compile(r"^Agent (?:queue size|count): +[1-9]", re.MULTILINE)


@dataclass(frozen=True)
class Cluster:
    """A cluster on a built-in node, by the container in which Slurm's commands are run."""

    node: Node
    namespace: str
    pod: tuple[str, ...]
    """kubectl's arguments that name the container."""
    owner: str = "controller/slurm"
    """KIND/NAME of the object that has the condition ConfigApplied."""

    def run(self, command: str) -> str:
        """What a command prints. Raises LocalError when it fails."""
        return self.node.kubectl("exec", *self.pod, "--", "sh", "-c", command)

    def until_idle(self, count: int) -> None:
        """Wait for so many idle nodes. Raises TimeoutError."""
        _until(lambda: self.run("sinfo -h -N -o %T").split().count("idle") >= count)

    def until_rest(self) -> None:
        """Wait until slurmctld and its nodes run the desired configuration. Raises TimeoutError.

        A slurmctld that reconfigures waits up to three seconds for its agents, the threads that
        talk to nodes, and the last reconfigure gave them work. A hundred slurmds that read their
        files again on one machine take longer than on as many machines.
        """
        _until(self._applied)
        _until(lambda: at_rest(self.run("sdiag")))

    def _applied(self) -> bool:
        arguments = (self.owner, "-n", self.namespace, "-o", "json")
        found: Json = json.loads(self.node.kubectl("get", *arguments))
        conditions = {one["type"]: one for one in found["status"].get("conditions", ())}
        applied = conditions.get("ConfigApplied", {"status": "Unknown"})
        now = found["metadata"]["generation"]
        return (applied["status"], applied.get("observedGeneration")) == ("True", now)


def at_rest(sdiag: str) -> bool:
    """Whether slurmctld is past its start and has no agent at work, by what sdiag(1) prints.

    In the first second after its start sdiag has data since 1970.
    """
    moments = [int(moment) for moment in _MOMENT.findall(sdiag)]
    if len(moments) != 2:
        return False
    asked, since = moments
    return since > 0 and asked - since > _ASKED_S and not _AT_WORK.search(sdiag)


def _until(there: Callable[[], bool]) -> None:
    end, said = time.monotonic() + TIMEOUT_S, ""
    while time.monotonic() < end:
        try:
            if there():
                return
        except LocalError as error:
            said = f": {error}"
        time.sleep(0.3)
    raise TimeoutError(f"not there in {TIMEOUT_S:g} s{said}")
