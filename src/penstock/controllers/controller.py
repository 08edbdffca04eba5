"""Controller: keys, configuration and slurmctld of one cluster."""

from __future__ import annotations

import msgspec

from penstock.api.conditions import Check, find
from penstock.api.meta import KubeObject
from penstock.api.slinky import names, wellknown
from penstock.api.slinky.controller import CONTROLLERS, Controller
from penstock.api.slinky.shared import Status
from penstock.controllers.anew import Anew
from penstock.controllers.loop import Loop, Tools
from penstock.controllers.report import Events
from penstock.decide.workload import refusal, stuck, workload
from penstock.render import controller as render
from penstock.render.canonical import digest
from penstock.render.config import config_hash, config_maps_of
from penstock.render.context import Cluster
from penstock.render.keys import generate, key_secret
from penstock.render.slurm_conf import slurm_conf

CONFIG_APPLIED = "ConfigApplied"


class ControllerLoop(Loop[Controller]):
    """Brings Controllers about."""

    def __init__(self, tools: Tools, events: Events) -> None:
        super().__init__(tools, CONTROLLERS, tools.world.controllers, events)
        self.anew = Anew(tools.client)

    async def bring(self, obj: Controller) -> list[Check]:
        """Make keys, Services, configuration and slurmctld; hand over what changed."""
        await self._keys(obj)
        cluster = self.world.cluster(obj)
        waiting = self._missing(obj, cluster)
        if waiting:
            return waiting
        await self.objects.ensure(obj, self.events, render.objects(cluster))
        await self._deliver(obj, config_hash(cluster))
        return self._checks(obj, cluster)

    def status(self, obj: Controller) -> Status:
        """The hash of the wanted configuration."""
        return msgspec.structs.replace(obj.status, config_hash=config_hash(self.world.cluster(obj)))

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
        found += [
            Check(
                False,
                "ConfigMapNotFound",
                f"There is no ConfigMap {name} in namespace {space}, which the Controller names. "
                "Create it or remove the reference",
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

    async def _deliver(self, controller: Controller, wanted: str) -> None:
        """Change an annotation of the pods, on which the kubelet refreshes their files at once.

        Without it the kubelet takes a minute or more to look. A slurmctld that ended on the
        former configuration is not kept waiting for the kubelet's back-off: its pod is made anew,
        unless that would take the state with it.
        """
        workload = f"{controller.metadata.namespace}/{names.controller_workload(controller)}"
        found = self.world.stateful_sets.get(workload)
        revision = found.status.update_revision if found is not None else None
        for pod in self.world.slurmctld_pods(controller):
            meta = pod.metadata
            if not meta.deleting and stuck(pod, "slurmctld", revision):
                note = f"{meta.name} could not start; it is made anew as it is declared now"
                await self.anew.make(controller, self.events, pod, note)
                continue
            if not _has_state_in_pod(controller) and await self.anew.after_change(
                controller, self.events, pod, "slurmctld", wanted
            ):
                continue
            if (
                not await self.anew.mark(pod, wanted)
                or wellknown.CONFIG_HASH not in meta.annotations
            ):
                continue
            self.events.normal(
                controller,
                "ConfigDelivered",
                f"Configuration {wanted[:12]} was handed to {meta.name} for a reconfigure; "
                "slurmctld is not restarted",
                "Configure",
            )

    def _checks(self, controller: Controller, cluster: Cluster) -> list[Check]:
        pods = self.world.slurmctld_pods(controller)
        checks = [workload("slurmctld", controller.spec.replicas, pods)]
        words = refusal(pods, digest(slurm_conf(cluster)))
        if words is not None:
            checks.append(
                Check(
                    False,
                    "ConfigRefused",
                    f"slurmctld refuses the configuration and keeps the one it has: {words}",
                    type=CONFIG_APPLIED,
                )
            )
        elif checks[0].ok:
            checks.append(Check(True, "ConfigDelivered", type=CONFIG_APPLIED))
        return checks


def _has_state_in_pod(controller: Controller) -> bool:
    """Whether slurmctld has worked and keeps its state, jobs included, where its pod ends with it.

    The condition ConfigApplied is there from the first time that slurmctld worked.
    """
    worked = find(controller.status.conditions, CONFIG_APPLIED) is not None
    return worked and not controller.spec.persistent


def pod_to_controller(pod: KubeObject) -> list[str]:
    """Key of the Controller of a slurmctld pod."""
    labels = pod.metadata.labels
    if labels.get(wellknown.APP_NAME) != "slurmctld":
        return []
    return [f"{pod.metadata.namespace}/{labels.get(wellknown.APP_INSTANCE, '')}"]
