"""Change the counts of generic resources of a node that runs."""

from __future__ import annotations

from penstock.decide.slurm_node.gres_change import drained, reason
from penstock.model.worker_marks import WorkerMarks
from penstock.slurm import gres
from penstock.slurm.rest.client import Slurmrestd
from penstock.slurm.rest.errors import SlurmError


async def change_gres(marks: WorkerMarks, client: Slurmrestd, name: str, wanted: str) -> bool:
    """Whether it is done; not while jobs use what changes. Raises SlurmError.

    The node takes no job meanwhile, and none until its slurmd has registered again, for the sake of
    which it is undrained for a moment: no other change makes slurmctld ask for a registration at
    once. `decide.drain.request` takes the drain back (`decide.slurm_node.gres_change`).
    """
    before = await client.node(name)
    if before.drain and not drained(marks, before):
        # Whoever drained it gives it back, which has slurmctld ask for a registration.
        return await _change_unused(client, name, wanted)
    if not before.drain:
        await client.update_node(name, state=["DRAIN"], reason=reason(marks))
    try:
        done = await _change_unused(client, name, wanted)
    except SlurmError as error:
        if error.is_rejection and not before.drain:
            await client.update_node(name, state=["UNDRAIN"])
        raise
    if done or not before.drain:
        await client.update_node(name, state=["UNDRAIN"])
    if done and not (await client.node(name)).drain:
        await client.update_node(name, state=["DRAIN"], reason=reason(marks))
    return done


async def _change_unused(client: Slurmrestd, name: str, wanted: str) -> bool:
    now = await client.node(name)
    if not gres.unused(now.gres_used, now.gres, wanted):
        return False
    await client.update_node(name, gres=wanted)
    return True
