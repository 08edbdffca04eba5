"""What rendering reads of a Slinky cluster: its ClusterInputs, made of what the caches show."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from msgspec.structs import replace

from penstock.api.kubernetes.kinds import Pod
from penstock.api.slinky import names
from penstock.api.slinky.accounting import Accounting
from penstock.api.slinky.controller import Controller
from penstock.controllers.caches.kubernetes import files_of
from penstock.controllers.caches.secrets import SecretReader
from penstock.controllers.observed.cluster_state import PartitionOverrides, RejectedFiles
from penstock.controllers.observed.members import same_namespace
from penstock.controllers.observed.references import controllers_accepting_token
from penstock.controllers.observed.slinky_caches import SlinkyCaches
from penstock.decide.auth.jwks import finding as jwks_finding
from penstock.decide.cluster.backups import is_active
from penstock.decide.config.conditions import has_worked
from penstock.kube.runtime.state import StateByUid
from penstock.render.config.sections import extra_conf_of, node_count_of
from penstock.render.parts.default_images import Images
from penstock.render.slinky.config.config_maps import (
    config_hash,
    config_maps_named,
    files,
    mounted,
)
from penstock.render.slinky.inputs import ClusterInputs
from penstock.slurm.auth.key_rotation import Ring
from penstock.slurm.conf.includes import SLURM_CONF
from penstock.slurm.partition.declaration import differs_in_partitions
from penstock.translate.slinky.cluster import MARKS

_MUNGE = "munge"
"""In place of the hash of a key."""


class SlinkyClusters:
    """Builds the clusters of all Controllers. Reading is synchronous and sends nothing.

    `overrides` and `rejected_files` are state of their owners, and only read here.
    """

    def __init__(
        self,
        caches: SlinkyCaches,
        secrets: SecretReader,
        images: Images,
        cluster_domain: str,
        overrides: StateByUid[PartitionOverrides],
        rejected_files: StateByUid[RejectedFiles],
    ) -> None:
        self.caches = caches
        self.secrets = secrets
        self._images = images
        self._cluster_domain = cluster_domain
        self._overrides = overrides
        self._rejected_files = rejected_files

    def cluster(self, controller: Controller) -> ClusterInputs:
        """Return the inputs for rendering one cluster.

        While slurmctld rejects the Controller's own lines, its active ones are used as long as
        another change is on its way: NodeSets and Partitions do not wait for a correction.
        """
        cluster, retained = self.declared(controller), self.accepted(controller)
        if retained is None:
            return cluster
        data, space = files(retained), controller.metadata.namespace
        ours = (names.config_map(controller), names.config_map_alias(controller))
        there = [self.caches.config_map(f"{space}/{name}") for name in ours]
        return cluster if all(one is not None and one.data == data for one in there) else retained

    def accepted(self, controller: Controller) -> ClusterInputs | None:
        """Return the cluster with the active lines of its Controller, while others are rejected."""
        text = self.slurm_conf(controller)
        if text is None or not self.rejection(controller):
            return None
        # What was sent to slurmctld since then may be in no file yet.
        sent = self._overrides.of(controller).slurm_conf
        spec = replace(controller.spec, extra_conf=extra_conf_of(sent or text))
        declared = self.declared(controller)
        return dataclasses.replace(declared, controller=replace(controller, spec=spec))

    def rejection(self, controller: Controller) -> str:
        """Return the words with which slurmctld rejects the present declaration; empty if not.

        A declaration that differs only in partitions counts as rejected until its own trial start:
        a partition does not wait for another trial of the same faulty lines.
        """
        status = controller.status
        if not status.last_error:
            return ""
        cluster = self.declared(controller)
        if status.config_hash == config_hash(cluster):
            return status.last_error
        before = self._rejected_files.of(controller).files
        alike = differs_in_partitions(before, mounted(cluster, files(cluster)))
        return status.last_error if alike else ""

    def declared(self, controller: Controller) -> ClusterInputs:
        """Return the cluster as declared, except partitions that slurmctld rejected."""
        spec, namespace = controller.spec, controller.metadata.namespace
        overrides = self._overrides.of(controller)
        given = self.secrets.hash(namespace, names.slurm_key_ref(controller))
        if given and spec.munge_key_ref is not None:
            # munged starts again with a changed key, so no pod follows its hash.
            given = _MUNGE
        ring = self.ring(controller) if given else None
        accounting: Accounting | None = None
        if spec.accounting_ref is not None:
            accounting = self.caches.accountings.get(f"{namespace}/{spec.accounting_ref.name}")
        return ClusterInputs(
            controller=controller,
            images=self._images,
            nodesets=self.caches.nodesets_of.get(controller.metadata.key),
            accounting=accounting,
            cluster_domain=self._cluster_domain,
            config_maps=self.config_data(controller),
            slurm_key_hash=ring.origin if ring else given,
            clients_key_hash=ring.clients if ring else given,
            ring=ring,
            node_count=node_count_of(self.slurm_conf(controller) or ""),
            jwt_key_hash=self.secrets.hash(namespace, names.jwt_key_ref(controller)),
            identities=any(
                one.spec.identity is not None
                and controller.metadata.key in controllers_accepting_token(one, self.caches.store)
                for one in same_namespace(controller, self.caches.tokens)
            ),
            partitions=self.caches.partitions_of.get(controller.metadata.key),
            rejected_partitions=overrides.kept,
            slurm_conf=overrides.slurm_conf if overrides.kept else "",
            in_effect=overrides.sent or self.partitions_in_effect(controller),
            freed=overrides.freed,
        )

    def slurm_conf(self, controller: Controller) -> str | None:
        """The slurm.conf that slurmctld is given; None before its first one."""
        return (self.real_config(controller) or {}).get("slurm.conf")

    def partitions_in_effect(self, controller: Controller) -> str:
        """A slurm.conf with the partitions in which jobs may be; empty where there can be none.

        slurmctld's state outlives its Controller, with its jobs. So its partitions are noted beside
        the files, in a ConfigMap that stays.
        """
        if controller.spec.external:
            return ""
        space = controller.metadata.namespace
        note = self.caches.config_map(f"{space}/{names.partition_record(controller)}")
        noted = (note.data or {}).get(SLURM_CONF, "") if note is not None else ""
        now = self.slurm_conf(controller)
        return noted if now is None or not self.served(controller) else now

    def served(self, controller: Controller) -> bool:
        """Whether slurmctld of this Controller has worked, so that jobs may be in it.

        One that never worked may be given a file without the line on which it stumbled.
        """
        worked = has_worked(controller.status.conditions)
        return worked or any(pod.ready for pod in self.slurmctld_pods(controller))

    def real_config(self, controller: Controller) -> Mapping[str, str] | None:
        """The files of ours that slurmctld is given; None before its first ones."""
        key = f"{controller.metadata.namespace}/{names.config_map(controller)}"
        found = self.caches.config_map(key)
        return (found.data or {}) if found is not None else None

    def config_data(self, controller: Controller) -> Mapping[str, Mapping[str, str]]:
        """Contents of the ConfigMaps that a Controller names, as far as they exist."""
        found: dict[str, Mapping[str, str]] = {}
        for name in config_maps_named(controller):
            config_map = self.caches.config_maps.get(f"{controller.metadata.namespace}/{name}")
            if config_map is not None:
                found[name] = files_of(config_map)
        return found

    def absent_config_maps(self, controller: Controller) -> list[str]:
        """Names of the ConfigMaps that a Controller names and that are not there in full.

        One whose JWKS file cannot be used counts as such.
        """
        found = self.config_data(controller)
        absent = [name for name in config_maps_named(controller) if name not in found]
        jwks = None if controller.spec.external else controller.spec.jwks_key_ref
        if jwks and jwks.name not in absent:
            text = found.get(jwks.name, {}).get(jwks.key)
            if jwks_finding(jwks, controller.metadata.namespace, text) is not None:
                absent.append(jwks.name)
        return absent

    def ring(self, controller: Controller) -> Ring | None:
        """Return the key ring of a cluster; None without one, or of an external slurmctld."""
        if controller.spec.external or controller.spec.munge_key_ref is not None:
            return None
        return self.secrets.ring(f"{controller.metadata.namespace}/{names.key_ring(controller)}")

    def slurmctld_pods(self, controller: Controller) -> tuple[Pod, ...]:
        """The pods of a Controller's slurmctld: the active one first, else as Slurm has them."""
        space = controller.metadata.namespace
        keys = [
            f"{space}/{names.controller_pod(controller, number)}"
            for number in range(controller.spec.replicas)
        ]
        found = [pod for key in keys if (pod := self.caches.pods.get(key)) is not None]
        return tuple(sorted(found, key=lambda pod: not is_active(MARKS, pod)))
