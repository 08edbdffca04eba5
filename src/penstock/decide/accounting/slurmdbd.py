"""What the container of slurmdbd says: which file it runs with, and how its database is doing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import Pod
from penstock.base import times
from penstock.decide.observed.pod_failure import termination_message

MARK = "penstock: "
REACHABLE = "DatabaseReachable"
IN_VAIN = "slurmdbd must be up at slurmctld start time"
"""With these words a slurmctld ends that was stopped while it waited for slurmdbd at its start."""
PAUSE_S = 30.0

_DATABASE = re.compile(
    r"(?:\[[^]]*\] |slurmdbd: )*error: (mysql_real_connect failed: .*|mysql_query failed: .*)"
)
_REFUSALS = re.compile(r"mysql_real_connect failed: (1044|1045|1049|1130|1698) ")
"""Access denied, no such database, host not allowed: nothing comes of waiting."""
_LETTERS = 400


@dataclass(frozen=True, slots=True)
class Said:
    """What a log of slurmdbd tells; empty where it tells nothing."""

    effective: str = ""
    """Hash of the file that slurmdbd runs with."""
    refused: str = ""
    """Hash of the file that it does not take."""
    words: str = ""
    """Why not."""
    database: str = ""
    """Why its database does not answer, by the last that was heard."""


def read(log: str) -> Said:
    """The last word on each.

    Only a line feed ends a line: what slurmdbd repeats may have anything else in it.
    """
    effective = refused = words = lost = reason = ""
    for line in log.split("\n"):
        if found := _DATABASE.match(line):
            reason = found[1].strip()
        if not line.startswith(MARK):
            continue
        what, _, rest = line.removeprefix(MARK).partition(" ")
        match what:
            case "effective":
                effective, refused, words = rest.strip(), "", ""
            case "refused":
                refused, _, words = rest.partition(": ")
            case "database" if rest.strip() == "ok":
                lost = reason = ""
            case "database":
                lost = rest.partition(": ")[2]
            case _:
                pass
    # slurmdbd knows better than its client why the database does not answer.
    return Said(effective, refused, words[:_LETTERS], (reason or lost)[:_LETTERS])


def database(said: Said, where: str) -> Finding:
    """What is told of a slurmdbd that runs and is not ready; `where` is its database."""
    kept = "slurmctld keeps its records until then"
    if not said.database:
        told = f"slurmdbd is starting, and waits for its database {where}; {kept}"
        return Finding(None, "WaitingForDatabase", told, type=REACHABLE)
    if _REFUSALS.search(said.database):
        told = f"The database {where} refuses slurmdbd: {said.database}; {kept}"
        return Finding(False, "DatabaseRefuses", told, type=REACHABLE)
    told = f"slurmdbd waits for its database {where}: {said.database}; {kept}"
    return Finding(None, "DatabaseUnreachable", told, type=REACHABLE)


def waited_in_vain(pods: Sequence[Pod], *, serves: bool | None, now: float) -> Pod | None:
    """A pod of slurmctld that was ended because slurmdbd was late, and may start now.

    The kubelet would wait up to five minutes before it starts the container again. `serves` says
    whether slurmdbd is there; None when nobody knows, as of an outside one: then it is tried some
    time after it ended. `now` are Unix seconds.
    """
    if serves is False:
        return None
    for pod in pods:
        for container in pod.status.container_statuses or ():
            waiting = container.state.waiting
            if container.name != "slurmctld" or waiting is None or pod.metadata.deleting:
                continue
            if waiting.reason != "CrashLoopBackOff" or IN_VAIN not in termination_message(
                container
            ):
                continue
            ended = container.last_state.terminated
            at = times.parse(ended.finished_at) if ended is not None else None
            if serves or now - (at or 0.0) >= PAUSE_S:
                return pod
    return None
