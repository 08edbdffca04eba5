"""RestApi: slurmrestd of one cluster."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.api.conditions import Check
from penstock.api.core import Pod
from penstock.api.slinky.restapi import RESTAPIS, RestApi
from penstock.controllers import hold
from penstock.controllers.anew import Anew
from penstock.controllers.loop import Loop, Tools
from penstock.controllers.member import waits_for_cluster
from penstock.controllers.report import Events
from penstock.decide import accounting, host_network
from penstock.decide.words import some
from penstock.decide.workload import crashed, workload
from penstock.render import restapi as render
from penstock.render.config import config_hash


class RestApiLoop(Loop[RestApi]):
    """Brings RestApis about."""

    def __init__(self, tools: Tools, events: Events) -> None:
        super().__init__(tools, RESTAPIS, tools.world.restapis, events)
        self._anew = Anew(tools.client)

    async def bring(self, obj: RestApi) -> list[Check]:
        """Make slurmrestd's Service and Deployment."""
        cluster = waits_for_cluster(self.world, obj)
        if isinstance(cluster, Check):
            return [cluster]
        if absent := self.world.absent_config_maps(cluster.controller):
            # slurm.conf is not handed over before they are there, so nobody may restart for it.
            return [Check(None, "ConfigMapNotFound", f"Waiting for ConfigMap {some(absent)}")]
        if waiting := accounting.first_waits(cluster.controller, cluster.accounting):
            # There is no slurm.conf before.
            return waiting
        conf = self.world.slurm_conf(cluster.controller)
        made = render.objects(cluster, obj, conf)
        found = hold.look(self.objects, obj, made, render.declared(cluster, obj, conf))
        await self.objects.ensure(obj, self.events, found.apply())
        pods = self.world.pods_labelled(obj.metadata.namespace, "slurmrestd", obj.metadata.name)
        await self._after_change(obj, pods, config_hash(cluster))
        listens = "slurmrestd listens on 6820"
        exposed = host_network.check(obj.spec.template.spec, listens, obj.status.conditions)
        return [workload("slurmrestd", obj.spec.replicas, pods), *found.checks, *exposed]

    async def _after_change(self, obj: RestApi, pods: Iterable[Pod], wanted: str) -> None:
        """Let a slurmrestd that ended on a bad slurm.conf start at once on the next one."""
        for pod in pods:
            anew = await self._anew.after_change(obj, self.events, pod, "slurmrestd", wanted)
            if not anew and crashed(pod, "slurmrestd"):
                await self._anew.mark(pod, wanted)
