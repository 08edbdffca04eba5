"""ActiveChecks of SlurmClusters that fail on some nodes, pass later, and are deleted at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from fault_plans.api_names import CLUSTER
from fault_plans.plan import LARGEST, Family, Happening
from fault_plans.random_source import Dice
from penstock.api.cluster.marks import MAX_DRAINED
from penstock.api.kubernetes.meta import Json
from penstock.api.nebius.active_check import ACTIVE_CHECKS
from penstock.decide.check.reaction import check_of
from penstock.simulation.slurm.slurmctld import UNFINISHED, SimulatedJob, SimulatedSlurmctld

if TYPE_CHECKING:
    from fault_plans.nebius_world import NebiusWorld

CHECKS = ("gpu-checks", "net-checks")
_GROUP = ACTIVE_CHECKS.group
_RESOURCE = f"{_GROUP}/{ACTIVE_CHECKS.plural}"
_CRON_JOBS = "batch/cronjobs"
_ENDLESS_S = 10**8
_CURES = 240


def _path(space: str) -> str:
    return f"/apis/{_GROUP}/v1alpha1/namespaces/{space}/{ACTIVE_CHECKS.plural}"


def check(
    world: NebiusWorld, number: int, bad: int, seconds: float, share: int, which: int
) -> None:
    """A check runs on each node that takes jobs, and on those that it drained; on `bad` it fails.

    `bad` has a bit for each node. `share` is declared once in a plan.
    """
    space, name = world.space(which), CHECKS[number]
    if not world.promises.check_shares:
        world.at_end.append(partial(end, world))
    _declare(world, space, name, world.promises.check_shares.setdefault(space, share))
    cron = world.find(_CRON_JOBS, name, space)
    slurm = world.slurms[space]
    if cron is None or not slurm.up:
        return
    jobs = [_job(slurm.ctld, name, node) for node in sorted(slurm.ctld.nodes)]
    found = [one for one in jobs if one is not None]
    if not found:
        return
    world.checks_run += 1
    run = f"{name}-run-{world.checks_run}"
    world.jobs.reports[run] = f"slurm-job-id={','.join(str(one.id) for one in found)}\n"
    _submit(world, space, cron, run)
    world.later(seconds, partial(_finish, slurm.ctld, found, bad))


def _declare(world: NebiusWorld, space: str, name: str, share: int) -> None:
    spec: Json = {
        "name": name,
        "slurmClusterRefName": CLUSTER,
        "checkType": "slurmJob",
        "schedule": "0 0 1 1 *",
        "suspend": False,
        "runAfterCreation": False,
        "slurmJobSpec": {"eachWorkerJobs": True, "sbatchScript": "#!/bin/bash\ntrue\n"},
        "failureReactions": {"drainSlurmNode": {"drainReasonPrefix": "[node_problem]"}},
    }
    world.ask(
        "POST", _path(space), {"kind": "ActiveCheck", "metadata": {"name": name}, "spec": spec}
    )
    _annotate(world, space, str(share))


def _annotate(world: NebiusWorld, space: str, share: str | None) -> None:
    path = f"/apis/{_GROUP}/v1/namespaces/{space}/slurmclusters/{CLUSTER}"
    world.ask("PATCH", path, {"metadata": {"annotations": {MAX_DRAINED: share}}})


def _job(ctld: SimulatedSlurmctld, name: str, node: str) -> SimulatedJob | None:
    """A job of the check on a node; on one that it drained in a reservation, as the image does."""
    record, reserved = ctld.nodes[node], f"activecheck.{name}.{node}"
    if "CLOUD" in record.flags or any(one.endswith(f".{node}") for one in ctld.reservations):
        return None
    if "DRAIN" in record.flags:
        if check_of(record.reason) != name or ctld.is_allocated(node):
            return None
        now = int(ctld.clock())
        body = {
            "name": reserved,
            "node_list": [node],
            "users": ["root"],
            "flags": ["MAINT", "IGNORE_JOBS"],
            "start_time": {"set": True, "number": now},
            "end_time": {"set": True, "number": now + _ENDLESS_S},
        }
        ctld.update_reservation(body)
        ctld.update_node(node, ["RESUME"], {}, user="root")
    return ctld.run(node, name=name)


def _submit(world: NebiusWorld, space: str, cron: Json, run: str) -> None:
    """`kubectl create job --from=cronjob/NAME`."""
    meta, template = cron["metadata"], cron["spec"]["jobTemplate"]
    owner = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
    }
    body = {
        "kind": "Job",
        "metadata": {**template["metadata"], "name": run, "ownerReferences": [owner]},
        "spec": template["spec"],
    }
    world.ask("POST", f"/apis/batch/v1/namespaces/{space}/jobs", body)


def _finish(ctld: SimulatedSlurmctld, jobs: list[SimulatedJob], bad: int) -> None:
    for at, job in enumerate(jobs):
        if job.id in ctld.jobs and job.state & UNFINISHED:
            ctld.finish(job, "FAILED" if bad >> at & 1 else "COMPLETED")


def end(world: NebiusWorld) -> None:
    """Users delete the checks and resume the nodes that these have left drained."""
    for space in world.promises.check_shares:
        _annotate(world, space, None)
        for name in CHECKS:
            world.ask("DELETE", f"{_path(space)}/{name}", {})
        world.background.append(asyncio.create_task(_cure(world, space)))


async def _cure(world: NebiusWorld, space: str) -> None:
    slurm = world.slurms[space]
    for _ in range(_CURES):
        await asyncio.sleep(2.0)
        if any(world.find(_RESOURCE, name, space) for name in CHECKS):
            continue
        for name in _drained(slurm.ctld):
            slurm.resumed_by_hand(name)


def _drained(ctld: SimulatedSlurmctld) -> list[str]:
    return [
        name for name, one in ctld.nodes.items() if "DRAIN" in one.flags and check_of(one.reason)
    ]


def missing(world: NebiusWorld) -> Iterator[str]:
    """What is left of checks at the end."""
    for space in world.promises.check_shares:
        ctld = world.slurms[space].ctld
        for name in CHECKS:
            if world.find(_RESOURCE, name, space) is not None:
                yield f"ActiveCheck {name} of {space} is not gone"
        for name in _drained(ctld):
            yield f"{name} of {space} is drained by a check"
        for name in ctld.reservations:
            if name.startswith("activecheck."):
                yield f"reservation {name} of {space} is left"


def _draw(dice: Dice) -> tuple[int, int, float, int, int]:
    return (
        dice.choice([0, 0, 1]),
        dice.choice([0, (1 << LARGEST) - 1, dice.randrange(1 << LARGEST)]),
        round(dice.expovariate(1 / 10), 1),
        dice.choice([1, 1, 2]),
        dice.choice([0, 0, 1]),
    )


FAMILY = Family(
    "checks that drain nodes", dice=41, share=0.35, users={"check": Happening(3, _draw, check)}
)
