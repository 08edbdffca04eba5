"""The files of sssd beside daemons: what is wrong with them, and how changed ones reach pods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from penstock.api.cluster import marks
from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import ConfigMap, Pod, Secret
from penstock.api.kubernetes.meta import KubeObject
from penstock.api.kubernetes.spec_parts import SecretKeySelector
from penstock.api.nebius.common import SSSD_CONTAINER
from penstock.api.nebius.nodeset import NODE_SETS, NodeSet
from penstock.api.nebius.slurmcluster import SLURM_CLUSTERS, SlurmCluster
from penstock.api.nebius.sssd import SSSD_CONF, SssdFiles, cluster_sssd, node_set_sssd
from penstock.controllers.auth.directory import DirectoryMonitor
from penstock.controllers.nebius.context import NebiusContext
from penstock.controllers.observed.watching import keys
from penstock.controllers.runtime.pod_restarter import PodRestarter
from penstock.controllers.runtime.report import Events
from penstock.decide.auth import sssd_files
from penstock.decide.auth.sssd_files import Certificates, SssdSecret
from penstock.kube.runtime.declaration import Lookup
from penstock.render.nebius.sssd import default_secret
from penstock.render.parts.digest import digest

T = TypeVar("T", bound=KubeObject)


def node_sets_using(obj: Secret | ConfigMap, lookup: Lookup) -> list[str]:
    """Keys of the NodeSets whose workers have files of sssd from a Secret or ConfigMap."""
    every = _same_namespace(obj, lookup.all(NODE_SETS))
    return keys(one for one in every if _has(obj, [node_set_sssd(one)]))


def clusters_using(config_map: ConfigMap, lookup: Lookup) -> list[str]:
    """Keys of the SlurmClusters whose sssd has certificates from a ConfigMap."""
    every = _same_namespace(config_map, lookup.all(SLURM_CLUSTERS))
    return keys(one for one in every if _has(config_map, cluster_sssd(one)))


def _same_namespace(obj: KubeObject, every: Iterable[T]) -> Iterator[T]:
    return (one for one in every if one.metadata.namespace == obj.metadata.namespace)


def _has(obj: Secret | ConfigMap, every: Iterable[SssdFiles | None]) -> bool:
    name, is_secret = obj.metadata.name, isinstance(obj, Secret)
    found = (one for one in every if one is not None)
    return any(name == (one.secret if is_secret else one.certificates) for one in found)


class SssdFileReader:
    """Reads the files of sssd that the caches have, and creates default ones."""

    def __init__(self, context: NebiusContext) -> None:
        self._caches = context.caches
        self._secrets = context.secrets
        self._objects = context.objects

    async def create_for(self, obj: NodeSet, cluster: str, events: Events) -> None:
        """Create the default Secret of a NodeSet. Raises KubeError."""
        await self.create(obj, cluster, filter(None, [node_set_sssd(obj)]), events)

    def absent(self, obj: NodeSet) -> Finding | None:
        """What new workers wait for: jobs fail on one that does not know their users."""
        files = node_set_sssd(obj)
        return next(self._absent(obj, [files]), None) if files is not None else None

    def of_node_set(self, obj: NodeSet) -> list[Finding]:
        """What is wrong with the files of a NodeSet."""
        files = node_set_sssd(obj)
        return self.findings(obj, [files]) if files is not None else []

    def findings(self, obj: KubeObject, every: Sequence[SssdFiles]) -> list[Finding]:
        """What is wrong with files of an object."""
        faults = (one for each in self._of(obj, every) for one in sssd_files.faults(each))
        return [*self._absent(obj, every), *faults]

    async def create(
        self,
        obj: SlurmCluster | NodeSet,
        cluster: str,
        every: Iterable[SssdFiles],
        events: Events,
    ) -> None:
        """Create default Secrets that do not exist. Raises KubeError."""
        for name in dict.fromkeys(one.secret for one in every if one.is_generated):
            if self._caches.secrets.get(f"{obj.metadata.namespace}/{name}") is None:
                made = default_secret(obj, cluster, name)
                await self._objects.create_secret(obj, events, made)

    def hash(self, namespace: str, files: SssdFiles) -> str:
        """Hash of the files; empty while there is no sssd.conf."""
        conf = self._secrets.value_hash(namespace, conf_in(files.secret))
        found = self._caches.config_maps.get(f"{namespace}/{files.certificates}")
        if not conf or found is None:
            return conf
        return digest(f"{conf} {found.metadata.uid} {found.metadata.resource_version}")

    def _absent(self, obj: KubeObject, every: Sequence[SssdFiles]) -> Iterator[Finding]:
        yield from filter(None, map(sssd_files.absent, self._of(obj, every)))
        space = obj.metadata.namespace
        for name in dict.fromkeys(one.certificates for one in every if one.certificates):
            if self._caches.config_maps.get(f"{space}/{name}") is None:
                fields = [one.certificates_path for one in every if one.certificates == name]
                yield sssd_files.without_certificates(Certificates(name, space, fields))

    def _of(self, obj: KubeObject, every: Sequence[SssdFiles]) -> Iterator[SssdSecret]:
        """Each Secret once."""
        space = obj.metadata.namespace
        for name in dict.fromkeys(one.secret for one in every):
            uses = [one for one in every if one.secret == name]
            secret = self._caches.secrets.get(f"{space}/{name}")
            yield SssdSecret(
                name=name,
                namespace=space,
                fields=[one.secret_path for one in uses],
                exists=secret is not None,
                key=SSSD_CONF,
                conf=self._secrets.value(space, conf_in(name)),
                is_generated=any(one.is_generated for one in uses),
            )


class ClusterSssd:
    """sssd of slurmctld and logins of all SlurmClusters."""

    def __init__(self, context: NebiusContext) -> None:
        self._clusters = context.clusters
        self._files = SssdFileReader(context)
        self._restarter = PodRestarter(context.client)
        self._monitor = DirectoryMonitor(context, SLURM_CLUSTERS, SSSD_CONTAINER)

    async def reconcile(self, obj: SlurmCluster, events: Events) -> list[Finding]:
        """Create the default Secret, have changed files refreshed, read logs. Raises KubeError.

        Workers, of which there may be thousands, get theirs when kubelets refresh by themselves.
        """
        every, space = tuple(cluster_sssd(obj)), obj.metadata.namespace
        await self._files.create(obj, obj.metadata.name, every, events)
        for files in every:
            found = self._files.hash(space, files)
            for pod in self._pods(obj, files) if found else ():
                await self._restarter.annotate(pod, found, marks.SSSD_HASH)
        last = every[-1] if every else None
        ref = conf_in(last.secret) if last is not None else None
        pods = self._pods(obj, last) if last is not None else ()
        failing = await self._monitor.observe(obj, ref, pods, events)
        return [*self._files.findings(obj, every), *failing]

    def requeue_after(self, obj: SlurmCluster) -> float | None:
        """When logs of sssd are to be read again; None without a directory."""
        return self._monitor.requeue_after(obj)

    def _pods(self, obj: SlurmCluster, files: SssdFiles) -> tuple[Pod, ...]:
        if files.of_slurmctld:
            return self._clusters.slurmctld_pods(obj)
        return self._clusters.pods(obj, "login")


def conf_in(secret: str) -> SecretKeySelector:
    """Where sssd.conf is in a Secret."""
    return SecretKeySelector(name=secret, key=SSSD_CONF)
