"""What is asked of the simulated slurmctld and of the real one: they give the same answers.

Each scenario notes the answers, without what differs from run to run (versions, times).
`tests/e2e/test_simulated_slurm.py` runs them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from penstock.slurm.rest import SlurmError, Slurmrestd
from penstock.slurm.rest.reservation import WantedReservation
from penstock.slurm.state import Node

Notes = list[Any]


def idle(node: Node) -> bool:
    """Whether it may have a job."""
    return node.state <= {"IDLE", "DYNAMIC_NORM"}


@dataclass
class Slurm:
    """A Slurm with one idle node, called `node`, and how to start and end a job there.

    `settle` waits until the node reads as `wanted`: slurmctld pings a node that was resumed
    before it shows it as it was.
    """

    rest: Slurmrestd
    node: str
    start: Callable[[], Awaitable[int]]
    cancel: Callable[[int], Awaitable[None]]
    settle: Callable[[Callable[[Node], bool]], Awaitable[None]]

    async def told(self, call: Awaitable[Any]) -> str:
        try:
            await call
        except SlurmError as error:
            return type(error).__name__
        return "done"

    async def seen(self) -> Notes:
        """The node's state and reason, but for what passes by itself.

        Not its comment: the operator keeps that.
        """
        node = await self.rest.node(self.node)
        passing = {"DYNAMIC_NORM", "NOT_RESPONDING"}
        return [sorted(node.state - passing), node.reason]


async def drains(slurm: Slurm) -> Notes:
    """Drain, reword, undrain and resume: what each does to state and reason."""
    notes: Notes = [await slurm.seen()]
    for state, reason in (
        ("DRAIN", "bad disk"),
        ("DRAIN", "worse disk"),
        ("UNDRAIN", None),
        ("DRAIN", "again"),
        ("RESUME", None),
        ("DOWN", "gone"),
        ("UNDRAIN", None),
        ("RESUME", None),
    ):
        change = slurm.rest.update_node(slurm.node, state=[state], reason=reason)
        notes.append(await slurm.told(change))
        notes.append(await slurm.seen())
    await slurm.settle(idle)
    return notes


async def jobs(slurm: Slurm) -> Notes:
    """A job makes its node busy; a drain lets it run, and the record stays while it does."""
    job = await slurm.start()
    notes: Notes = [await slurm.seen()]
    notes += [await slurm.told(slurm.rest.update_node(slurm.node, state=["DRAIN"], reason="r"))]
    notes += [await slurm.seen(), await slurm.told(slurm.rest.delete_node(slurm.node))]
    listed = await slurm.rest.jobs()
    assert listed is not None
    notes.append([sorted(one.state) for one in listed.items if one.id == job])
    await slurm.cancel(job)
    await slurm.settle(lambda node: not node.busy)
    notes += [
        await slurm.seen(),
        await slurm.told(slurm.rest.update_node(slurm.node, state=["RESUME"])),
    ]
    await slurm.settle(idle)
    return notes


async def unknown(slurm: Slurm) -> Notes:
    """Names that slurmctld does not know, and states that it does not take."""
    return [
        await slurm.told(slurm.rest.node("nobody")),
        await slurm.told(slurm.rest.update_node("nobody", state=["DRAIN"], reason="r")),
        await slurm.told(slurm.rest.delete_node("nobody")),
        await slurm.told(slurm.rest.cancel(999_999)),
        await slurm.told(slurm.rest.partition("nobody")),
    ]


async def changes(slurm: Slurm) -> Notes:
    """Asked for changes since an answer, Slurm answers that there are none, or sends them."""
    nodes, jobs = await slurm.rest.nodes(), await slurm.rest.jobs()
    assert nodes is not None
    assert jobs is not None
    # A change within the second of an answer is sent again: ask from two seconds later.
    since = nodes.last_update + 2
    await asyncio.sleep(2.5)
    notes: Notes = [
        (await slurm.rest.nodes(since)) is None,
        (await slurm.rest.jobs(jobs.last_update + 2)) is None,
    ]
    await slurm.rest.update_node(slurm.node, comment="changed")
    told = await slurm.rest.nodes(since)
    notes.append(told is not None and slurm.node in {one.name for one in told.items})
    return notes


async def reconfigures(slurm: Slurm) -> Notes:
    """A reconfigure changes nothing about a node that somebody drained."""
    await slurm.rest.update_node(slurm.node, state=["DRAIN"], reason="bad disk")
    notes = [await slurm.told(slurm.rest.reconfigure()), await slurm.seen()]
    await slurm.rest.update_node(slurm.node, state=["UNDRAIN"])
    await slurm.settle(idle)
    return notes


async def reservations(slurm: Slurm) -> Notes:
    """Maintenance that begins at once, later, or again and again; and what is no time for it."""
    listed = await slurm.rest.nodes()
    assert listed is not None
    now = listed.last_update
    maint = ("MAINT", "IGNORE_JOBS")
    chosen = ("FLEX", "MAGNETIC", "NO_HOLD_JOBS_AFTER_END", "OVERLAP", "STATIC", "USER_DELETE")

    async def make(start: int, end: int, *flags: str) -> str:
        wanted = WantedReservation(
            "upkeep",
            start_time=now + start,
            end_time=now + end,
            nodes=(slurm.node,),
            users=("slurm",),
            flags=(*maint, *flags),
        )
        return await slurm.told(slurm.rest.update_reservation(wanted))

    async def shown() -> Notes:
        found = await slurm.rest.reservation("upkeep")
        start, end = found.start_time.value() or 0, found.end_time.value() or 0
        return [start - now, end - now, found.node_list, sorted(found.flags or ())]

    async def end() -> str:
        return await slurm.told(slurm.rest.delete_reservation("upkeep"))

    notes: Notes = [await make(-7200, 7200), await make(-7200, 7200, "DAILY")]
    notes += [await make(-7200, 7200, "DAILY", "FORCE_START"), await shown()]
    await slurm.settle(lambda node: "MAINTENANCE" in node.state)
    notes += [await slurm.seen(), await end()]
    await slurm.settle(lambda node: "MAINTENANCE" not in node.state)
    notes += [await make(7200, 14400, "WEEKEND", *chosen), await shown(), await slurm.seen()]
    notes.append(await end())
    job = await slurm.start()
    notes += [await make(0, 7200), (await shown())[1:]]
    await slurm.settle(lambda node: "MAINTENANCE" in node.state)
    notes.append(await slurm.seen())
    again = WantedReservation("upkeep", nodes=(slurm.node,), flags=maint)
    notes += [await slurm.told(slurm.rest.update_reservation(again)), (await shown())[1:]]
    await slurm.rest.update_node(slurm.node, state=["DRAIN"], reason="upkeep")
    notes += [await slurm.seen(), await end()]
    await slurm.cancel(job)
    await slurm.rest.update_node(slurm.node, state=["RESUME"])
    await slurm.settle(lambda node: "IDLE" in node.state and not node.drain)
    return [*notes, await end()]


SLURM = (drains, jobs, unknown, changes, reconfigures, reservations)
