"""Jobs that flow while a cluster is being broken, and what became of each.

Every job writes when and where each of its runs began and ended into a file of its own on a disk
that outlives the workers, so what happened is known without asking Slurm. They are submitted by
slurmrestd alone: nothing of Kubernetes has to work for it.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from e2e_kit.cluster import Cluster

SCRIPT = """#!/bin/sh
f=/shared/{name}
say() {{ echo "$1 ${{SLURM_RESTART_COUNT:-0}} $(hostname) $(date +%s.%N)" >> $f; }}
say begin
n=0
while [ $n -lt {seconds} ]; do sleep 1; n=$((n+1)); done
say end
"""
UNSAVED_S = 10.0
"""slurmctld saves its jobs up to five seconds after a change, when it is not frozen or starved.

Source: Slurm's source, slurmctld/state_save.c.
"""
FINAL = frozenset({"COMPLETED", "FAILED", "CANCELLED", "NODE_FAIL", "TIMEOUT", "BOOT_FAIL"})


@dataclass(frozen=True)
class Run:
    """One run of a job. Times are Unix seconds; `end` is None when it was cut."""

    restart: int
    node: str
    begin: float
    end: float | None


@dataclass(frozen=True)
class Job:
    """A job that was to be submitted; `number` is None when slurmrestd did not confirm it."""

    name: str
    number: int | None
    refused: bool
    """Whether Slurm rejected it, so that it must never run."""
    taken_at: float = 0.0
    """When Slurm's answer was there (Unix seconds)."""


@dataclass
class JobFlow:
    """Submits a job every few seconds until stopped."""

    cluster: Cluster
    random: random.Random
    longest: int = 12
    """Seconds that a job may take."""
    jobs: list[Job] = field(default_factory=list[Job])
    _stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Submit until `stop`."""
        while not self._stop.wait(self.random.uniform(1, 5)):
            self.jobs.append(self._submit(f"job-{len(self.jobs)}"))

    def stop(self) -> None:
        """Submit no more."""
        self._stop.set()

    def _submit(self, name: str) -> Job:
        seconds = self.random.randint(1, self.longest)
        job = {
            "name": name,
            "script": SCRIPT.format(name=name, seconds=seconds),
            "current_working_directory": "/tmp",
            "environment": ["PATH=/usr/bin:/bin"],
            "standard_output": "/dev/null",
            # Without it a job takes a node's memory, and so the node.
            "memory_per_node": {"set": True, "number": 100},
        }
        try:
            answer = self.cluster.rest("POST", "job/submit", {"job": job})
        except OSError:
            # Perhaps it was taken and only the answer was lost.
            return Job(name, None, refused=False)
        number = answer.get("job_id") or None
        # A 5xx may be a slurmctld that took the job and ended before it answered.
        refused = number is None and 200 <= answer["http"] < 500
        return Job(name, number, refused, time.time())


def runs(text: str) -> list[Run]:
    """The runs in a job's file."""
    begun: dict[int, tuple[str, float]] = {}
    ended: dict[int, float] = {}
    for line in text.splitlines():
        what, restart, node, when = line.split()
        if what == "begin":
            begun[int(restart)] = (node, float(when))
        else:
            ended[int(restart)] = float(when)
    return [Run(n, node, when, ended.get(n)) for n, (node, when) in sorted(begun.items())]


@dataclass(frozen=True)
class Account:
    """What became of all jobs."""

    counts: Counter[str]
    lost: tuple[str, ...]
    """Jobs that were taken and did not run to their end, and rejected ones that ran."""
    runs: tuple[tuple[str, Run], ...]


@dataclass(frozen=True)
class Known:
    """What Slurm knows under a job's number in the end."""

    name: str
    state: frozenset[str]


def account(
    jobs: list[Job],
    texts: Mapping[str, str],
    known: Mapping[int, Known],
    kills: Sequence[float] = (),
) -> Account:
    """Settle every job by its file (`texts` by name) and Slurm's word (`known` by number).

    `kills` are the times at which slurmctld was killed (Unix seconds): what it had taken just
    before it has forgotten, and its number is another job's.
    """
    counts: Counter[str] = Counter()
    lost: list[str] = []
    every: list[tuple[str, Run]] = []
    for job in jobs:
        found = runs(texts.get(job.name, ""))
        every += ((job.name, run) for run in found)
        record = known.get(job.number or 0)
        state = record.state if record is not None and record.name == job.name else set[str]()
        forgotten = job.number is not None and (record is None or record.name != job.name)
        unsaved = any(0 <= when - job.taken_at < UNSAVED_S for when in kills)
        whole = bool(found) and found[-1].end is not None
        if job.refused:
            counts["refused"] += 1
            if found:
                lost.append(f"{job.name} was refused and ran")
        elif job.number is None and not found:
            counts["unconfirmed, never ran"] += 1
        elif whole and (job.number is None or "COMPLETED" in state):
            counts["completed" if len(found) == 1 else "completed after Slurm's requeue"] += 1
        elif forgotten and unsaved:
            counts["taken by a slurmctld that was killed before it saved it"] += 1
        else:
            lost.append(f"{job.name} ({job.number}) is {sorted(state)}, runs {found}")
    return Account(counts, tuple(lost), tuple(every))
