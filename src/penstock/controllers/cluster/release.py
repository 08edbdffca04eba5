"""Which release of Slurm a slurmctld has, which one served last, and which may not start."""

from __future__ import annotations

from dataclasses import dataclass, replace

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import Pod
from penstock.api.kubernetes.meta import Json
from penstock.api.slinky import names
from penstock.api.slinky.controller import CONTROLLERS, Controller
from penstock.controllers.config.transaction import ConfigTransaction
from penstock.controllers.runtime.reconciler import Context
from penstock.controllers.runtime.slurm_connections import SlurmConnections
from penstock.decide.cluster import release
from penstock.render.slinky.cluster import release as of_release
from penstock.render.slinky.inputs import ClusterInputs
from penstock.slurm import versions
from penstock.slurm.versions import Version, of_image, of_parser


@dataclass(frozen=True, slots=True)
class Learned:
    """What slurmctld's image said of its version, and which version served last."""

    image: str = ""
    version: str = ""
    state: str = ""


@dataclass(slots=True)
class _State:
    learned: Learned | None = None


class Releases:
    """What is known of the releases of each Controller's slurmctld, by the Controller's key."""

    def __init__(
        self, context: Context, connections: SlurmConnections, configuration: ConfigTransaction
    ) -> None:
        self._caches = context.caches
        self._connections = connections
        self._configuration = configuration
        self._states = context.states(CONTROLLERS, _State)

    def learned(self, obj: Controller) -> Learned:
        """What is known by now; before slurmctld was looked at, what the status has."""
        status = obj.status
        return self._states.of(obj).learned or Learned(
            status.slurm_image, status.slurm_version, status.state_version
        )

    def parser(self, key: str) -> Version | None:
        """The release whose REST calls slurmrestd has; None while that is not known."""
        link = self._connections.get(key)
        client = link.client if link is not None else None
        return of_parser(client.parser) if client is not None else None

    def withhold(
        self, obj: Controller, cluster: ClusterInputs, manifests: list[Json]
    ) -> tuple[list[Json], list[Finding]]:
        """The manifests, without a slurmctld that could not read its state; why it is left out."""
        wanted = of_release.of_slurmctld(cluster)
        why = versions.release_problem(
            wanted, of_release.state(obj), persistent=obj.spec.persistent
        )
        if not why:
            return manifests, []
        raw = self._workload(obj)
        if raw is None:
            rest = [one for one in manifests if one["kind"] != "StatefulSet"]
            return rest, release.findings(why, running=False)
        template = raw["spec"]["template"]
        if of_release.images(template["spec"]).get("slurmctld") == of_release.slurmctld_image(
            cluster
        ):
            # It came there in another way: slurmctld's own words tell.
            return manifests, []
        held = [
            {**one, "spec": {**one["spec"], "template": template}}
            if one["kind"] == "StatefulSet" and "template" in one["spec"]
            else one
            for one in manifests
        ]
        return held, release.findings(why, running=True)

    def learn(self, obj: Controller, pod: Pod | None, *, serves: bool) -> None:
        """Note what a pod shows that is as its StatefulSet says."""
        status = obj.status
        known = Learned(status.slurm_image, status.slurm_version, status.state_version)
        self._states.of(obj).learned = self._shown(obj, pod, known, serves=serves)

    def _shown(self, obj: Controller, pod: Pod | None, known: Learned, *, serves: bool) -> Learned:
        raw = self._workload(obj)
        if raw is None or pod is None or pod.metadata.deleting:
            return known
        seen: Json = raw.get("status") or {}
        revision = pod.metadata.labels.get("controller-revision-hash")
        current = seen.get("observedGeneration") == raw["metadata"].get("generation")
        if not current or not revision or revision != seen.get("updateRevision"):
            return known
        images = of_release.images(raw["spec"]["template"]["spec"])
        image = images.get("slurmctld", "")
        said = self._configuration.release(obj, pod) if images.get("reconfigure") == image else ""
        if said:
            known = replace(known, image=image, version=said)
        if serves:
            found = known.version if known.image == image else str(of_image(image) or "")
            known = replace(known, state=found)
        return known

    def _workload(self, obj: Controller) -> Json | None:
        """Slurmctld's StatefulSet as it was last seen."""
        key = f"{obj.metadata.namespace}/{names.controller_workload(obj)}"
        return self._caches.stateful_sets.raw(key)


def trial(workload: Json) -> list[Finding]:
    """Whether the container that tries files has another release than slurmctld, by their tags."""
    images = of_release.images(workload["spec"]["template"]["spec"])
    return release.trial(
        of_image(images.get("slurmctld", "")), of_image(images.get("reconfigure", ""))
    )
