"""Controller: keys, configuration and slurmctld of one cluster."""

from __future__ import annotations

import msgspec

from penstock.api.conditions import Check, find
from penstock.api.core import Pod
from penstock.api.meta import KubeObject
from penstock.api.slinky import names, wellknown
from penstock.api.slinky.controller import CONTROLLERS, Controller
from penstock.api.slinky.shared import Status
from penstock.controllers.anew import Anew
from penstock.controllers.config import Configuration
from penstock.controllers.loop import Loop, Tools
from penstock.controllers.partition_changes import PartitionChanges
from penstock.controllers.partition_drift import PartitionDrift
from penstock.controllers.report import Events
from penstock.controllers.triggers import Triggers
from penstock.controllers.world import World
from penstock.decide import accounting, config_checks
from penstock.decide.config_checks import APPLIED
from penstock.decide.config_transaction import ConfigView, Decision, Stage
from penstock.decide.config_triggers import Triggered, pending
from penstock.decide.drift import check as drift_check
from penstock.decide.drift import choice
from penstock.decide.neighbours import references
from penstock.decide.times import write
from penstock.decide.workload import stuck, workload
from penstock.render import controller as render
from penstock.render.config import Contents, config_hash, config_maps_of, declared, files
from penstock.render.context import Cluster
from penstock.render.keys import generate, key_secret

_REFUSED = frozenset({Stage.REFUSED, Stage.UNDONE})


