"""A minute in which nobody changes anything: what an operator costs by being there."""

from __future__ import annotations

import asyncio
from typing import Protocol

from bench.fleet.operator import Operator
from bench.fleet.phase import Phase, Place, Used
from bench.fleet.slurm import FleetSlurm

SETTLED_S = 60.0


class CalledSlurm(Protocol):
    """A place whose calls to Slurm are listed."""

    @property
    def slurm(self) -> FleetSlurm:
        """Its slurmrestd."""
        ...


async def calm(place: CalledSlurm, operator: Operator) -> None:
    """Wait until it has done nothing for a while, in Slurm neither."""
    told = -1
    while told != (told := sum(not call.startswith("GET") for call in place.slurm.calls)):
        await operator.settled(idle=15.0)


async def minute(place: Place, operator: Operator) -> Used:
    """What it does in one."""
    phase = await Phase.begin(place, operator)
    await asyncio.sleep(SETTLED_S)
    return await phase.end()
