"""NodeConfigurator: its DaemonSet, which comes and goes with the enabled container."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import DAEMON_SETS
from penstock.api.kubernetes.meta import Condition
from penstock.api.nebius.node_configurator import NODE_CONFIGURATORS, NodeConfigurator
from penstock.api.nebius.timed_condition import timed
from penstock.catalog.reasons.pods import PodReason
from penstock.controllers.nebius.adoption import ADOPTED, Adoption, AdoptionReport
from penstock.controllers.nebius.context import NebiusContext
from penstock.controllers.observed.watching import own_key, owner_of, spec_changed
from penstock.controllers.runtime.reconciler import Reconciler
from penstock.kube.runtime.declaration import Watch
from penstock.render.nebius import node_configurator as render

_ENDS_JOBS = "soperator's rebooter does not wait for jobs"


def spec_or_annotations_changed(old: NodeConfigurator | None, new: NodeConfigurator | None) -> bool:
    """Whether more than the status changed."""
    if old is None or new is None or spec_changed(old, new):
        return True
    return old.metadata.annotations != new.metadata.annotations


class NodeConfiguratorReconciler(Reconciler[NodeConfigurator]):
    """Brings the DaemonSets of NodeConfigurators to their spec."""

    name = "nodeconfigurator"
    resource = NODE_CONFIGURATORS
    watches: tuple[Watch[Any], ...] = (
        # An annotation has adopted pods replaced, and changes no generation.
        Watch(NODE_CONFIGURATORS, own_key, spec_or_annotations_changed),
        Watch(DAEMON_SETS, owner_of(NODE_CONFIGURATORS)),
    )

    def __init__(self, context: NebiusContext) -> None:
        super().__init__(context)
        self._caches = context.caches
        self._operator_image = context.settings.operator_image
        self._adoption = Adoption(context, self.events)

    async def reconcile_object(self, obj: NodeConfigurator) -> list[Finding]:
        """Apply the DaemonSet, or remove it."""
        manifest = render.daemon_set(obj, self._operator_image)
        if manifest is None:
            await self.objects.remove(obj, self.events, "DaemonSet", render.daemon_set_name(obj))
            return []
        report = AdoptionReport()
        found = await self._adoption.inspect(obj, manifest, render.declared(obj))
        report.note(found)
        await self.objects.apply(obj, self.events, [found.apply()])
        adopted = report.findings()
        if report.kept and obj.spec.rebooter.enabled:
            adopted = [replace(one, message=f"{one.message}. {_ENDS_JOBS}") for one in adopted]
        return [*adopted, *self._pods(obj)]

    def outdated(self, obj: NodeConfigurator) -> frozenset[str]:
        """The condition about adopted pods, which a removed DaemonSet has no more."""
        return frozenset() if render.active(obj.spec) is not None else frozenset({ADOPTED})

    def stored(self, obj: NodeConfigurator, found: tuple[Condition, ...]) -> tuple[Condition, ...]:
        """The conditions with the time of their last update, which this kind requires."""
        return timed(obj.status, found, self.client.clock.time())

    def _pods(self, obj: NodeConfigurator) -> list[Finding]:
        name = render.daemon_set_name(obj)
        live = self._caches.daemon_sets.get(f"{obj.metadata.namespace}/{name}")
        if live is None or live.status.observed_generation is None:
            return [Finding(None, PodReason.NOT_READY, f"DaemonSet {name} has no pods yet")]
        wanted, ready = live.status.desired_number_scheduled or 0, live.status.number_ready or 0
        if ready < wanted:
            words = f"{ready} of {wanted} pods of DaemonSet {name} are ready"
            return [Finding(None, PodReason.NOT_READY, words)]
        return []
