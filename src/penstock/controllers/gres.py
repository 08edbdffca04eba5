"""Change the counts of generic resources of a node that runs."""

from __future__ import annotations

from penstock.api.slinky import wellknown
from penstock.slurm import gres
from penstock.slurm.rest.client import Slurmrestd

REASON = f"{wellknown.REASON_PREFIX}GRES changes"
"""As every reason of ours: a drain that is left behind is taken back."""


async def change_gres(client: Slurmrestd, name: str, wanted: str) -> bool:
    """Whether it is done; not while jobs use what changes. Raises SlurmError.

    The node takes no job meanwhile: one that started just then would have slurmctld drain it when
    its slurmd registers next ("count changed and jobs are using them").
    """
    before = await client.node(name)
    if not before.drain:
        await client.update_node(name, state=["DRAIN"], reason=REASON)
    try:
        now = await client.node(name)
        if not gres.unused(now.gres_used, now.gres, wanted):
            return False
        await client.update_node(name, gres=wanted)
    finally:
        if not before.drain:
            await client.update_node(name, state=["UNDRAIN"])
    return True
