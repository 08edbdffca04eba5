"""Which release of Slurm a slurmctld has, which one served last, and which may not start."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeVar

import msgspec

from penstock.api.cluster.slurmctld_status import SlurmctldStatus
from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import Pod
from penstock.api.kubernetes.meta import Json, KubeObject
from penstock.api.kubernetes.resource import Resource
from penstock.catalog.marks import kubernetes
from penstock.controllers.config.delayed_template import with_template_of
from penstock.controllers.config.source import ConfigSource, ConfigStatus
from penstock.controllers.config.transaction import ConfigTransaction
from penstock.controllers.runtime.reconciler import Context
from penstock.controllers.runtime.slurm_connections import SlurmConnections
from penstock.decide.cluster import release
from penstock.render.parts.container_images import images
from penstock.slurm import versions
from penstock.slurm.versions import Version, of_image, of_parser

S = TypeVar("S", bound=SlurmctldStatus)


@dataclass(frozen=True, slots=True)
class Learned:
    """What slurmctld's image reported, and the version of Slurm that served last."""

    image: str = ""
    version: str = ""
    mpi: tuple[str, ...] = ()
    state: str = ""


@dataclass(slots=True)
class _State:
    learned: Learned | None = None


class Releases:
    """What is known of the releases of slurmctld of each object of one resource."""

    def __init__(
        self,
        context: Context,
        resource: Resource[Any],
        connections: SlurmConnections,
        configuration: ConfigTransaction,
    ) -> None:
        self._caches = context.caches
        self._connections = connections
        self._configuration = configuration
        self._states = context.states(resource, _State)

    def learned(self, obj: KubeObject, status: ConfigStatus) -> Learned:
        """What is known by now; before slurmctld was looked at, what the status has."""
        return self._states.of(obj).learned or _recorded(status)

    def status(self, obj: KubeObject, old: S) -> S:
        """The status with what is known by now."""
        known = self.learned(obj, old)
        return msgspec.structs.replace(
            old,
            slurm_image=known.image,
            slurm_version=known.version,
            mpi_plugins=known.mpi,
            state_version=known.state,
        )

    def parser(self, key: str) -> Version | None:
        """The release whose REST calls slurmrestd has; None while that is not known."""
        link = self._connections.get(key)
        client = link.client if link is not None else None
        return of_parser(client.parser) if client is not None else None

    def withhold(
        self, source: ConfigSource, manifests: list[Json]
    ) -> tuple[list[Json], list[Finding]]:
        """The manifests, without a slurmctld that could not read its state; why it is left out."""
        state = versions.parse(source.status.state_version)
        why = versions.release_problem(
            source.declared_release(), state, persistent=source.persistent
        )
        if not why:
            return manifests, []
        raw = self._workload(source)
        if raw is None:
            rest = [one for one in manifests if one["kind"] != "StatefulSet"]
            return rest, release.findings(why, running=False)
        template = raw["spec"]["template"]
        if images(template["spec"]).get("slurmctld") == source.image():
            # The image was set in another way: slurmctld reports whether it accepts its state.
            return manifests, []
        kept = [with_template_of(one, raw) for one in manifests]
        return kept, release.findings(why, running=True)

    def learn(self, source: ConfigSource, pod: Pod | None, *, serves: bool) -> None:
        """Note what a pod shows whose template is that of its StatefulSet."""
        found = self._shown(source, pod, _recorded(source.status), serves=serves)
        self._states.of(source.object).learned = found

    def _shown(
        self, source: ConfigSource, pod: Pod | None, known: Learned, *, serves: bool
    ) -> Learned:
        raw = self._workload(source)
        if raw is None or pod is None or pod.metadata.deleting:
            return known
        seen: Json = raw.get("status") or {}
        revision = pod.metadata.labels.get(kubernetes.REVISION.key)
        current = seen.get("observedGeneration") == raw["metadata"].get("generation")
        if not current or not revision or revision != seen.get("updateRevision"):
            return known
        every = images(raw["spec"]["template"]["spec"])
        image, reported, mpi = every.get("slurmctld", ""), "", ()
        if every.get("reconfigure") == image:
            reported, mpi = self._configuration.release(source.object, pod)
        if reported:
            kept = known.mpi if known.image == image else ()
            known = replace(known, image=image, version=reported, mpi=mpi or kept)
        elif mpi:
            # They are reported first: files can name one of them before slurmctld reads them.
            known = replace(known, mpi=mpi)
        if serves:
            found = known.version if known.image == image else str(of_image(image) or "")
            known = replace(known, state=found)
        return known

    def _workload(self, source: ConfigSource) -> Json | None:
        """Slurmctld's StatefulSet as it was last seen."""
        key = f"{source.object.metadata.namespace}/{source.workload}"
        return self._caches.stateful_sets.raw(key)


def _recorded(status: ConfigStatus) -> Learned:
    return Learned(
        status.slurm_image, status.slurm_version, status.mpi_plugins, status.state_version
    )


def trial(workload: Json) -> list[Finding]:
    """Whether the container that tries files has another release than slurmctld, by their tags."""
    every = images(workload["spec"]["template"]["spec"])
    return release.trial(
        of_image(every.get("slurmctld", "")), of_image(every.get("reconfigure", ""))
    )
