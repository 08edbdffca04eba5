"""The promise that nobody is locked out by a change of slurm.key."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field

from fault_plans.promises.restarts import RING
from fault_plans.world import World
from penstock.api.cluster.labels import APP_NAME
from penstock.api.kubernetes.meta import Json
from penstock.simulation.slurm.auth_keys import Keys, understand
from penstock.slurm.auth.key_rotation import Phase, Ring, named, read

SLURMD_TIMEOUT_S = 300
"""After which slurmctld gives up a slurmd that it does not hear. Source: slurm.conf(5)."""
CLIENTS = ("login", "slurmdbd")
"""What reads its key once, when it starts."""


@dataclass
class Lockouts:
    """Who could not speak with slurmctld, and for how many seconds on end: `longest`, by name."""

    world: World
    longest: dict[str, int] = field(default_factory=dict[str, int])
    _now: dict[str, int] = field(default_factory=dict[str, int])

    async def run(self) -> None:
        """Look each second, until cancelled."""
        while True:
            apart = {name for space in self.world.spaces for name in self._apart(space)}
            self._now = {name: self._now.get(name, 0) + 1 for name in apart}
            for name, seconds in self._now.items():
                self.longest[name] = max(self.longest.get(name, 0), seconds)
            await asyncio.sleep(1.0)

    @property
    def broken(self) -> list[str]:
        """Who was so for as long as slurmctld waits."""
        return [
            f"{name} was locked out for {seconds} s"
            for name, seconds in sorted(self.longest.items())
            if seconds >= SLURMD_TIMEOUT_S
        ]

    def _apart(self, space: str) -> Generator[str]:
        slurm = self.world.slurms[space]
        if not slurm.up:
            return
        for name, slurmd in slurm.slurmds.items():
            if not slurm.trusts(slurmd):
                yield f"{space}/{name}"
        for pod in pods(self.world, *CLIENTS, space=space):
            if not understand(self.world.machines.begun_with(pod), slurm.keys):
                yield f"{space}/{pod['metadata']['name']}"


def pods(world: World, *apps: str, space: str) -> list[Json]:
    """The pods of these daemons."""
    every = world.server.objects("/pods", space)
    return [one for one in every if one["metadata"]["labels"].get(APP_NAME) in apps]


def ring(world: World, space: str) -> Ring | None:
    """The key ring of a cluster."""
    secret = world.find("/secrets", RING, space)
    return read(secret["data"]) if secret is not None else None


def missing(world: World, key: bytes, space: str, *, forgotten: bool = True) -> Iterator[str]:
    """Who does not sign with a key, or believes another one as well.

    Workers may believe the former one besides, if it need not be `forgotten`: where a kubelet is
    late for the first time in the last step, nothing tells what file a slurmd read again.
    """
    slurm, last = world.slurms[space], Keys(key, {named(key): key})
    found = ring(world, space)
    if found is None or (found.phase, found.current) != (Phase.SETTLED, key):
        yield f"slurm.key of {space} is still on its way: {found and found.phase}"
    if slurm.keys != last:
        yield f"slurmctld of {space} has another slurm.key"
    for name, slurmd in slurm.slurmds.items():
        keys = slurmd.keys
        if keys != last if forgotten else keys is None or keys.signs != key:
            yield f"{name} of {space} has another slurm.key"
    for pod in pods(world, *CLIENTS, space=space):
        keys = world.machines.begun_with(pod)
        if keys is None or keys.signs != key:
            yield f"{pod['metadata']['name']} of {space} has another slurm.key"
