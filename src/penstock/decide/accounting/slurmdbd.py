"""Log of slurmdbd's container: the active slurmdbd.conf and the state of the database."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import Pod
from penstock.base import times
from penstock.catalog.condition_type import ConditionType
from penstock.catalog.reasons.accounting import AccountingReason
from penstock.decide.observed.pod_failure import CRASH_LOOP, termination_message

MARK = "penstock: "
REACHABLE = ConditionType.DATABASE_REACHABLE
IN_VAIN = "slurmdbd must be up at slurmctld start time"
"""Last words of a slurmctld that was stopped while it waited for slurmdbd at its start."""
PAUSE_S = 30.0

_DATABASE = re.compile(
    r"(?:\[[^]]*\] |slurmdbd: )*error: (mysql_real_connect failed: .*|mysql_query failed: .*)"
)
_REFUSALS = re.compile(r"mysql_real_connect failed: (1044|1045|1049|1130|1698) ")
"""Access denied, no such database, host not allowed: errors that waiting does not end."""
_LETTERS = 400


@dataclass(frozen=True, slots=True)
class SlurmdbdReport:
    """State that the log of slurmdbd's container shows; a field without a line is empty."""

    effective: str = ""
    """Hash of the file that slurmdbd runs with."""
    rejected: str = ""
    """Hash of the file that it rejected."""
    words: str = ""
    """The reason, in slurmdbd's words."""
    database: str = ""
    """Last error of the connection to the database; empty while it works."""


def read(log: str) -> SlurmdbdReport:
    """Read a log; later lines replace earlier ones.

    Only a line feed ends a line: a text that slurmdbd quotes may have other separators.
    """
    effective = rejected = words = lost = reason = ""
    for line in log.split("\n"):
        if found := _DATABASE.match(line):
            reason = found[1].strip()
        if not line.startswith(MARK):
            continue
        what, _, rest = line.removeprefix(MARK).partition(" ")
        match what:
            case "effective":
                effective, rejected, words = rest.strip(), "", ""
            case "refused":
                rejected, _, words = rest.partition(": ")
            case "database" if rest.strip() == "ok":
                lost = reason = ""
            case "database":
                lost = rest.partition(": ")[2]
            case _:
                pass
    # The error of slurmdbd itself is more precise than that of the client in its container.
    return SlurmdbdReport(effective, rejected, words[:_LETTERS], (reason or lost)[:_LETTERS])


def database(report: SlurmdbdReport, where: str) -> Finding:
    """Return the condition of a slurmdbd that runs and is not ready; `where` is its database."""
    kept = "slurmctld keeps its records until then"
    if not report.database:
        message = f"slurmdbd starts and waits for its database {where}; {kept}"
        return Finding(None, AccountingReason.WAITING_FOR_DATABASE, message, type=REACHABLE)
    if _REFUSALS.search(report.database):
        message = f"Database {where} rejects slurmdbd: {report.database}; {kept}"
        return Finding(False, AccountingReason.DATABASE_REFUSES, message, type=REACHABLE)
    message = f"slurmdbd waits for its database {where}: {report.database}; {kept}"
    return Finding(None, AccountingReason.DATABASE_UNREACHABLE, message, type=REACHABLE)


def waited_in_vain(pods: Sequence[Pod], *, serves: bool | None, now: float) -> Pod | None:
    """Return a pod of slurmctld that ended because slurmdbd was late, and may start now.

    The kubelet would wait up to five minutes before it starts the container again. `serves` is
    None for an external slurmdbd, whose state is unknown: then the pod may start `PAUSE_S` after
    its end. `now` is in Unix seconds.
    """
    if serves is False:
        return None
    for pod in pods:
        for container in pod.status.container_statuses or ():
            waiting = container.state.waiting
            if container.name != "slurmctld" or waiting is None or pod.metadata.deleting:
                continue
            if waiting.reason != CRASH_LOOP or IN_VAIN not in termination_message(container):
                continue
            ended = container.last_state.terminated
            at = times.parse(ended.finished_at) if ended is not None else None
            if serves or now - (at or 0.0) >= PAUSE_S:
                return pod
    return None
