"""Plans in which slurmctld restarts for its configuration, and in which nobody can be asked of it.

They are drawn by dice of their own, so a seed has the same steps as it would without.
"""

from __future__ import annotations

from functools import partial

from fault_plans.actions.users import configure
from fault_plans.plan import Family, Happening
from fault_plans.random_source import Dice
from fault_plans.world import GROUP, World
from penstock.simulation.slurm.reconfigure import ENDS, HANGS, REBINDS


def rebind(world: World, option: str, number: int, seconds: float) -> None:
    """A key changes that needs a restart of slurmctld; put right a while later.

    With an `option` slurmctld does not come up with it, which no trial start sees. A slurmctld that
    never worked has to be given what is declared, so it is only put right then.
    """
    controller = world.find("slinky.slurm.net/controllers", "slurm")
    if controller is not None and controller.get("status", {}).get("effectiveConfigHash"):
        line = f"{REBINDS},{option}" if option else REBINDS
        body = {"spec": {"extraConf": f"{line}\n# change {number}\n"}}
        world.ask("PATCH", f"{GROUP}/controllers/slurm", body)
    world.later(seconds, partial(configure, world, number))


def unheard(world: World, status: int, seconds: float, which: int) -> None:
    """The log of the reconfigure container cannot be read for a while."""
    space, found = world.space(which), world.machines.unreadable_logs
    found[space] = status

    def heard() -> None:
        found.pop(space, None)

    world.later(seconds, heard)


def unsure(world: World, seconds: float, which: int) -> None:
    """The machine is so slow that trial starts give no verdict, for a while."""
    space, found = world.space(which), world.machines.mounts.unsure
    found.add(space)
    world.later(seconds, lambda: found.discard(space))


def _which(dice: Dice) -> int:
    return dice.choice([0, 0, 1])


def _while(dice: Dice) -> float:
    return round(dice.expovariate(1 / 40), 1)


FAMILY = Family(
    "restarts for a configuration, and nobody who can be asked of it",
    dice=11,
    share=0.2,
    users={
        "rebind": Happening(
            4, lambda d: (d.choice(["", ENDS, ENDS, HANGS]), d.randint(1, 9), 2 * _while(d)), rebind
        ),
    },
    faults={
        "unheard": Happening(
            2, lambda d: (d.choice([403, 500]), 4 * _while(d), _which(d)), unheard
        ),
        "unsure": Happening(2, lambda d: (2 * _while(d), _which(d)), unsure),
    },
)
