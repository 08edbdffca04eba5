"""Plans in which partitions are removed and renamed under jobs, with every class of other key.

They are drawn by dice of their own, so a seed has the same steps as it would without.
"""

from __future__ import annotations

from functools import partial

from fault_plans.plan import Family, Happening
from fault_plans.random_source import Dice
from fault_plans.world import GROUP, World

NAMES = ("", "old", "new", "All")
KEYS = (
    "",
    "MaxArraySize=1002\n",
    "CommunicationParameters=NoCtldInAddrAny\n",
    "SchedulerTimeSlice=11\n",
)
"""Nothing but partitions, keys that a reconfigure takes over, and one that needs a restart."""


def rename(world: World, name: str, key: str, seconds: float) -> None:
    """One edit of extraConf: another partition over all nodes, and perhaps another key."""
    line = f"PartitionName={name} Nodes=ALL\n" if name else ""
    _conf(world, f"{line}{key}")
    world.later(seconds, partial(_conf, world, key))


def disable(world: World, seconds: float, which: int) -> None:
    """A NodeSet's own partition is not enabled for a while."""
    world.edit_nodeset(which, {"spec": {"partition": {"enabled": False}}})
    world.later(
        seconds, lambda: world.edit_nodeset(which, {"spec": {"partition": {"enabled": True}}})
    )


def _conf(world: World, text: str) -> None:
    world.ask("PATCH", f"{GROUP}/controllers/slurm", {"spec": {"extraConf": text}})


def _while(dice: Dice) -> float:
    return round(dice.expovariate(1 / 30), 1)


FAMILY = Family(
    "partitions that are removed and renamed under jobs",
    dice=9,
    share=0.3,
    users={
        "rename": Happening(3, lambda d: (d.choice(NAMES), d.choice(KEYS), _while(d)), rename),
        "disable": Happening(2, lambda d: (_while(d), d.choice([0, 0, 1, 2])), disable),
    },
)


def broken(world: World) -> list[str]:
    """Jobs that ended because a file did not have their partition."""
    return [
        f"job {job.id} of {space} was ended with its partition {job.partition}"
        for space, slurm in world.slurms.items()
        for job in slurm.ctld.defunct
    ]
