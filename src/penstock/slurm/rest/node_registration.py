"""Has running slurmds register again with a slurmctld that has no record of them.

slurmctld asks a node to register at the address in its record. A stand-in record with the address
of a slurmd has it asked as well, and it answers with its own name, hardware, features and state, of
which slurmctld makes the record of a dynamic node: `slurmd -Z` sends all of it with each
registration. A record made in its name would have to guess its hardware instead. Seen with Slurm
26.05.5: it takes less than a second, slurmd goes on in the same process, and jobs run.

* A stand-in is made FUTURE, the only state that needs no power saving, then DOWN, then drained. So
  no job is ever started on it, also with ReturnToService=2, by which a DOWN node that answers
  returns to service.
* slurmctld asks all nodes that never registered when one is undrained. That one is a further
  stand-in, the bell, at an address at which nobody answers, so it stays DOWN.

The call that makes a record came with parser v0.0.44 (Slurm 25.11).
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass

from penstock.slurm.rest.client import Slurmrestd
from penstock.slurm.rest.errors import NotFoundError, SlurmError
from penstock.slurm.stand_in import BELL, PREFIX, REASON

NOBODY = "NodeAddr=127.0.0.1 Port=1"
"""A port of slurmctld's own host at which nothing listens: a connection is refused at once."""
AT_ONCE = 32
"""Stand-ins at one time: each takes room of MaxNodeCount."""
EXISTS = 2168
"""Slurm's error for a node that is in the table already. Source: slurm_errno.h of Slurm 26.05."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a slurmd listens, and the Slurm node it is."""

    node: str
    host: str
    port: int


async def register(
    client: Slurmrestd,
    slurmds: Sequence[Address],
    registered: Callable[[Collection[str]], Awaitable[bool]],
) -> None:
    """Have at most `AT_ONCE` slurmds register; stand-ins are gone afterwards, whatever happens.

    `registered` waits a while until slurmctld has these nodes. Raises SlurmError, an
    UnsupportedError when slurmrestd cannot make records.
    """
    names = [f"{PREFIX}{number}" for number in range(len(slurmds))]
    # Whoever cannot make one has none to remove; one whose making was cut off is found next time.
    await _make(client, names, _addresses(slurmds))
    try:
        await client.update_node(",".join(names), state=["DOWN"], reason=REASON)
        await client.update_node(",".join(names), state=["DRAIN"], reason=REASON)
        await _make(client, [BELL], NOBODY)
        await client.update_node(BELL, state=["DOWN"], reason=REASON)
        await client.update_node(BELL, state=["UNDRAIN"])
        await registered([one.node for one in slurmds])
    except BaseException:
        # An error of the removal must not take the place of this one, least of a cancellation.
        with contextlib.suppress(SlurmError):
            await remove(client, [*names, BELL])
        raise
    await remove(client, [*names, BELL])


async def remove(client: Slurmrestd, names: Sequence[str]) -> None:
    """Delete these stand-ins, as far as they are there. Raises SlurmError."""
    try:
        await client.delete_node(",".join(names))
    except SlurmError as error:
        if error.status == 0:
            raise
        # slurmctld deletes none when one of them is not there.
        for name in names:
            await _remove_one(client, name)


async def _make(client: Slurmrestd, names: Sequence[str], rest: str) -> None:
    conf = f"NodeName={','.join(names)} {rest} State=FUTURE"
    try:
        await client.new_node(conf)
    except SlurmError as error:
        if error.number != EXISTS:
            raise
        await remove(client, names)
        await client.new_node(conf)


async def _remove_one(client: Slurmrestd, name: str) -> None:
    try:
        await client.delete_node(name)
    except NotFoundError:
        return


def _addresses(slurmds: Sequence[Address]) -> str:
    hosts = ",".join(one.host for one in slurmds)
    return f"NodeAddr={hosts} Port={','.join(str(one.port) for one in slurmds)}"
