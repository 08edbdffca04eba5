"""What rendering reads of a SlurmCluster, made of what the caches show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from penstock.api.cluster.marks import CONTENT_HASH
from penstock.api.kubernetes.kinds import Pod
from penstock.api.nebius import names
from penstock.api.nebius.accounting import has_slurmdbd
from penstock.api.nebius.nodeset import NodeSet
from penstock.api.nebius.slurmcluster import SLURM_CLUSTERS, SlurmCluster
from penstock.api.penstock.backup_parts import ACCOUNTING
from penstock.controllers.observed.cluster_state import (
    PartitionOverrides,
    RejectedFiles,
    TopologyText,
)
from penstock.controllers.observed.nebius_caches import NebiusCaches, first_in_namespace
from penstock.controllers.workers.caches import owner_of
from penstock.decide.config.conditions import has_worked
from penstock.kube.runtime.state import StateByUid
from penstock.model.worker_set import WorkerSet
from penstock.render.config.content import content_hash
from penstock.render.nebius.config.files import TOPOLOGY_CONF, files
from penstock.render.nebius.config.inputs import ConfigInputs
from penstock.render.nebius.config.keys import ROOT, slurm_user
from penstock.render.nebius.config.slurm_conf import slurmdbd_in
from penstock.render.nebius.inputs import ClusterInputs, Images
from penstock.slurm import versions
from penstock.slurm.conf.apply_method import SLURM_CONF
from penstock.slurm.conf.includes import resolved
from penstock.slurm.partition.declaration import differs_in_partitions
from penstock.translate.nebius.cluster import accounting_link
from penstock.translate.nebius.jail import cluster_mode, maintenance_in_force
from penstock.translate.nebius.worker_set import node_set_workers


class NebiusClusters:
    """Builds the inputs of all SlurmClusters. Reading is synchronous and sends nothing.

    `overrides` are state that changes of partitions write, `rejected_files` that slurmctld's
    configuration writes, `topologies` that of topology.conf; all are only read here.
    """

    def __init__(self, caches: NebiusCaches, images: Images, cluster_domain: str) -> None:
        self.caches = caches
        self.overrides = StateByUid(caches.clusters, PartitionOverrides)
        self.rejected_files = StateByUid(caches.clusters, RejectedFiles)
        self.topologies = StateByUid(caches.clusters, TopologyText)
        self._images = images
        self._cluster_domain = cluster_domain

    def inputs(self, cluster: SlurmCluster) -> ClusterInputs:
        """What manifests are rendered from."""
        return ClusterInputs(
            cluster,
            self._images,
            prefix=self.prefix(cluster),
            node_sets=self.node_sets(cluster),
            cluster_domain=self._cluster_domain,
            slurmdbd=self.slurmdbd(cluster),
            runs_as_root=slurm_user(self.kept_files(cluster)) == ROOT,
            scaled_down=self.is_resting(cluster) and not self.worker_pods(cluster),
            loads_database=self.loads_database(cluster),
            has_user_namespaces=self.has_user_namespaces(),
        )

    def config(self, cluster: SlurmCluster) -> ConfigInputs:
        """What configuration files are rendered from.

        While slurmctld rejects what the SlurmCluster itself declares, its accepted lines are used
        as long as another change is on its way: partitions and NodeSets do not wait for a
        correction.
        """
        declared, accepted = self.declared(cluster), self.accepted(cluster)
        if accepted is None:
            return declared
        data, meta = files(accepted), cluster.metadata
        ours = (names.slurm_configs(meta.name), names.last_known_good_configs(meta.name))
        found = (self.caches.config_map(f"{meta.namespace}/{name}") for name in ours)
        return declared if all(one is not None and one.data == data for one in found) else accepted

    def accepted(self, cluster: SlurmCluster) -> ConfigInputs | None:
        """The cluster with the lines of its last known good files, while others are rejected.

        None also where the rejected ones are partitions: these files have nothing else to offer.
        """
        if not self.rejection(cluster) or not (good := self.last_known_good(cluster)):
            return None
        declared = self.declared(cluster)
        found = replace(declared, accepted=good)
        return None if files(found) == files(declared) else found

    def rejection(self, cluster: SlurmCluster) -> str:
        """Slurmctld's words if it rejects the present declaration; empty if not.

        A declaration that differs only in partitions counts as rejected until its own trial start:
        a partition does not wait for another trial of the same faulty lines.
        """
        status = cluster.status
        if not status.last_error:
            return ""
        now = files(self.declared(cluster))
        before = self.rejected_files.of(cluster).files
        is_same = status.config_hash == content_hash(now)
        return status.last_error if is_same or differs_in_partitions(before, now) else ""

    def last_known_good(self, cluster: SlurmCluster) -> Mapping[str, str]:
        """The last known good files; empty without any, or if somebody edited them."""
        meta = cluster.metadata
        name = names.last_known_good_configs(meta.name)
        found = self.caches.config_map(f"{meta.namespace}/{name}")
        if found is None or found.metadata.deleting:
            return {}
        data = found.data or {}
        mark = found.metadata.annotations.get(CONTENT_HASH)
        return data if mark in (None, content_hash(data)) else {}

    def declared(self, cluster: SlurmCluster) -> ConfigInputs:
        """The declared cluster, except partitions that slurmctld rejected."""
        overrides = self.overrides.of(cluster)
        return ConfigInputs(
            cluster=cluster,
            node_sets=self.node_sets(cluster),
            prefix=self.prefix(cluster),
            version=self.release(cluster),
            mpi_plugins=self.mpi_plugins(cluster),
            accounting=accounting_link(cluster) if self.has_slurmdbd(cluster) else None,
            has_database=self.has_database(cluster),
            topology_conf=self.topology_conf(cluster),
            power_saved=self.power_saved(cluster),
            published=self.kept_files(cluster),
            in_effect=overrides.sent or self.partitions_in_effect(cluster),
            freed=overrides.freed,
            rejected_partitions=overrides.kept,
            slurm_conf=overrides.slurm_conf if overrides.kept else "",
        )

    def power_saved(self, cluster: SlurmCluster) -> Mapping[str, int]:
        """Ordinals that slurm.conf must have of each ephemeral NodeSet, as pods of them exist."""
        sizes: dict[str, int] = {}
        for node_set in self.node_sets(cluster):
            if not node_set.spec.ephemeral_nodes:
                continue
            workers = node_set_workers(node_set)
            numbers = (
                workers.names.ordinal_of(pod.metadata.name)
                for pod in self.caches.pods_of.get(owner_of(workers))
            )
            most = max((one for one in numbers if one is not None), default=-1)
            sizes[node_set.metadata.name] = most + 1
        return sizes

    def topology_conf(self, cluster: SlurmCluster) -> str:
        """The text of topology.conf; empty without one."""
        text = self.topologies.of(cluster).text
        return self.published(cluster).get(TOPOLOGY_CONF, "") if text is None else text

    def has_slurmdbd(self, cluster: SlurmCluster) -> bool:
        """Whether slurmctld is to write records.

        Without the kinds of mariadb-operator there is no database to begin with. A cluster that
        has one keeps slurmdbd when they go: slurmctld would drop its records otherwise.
        """
        accounting = cluster.spec.slurm_nodes.accounting
        if not has_slurmdbd(accounting):
            return False
        served = not (accounting.has_mariadb_operator and self.caches.databases_absent)
        return served or self.slurmdbd_in_force(cluster)

    def has_database(self, cluster: SlurmCluster) -> bool:
        """Whether the database has answered, or slurmctld waits for it at its first start anyway.

        A slurmctld with state starts without it, unless slurm.conf names TRES that are new. One
        that has not worked yet may have started with files that name no slurmdbd: then it has
        state.
        """
        files = self.kept_files(cluster)
        starts_with_it = not self.served(cluster) and (not files or bool(slurmdbd_in(files)))
        if starts_with_it or "AccountingStorageTRES=" in resolved(files):
            return True
        return any(pod.ready for pod in self.pods(cluster, "accounting"))

    def slurmdbd(self, cluster: SlurmCluster) -> str:
        """Host and port of slurmdbd in the files in force; before the first ones, in the declared.

        The first files are the declared ones, and slurmrestd is created right after them.
        """
        return slurmdbd_in(self.kept_files(cluster) or files(self.declared(cluster)))

    def slurmdbd_in_force(self, cluster: SlurmCluster) -> bool:
        """Whether the files in force name slurmdbd."""
        return bool(slurmdbd_in(self.kept_files(cluster)))

    def worker_set(self, node_set: NodeSet) -> WorkerSet:
        """The workers of a NodeSet; none while its SlurmCluster is in maintenance."""
        cluster = self.caches.cluster_of(node_set)
        power = self.caches.power_state_of(node_set)
        active = power.spec.active_nodes if power is not None else ()
        if cluster is None:
            return node_set_workers(node_set, active=active)
        mode = maintenance_in_force(cluster)
        return node_set_workers(node_set, mode, cluster.metadata, active)

    def node_sets(self, cluster: SlurmCluster) -> tuple[NodeSet, ...]:
        """The NodeSets that name a SlurmCluster, by name; deleted ones until they are gone."""
        found = self.caches.node_sets_of.get(cluster.metadata.key)
        return tuple(sorted(found, key=lambda one: one.metadata.name))

    def prefix(self, cluster: SlurmCluster) -> str:
        """Prefix of its workloads' names: that of a live StatefulSet stays what it is.

        One of OpenKruise, as the original makes them, counts as well. So does that of another
        cluster. Two of the same second are both the first for a moment.
        """
        meta, is_taken = cluster.metadata, False
        for prefix in ("", f"{meta.name}-"):
            key = f"{meta.namespace}/{prefix}controller"
            for cache in (self.caches.stateful_sets, self.caches.advanced_stateful_sets):
                live = cache.get(key)
                owner = live.metadata.controller if live is not None else None
                if owner is not None and owner.uid == meta.uid:
                    return prefix
                # That of a deleted cluster of this name goes, and is no reason for another name.
                is_taken |= (
                    owner is not None
                    and owner.is_kind(SLURM_CLUSTERS.group, SLURM_CLUSTERS.kind)
                    and owner.name != meta.name
                )
        second = is_taken or not first_in_namespace(cluster, self.caches)
        return names.workload_prefix(cluster, keeps_plain_names=False, is_second=second)

    def is_resting(self, cluster: SlurmCluster) -> bool:
        """Whether it is stopped, or in a maintenance mode without pods."""
        return cluster_mode(cluster).scales_down

    def loads_database(self, cluster: SlurmCluster) -> bool:
        """Whether a Restore at work loads its database, which does not rest meanwhile."""
        meta = cluster.metadata
        return any(
            ACCOUNTING in one.spec.parts
            and one.status.cluster == meta.name
            and one.status.phase in ("Stopping", "Restoring")
            for one in self.caches.restores_in.get(meta.namespace)
        )

    def published(self, cluster: SlurmCluster) -> Mapping[str, str]:
        """The files in force; empty before the first ones."""
        meta = cluster.metadata
        found = self.caches.config_map(f"{meta.namespace}/{names.slurm_configs(meta.name)}")
        return (found.data or {}) if found is not None else {}

    def kept_files(self, cluster: SlurmCluster) -> Mapping[str, str]:
        """The files in force, or those that slurmctld ran with if somebody deleted them."""
        if found := self.published(cluster):
            return found
        meta = cluster.metadata
        key = f"{meta.namespace}/{names.last_known_good_configs(meta.name)}"
        good = self.caches.config_map(key)
        return (good.data or {}) if good is not None else {}

    def partitions_in_effect(self, cluster: SlurmCluster) -> str:
        """A slurm.conf with the partitions in which jobs may be; empty where there can be none.

        slurmctld's state outlives its SlurmCluster, with its jobs, and so does the record of its
        partitions.
        """
        meta = cluster.metadata
        note = self.caches.config_map(f"{meta.namespace}/{names.partition_record(meta.name)}")
        noted = (note.data or {}).get(SLURM_CONF, "") if note is not None else ""
        now = self.published(cluster)
        return resolved(now) if now and self.served(cluster) else noted

    def served(self, cluster: SlurmCluster) -> bool:
        """Whether its slurmctld has worked, so that jobs may be in it."""
        if has_worked(cluster.status.conditions):
            return True
        return any(pod.ready for pod in self.slurmctld_pods(cluster))

    def release(self, cluster: SlurmCluster) -> versions.Version | None:
        """The release of slurmctld: what its image reported, else what the image's tag names."""
        status, image = cluster.status, cluster.spec.slurm_nodes.controller.slurmctld.image
        if status.slurm_version and status.slurm_image == image:
            return versions.parse(status.slurm_version)
        return versions.of_image(image)

    def mpi_plugins(self, cluster: SlurmCluster) -> frozenset[str]:
        """MPI plug-ins of the image that slurmctld runs or ran last; empty while they are unknown.

        Those of the last image count until another one has reported its own: so MpiDefault does
        not change twice when the image does.
        """
        return frozenset(cluster.status.mpi_plugins)

    def slurmctld_pods(self, cluster: SlurmCluster) -> tuple[Pod, ...]:
        """The pod of slurmctld, if it exists.

        One that a deleted SlurmCluster of this name left is not of this one: its slurmctld ends
        soon, and this cluster has not worked with it.
        """
        name, space = names.controller_pod(self.prefix(cluster)), cluster.metadata.namespace
        pod = self.caches.pods.get(f"{space}/{name}")
        if pod is None:
            return ()
        owner, live = pod.metadata.controller, self.caches.stateful_sets.get(f"{space}/{name[:-2]}")
        is_own = owner is None or (live is not None and owner.uid == live.metadata.uid)
        return (pod,) if is_own else ()

    def pods(self, cluster: SlurmCluster, component: str) -> tuple[Pod, ...]:
        """The pods of one component, by name."""
        found = self.caches.pods_of_component.get(f"{cluster.metadata.key}/{component}")
        return tuple(sorted(found, key=lambda pod: pod.metadata.name))

    def worker_pods(self, cluster: SlurmCluster) -> tuple[Pod, ...]:
        """The pods of all its workers."""
        return (*self.pods(cluster, "worker"), *self.pods(cluster, "nodeset"))

    def has_user_namespaces(self) -> bool:
        """Whether each Kubernetes node reports that pods may have a user namespace there."""
        nodes = tuple(self.caches.nodes)
        return bool(nodes) and all(node.has_user_namespaces for node in nodes)

    def ready_pods(self, cluster: SlurmCluster, component: str) -> int:
        """How many pods of a component are ready."""
        return sum(pod.ready for pod in self.pods(cluster, component))
