"""The PVCs that a SlurmCluster names, which its user creates.

The operator's cache has PVCs of its own alone. One that exists is read once, as its access modes
cannot change; one that does not is read again until it does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import CLAIMS
from penstock.api.nebius.slurmcluster import SLURM_CLUSTERS, SlurmCluster
from penstock.api.nebius.volume_rules import claim_names
from penstock.api.nebius.volumes import JAIL_SOURCE
from penstock.controllers.nebius.context import NebiusContext
from penstock.decide.jail import volumes
from penstock.decide.jail.volumes import NamedPvc
from penstock.kube import ForbiddenError, NotFoundError

ABSENT_S = 5.0
"""Seconds until an absent PVC is looked up again."""
_Modes = tuple[str, ...] | None


@dataclass(slots=True)
class _State:
    modes: Mapping[str, _Modes] = field(default_factory=dict[str, _Modes])
    """By the PVC's name; None for one that does not exist."""


class NamedPvcs:
    """Those of all SlurmClusters."""

    def __init__(self, context: NebiusContext) -> None:
        self._client = context.client
        self._states = context.states(SLURM_CLUSTERS, _State)

    async def findings(self, obj: SlurmCluster) -> list[Finding]:
        """What is wrong with the PVCs of a SlurmCluster. Raises KubeError."""
        state, space = self._states.of(obj), obj.metadata.namespace
        named = list(claim_names(obj.spec))
        modes: dict[str, _Modes] = {}
        for _, _, name in named:
            if name not in modes:
                known = state.modes.get(name)
                modes[name] = await self._modes(space, name) if known is None else known
        state.modes = modes
        every = [
            NamedPvc(path, name, space, obj.spec.has_jail and source == JAIL_SOURCE, modes[name])
            for source, path, name in named
        ]
        return list(volumes.findings(every, obj.status.conditions))

    def requeue_after(self, obj: SlurmCluster) -> float | None:
        """Soon while a PVC is absent."""
        return ABSENT_S if None in self._states.of(obj).modes.values() else None

    async def _modes(self, namespace: str, name: str) -> _Modes:
        try:
            found = await self._client.get(CLAIMS, namespace, name)
        except NotFoundError:
            return None
        except ForbiddenError:
            return ()
        return tuple(found.spec.get("accessModes") or ())
