"""Gives Slurm nodes the features of their Kubernetes nodes."""

from __future__ import annotations

from penstock.catalog.event import Event
from penstock.controllers.runtime.event_batch import EventBatch
from penstock.decide.action import SetNodeFeatures
from penstock.decide.slurm_node.features import merged
from penstock.slurm.rest.client import Slurmrestd
from penstock.slurm.rest.errors import SlurmError


async def give_features(client: Slurmrestd, action: SetNodeFeatures, batch: EventBatch) -> bool:
    """Whether it has them; a rejection of slurmctld is reported and not repeated.

    The other features are asked for in that moment: slurmctld takes whole lists only.
    """
    try:
        node = await client.node(action.node)
        await client.update_node(
            action.node,
            features=merged(node.features, action.features),
            active_features=merged(node.active_features, action.features),
        )
    except SlurmError as error:
        batch.warning(Event.SLURM_REFUSED, f"Node {action.node}: {error}", "UpdateNode")
        return error.is_rejection
    batch.normal(action.why.reason, action.why.message, "UpdateNode")
    return True