class ControllerLoop(Loop[Controller]):
    """Brings Controllers about."""

    def __init__(
        self,
        tools: Tools,
        events: Events,
        partitions: PartitionChanges,
        drift: PartitionDrift,
    ) -> None:
        super().__init__(tools, CONTROLLERS, tools.world.controllers, events)
        self.partitions = partitions
        self.drift = drift
        self.anew = Anew(tools.client)
        self.configuration = Configuration(tools)
        partitions.reads = self.configuration.reads
        self.triggers = Triggers(tools)
        self._decided: dict[str, Decision] = {}
        self._refused: dict[str, str] = {}
        """What Slurm said of what is declared, while something else is on its way."""
        self._triggered: dict[str, Triggered] = {}

    async def bring(self, obj: Controller) -> list[Check]:
        """Make keys, Services, configuration and slurmctld; hand over what changed."""
        key = obj.metadata.key
        self._decided.pop(key, None)
        self._triggered.pop(key, None)
        await self._keys(obj)
        cluster = self.world.cluster(obj)
        first = accounting.first_waits(obj, cluster.accounting)
        waiting = self._missing(obj, cluster) or first
        if waiting:
            return waiting
        brought = await self.partitions.bring(obj, self.events)
        cluster = brought.cluster
        pods = self.world.slurmctld_pods(obj)
        runs = workload("slurmctld", obj.spec.replicas, pods)
        late = await self._late_slurmdbd(obj, cluster, pods) if not runs.ok else []
        if obj.spec.external:
            await self.objects.ensure(obj, self.events, render.objects(cluster))
            return [runs]
        asked = pending(obj.metadata.annotations, obj.status.triggers)
        view, decision = await self.configuration.look(
            obj,
            cluster,
            worked=_worked(obj),
            serves=bool(runs.ok),
            ask=asked,
            live=brought.live,
        )
        self.configuration.note(key, decision, view.wanted.hash, asked=asked)
        words = self.world.refused(obj)
        waits = cluster.controller is not obj or decision.stage is Stage.TRYING
        self._refused[key] = words if waits else ""
        self._decided[key] = decision
        if view.real is not None and view.alias is not None and view.real != view.alias:
            self.partitions.expect(key, view.real, view.alias)
        if decision.stage is Stage.EFFECTIVE or decision.stage in _REFUSED:
            # Before the alias says that slurmctld has it all.
            await self.partitions.prove(obj, cluster, self.events)
        contents = Contents(decision.real, decision.alias, declared(cluster).candidate)
        await self.objects.ensure(obj, self.events, render.objects(cluster, contents))
        await self._deliver(obj, view, decision)
        if asked and _worked(obj):
            self._triggered[key] = await self.triggers.look(obj, self.events, view)
        told = self._told(obj, view, decision)
        known = accounting.checks(obj, cluster.accounting, worked=_worked(obj))
        drifted = await self._drifted(obj, cluster)
        return [*late, runs, *known, *told, *self.partitions.checks(obj), *drifted]

    async def _late_slurmdbd(
        self, controller: Controller, cluster: Cluster, pods: tuple[Pod, ...]
    ) -> list[Check]:
        """What slurmctld waits for at its first start; when that is there it waits no longer."""
        found = cluster.accounting
        if found is None:
            return []
        pod = accounting.in_vain(found, pods, self.client.clock.time())
        if pod is not None and not _has_state_in_pod(controller):
            note = f"{pod.metadata.name} is made anew: slurmdbd, for which it waited, is there"
            await self.anew.make(controller, self.events, pod, note)
        return accounting.waits(found)

    async def _drifted(self, obj: Controller, cluster: Cluster) -> list[Check]:
        """What was changed in Slurm of partitions that are nobody else's."""
        chosen, wrong = choice(obj.metadata.annotations)
        words = await self.drift.settle(obj, cluster, chosen)
        return [*wrong, *drift_check(words, obj.status.conditions)]

    def _told(self, obj: Controller, view: ConfigView, decision: Decision) -> list[Check]:
        """How the configuration is doing; a refusal is told until something else is taken."""
        words = self._refused[obj.metadata.key]
        if not words:
            return config_checks.checks(decision, view.wanted.data)
        valid = find(obj.status.conditions, config_checks.VALID)
        tried = valid is not None and valid.status == "True"
        if decision.stage in _REFUSED:
            words += f"; and without the Controller's changed lines: {decision.words}"
        return config_checks.refused(words, files(self.world.declared(obj)), tried=tried)

    def again(self, obj: Controller) -> float | None:
        """Soon while an answer of the reconfigure container is waited for."""
        decision = self._decided.get(obj.metadata.key)
        triggered = self._triggered.get(obj.metadata.key)
        if triggered is not None and triggered.waits:
            return 0.5
        if decision is None or (decision.stage is Stage.STARTING and not _serves(self.world, obj)):
            return accounting.again(self.world.declared(obj).accounting)
        if decision.stage in _REFUSED and not self.world.refused(obj):
            # The status tells of it from now on: then the rest goes on without it.
            return 0.2
        return self.configuration.again(obj.metadata.key, decision.stage)

    def status(self, obj: Controller) -> Status:
        """The hashes of the wanted configuration and of that which slurmctld runs with."""
        old, decision = obj.status, self._decided.get(obj.metadata.key)
        wanted = config_hash(self.world.declared(obj))
        if decision is None:
            return msgspec.structs.replace(old, config_hash=wanted)
        triggered = self._triggered.get(obj.metadata.key)
        words = self._refused[obj.metadata.key]
        if decision.stage in _REFUSED:
            words = words or decision.words
        since = old.config_since
        if decision.effective != old.effective_config_hash:
            since = write(self.client.clock.time()) if decision.effective else ""
        return msgspec.structs.replace(
            old,
            config_hash=wanted,
            effective_config_hash=decision.effective,
            config_since=since,
            last_error=words,
            triggers=triggered.status if triggered is not None else old.triggers,
        )

    async def _keys(self, controller: Controller) -> None:
        """Generate the keys for which the user names no Secret."""
        spec, space = controller.spec, controller.metadata.namespace
        wanted: list[tuple[str, str]] = []
        if spec.slurm_key_ref is None:
            wanted.append((names.generated_slurm_key(controller), names.SLURM_KEY))
        if spec.effective_jwt_key_ref is None:
            wanted.append((names.generated_jwt_key(controller), names.JWT_KEY))
        labels = wellknown.labels("slurmctld", controller.metadata.name)
        for name, file in wanted:
            if self.world.secrets.get(f"{space}/{name}") is None:
                manifest = key_secret(controller, name, {file: generate()}, labels)
                await self.objects.create_secret(controller, self.events, manifest)

    def _missing(self, controller: Controller, cluster: Cluster) -> list[Check]:
        """What the cluster cannot start without; the pod waits for it rather than restart later."""
        space, found = controller.metadata.namespace, list[Check]()
        for path, given, ref in (
            ("slurmKeyRef", controller.spec.slurm_key_ref, names.slurm_key_ref(controller)),
            ("jwtKeyRef", controller.spec.effective_jwt_key_ref, names.jwt_key_ref(controller)),
        ):
            if self.world.secret_hash(space, ref):
                continue
            if given is None:
                found.append(Check(None, "CreatingKeys", f"Secret {ref.name} is being made"))
            else:
                found.append(
                    Check(
                        False,
                        "SecretNotFound",
                        f"spec.{path}: there is no Secret {ref.name} with a key {ref.key} in "
                        f"namespace {space}. Create it, or leave the reference out to have one "
                        "generated",
                    )
                )
        paths = {one.name: one.path for one in references(controller) if one.kind == "ConfigMap"}
        found += [
            Check(
                False,
                "ConfigMapNotFound",
                f"{paths[name]}: there is no ConfigMap {name} in namespace {space}. Create it or "
                "remove the reference",
            )
            for name in config_maps_of(cluster)
            if name not in cluster.config_maps
        ]
        jwks = controller.spec.jwks_key_ref
        if jwks and jwks.key not in self.world.config_data(controller).get(jwks.name, {}):
            found.append(
                Check(
                    False,
                    "ConfigMapNotFound",
                    f"spec.jwksKeyRef: there is no ConfigMap {jwks.name} with a key {jwks.key} in "
                    f"namespace {space}. Create it or remove the reference",
                )
            )
        return found

    async def _deliver(self, controller: Controller, view: ConfigView, decision: Decision) -> None:
        """Have slurmctld's pods look at their files, and restart slurmctld where nothing less does.

        A slurmctld that ended on the former configuration is not kept waiting for the kubelet's
        back-off: its pod is made anew, unless that would take the state with it.
        """
        workload = f"{controller.metadata.namespace}/{names.controller_workload(controller)}"
        found = self.world.stateful_sets.get(workload)
        revision = found.status.update_revision if found is not None else None
        handed = decision.marks.get(wellknown.CONFIG_HASH, "")
        for pod in self.world.slurmctld_pods(controller):
            meta = pod.metadata
            if not meta.deleting and stuck(pod, "slurmctld", revision):
                note = f"{meta.name} could not start; it is made anew as it is declared now"
                await self.anew.make(controller, self.events, pod, note)
                return
            if handed and not _has_state_in_pod(controller):
                anew = await self.anew.after_change(
                    controller, self.events, pod, "slurmctld", handed
                )
                if anew:
                    return
        if decision.restart:
            await self.configuration.restart(controller, self.events, decision)
        else:
            await self.configuration.mark(controller, self.events, view, decision)


def _worked(controller: Controller) -> bool:
    """Whether slurmctld has worked: the condition ConfigApplied is there from then on."""
    return find(controller.status.conditions, APPLIED) is not None


def _has_state_in_pod(controller: Controller) -> bool:
    """Whether slurmctld has worked and keeps its state, with all jobs, where its pod ends."""
    return _worked(controller) and not controller.spec.persistent


def _serves(world: World, controller: Controller) -> bool:
    pods = world.slurmctld_pods(controller)
    return bool(workload("slurmctld", controller.spec.replicas, pods).ok)


def pod_to_controller(pod: KubeObject) -> list[str]:
    """Key of the Controller of a slurmctld pod."""
    labels = pod.metadata.labels
    if labels.get(wellknown.APP_NAME) != "slurmctld":
        return []
    return [f"{pod.metadata.namespace}/{labels.get(wellknown.APP_INSTANCE, '')}"]
