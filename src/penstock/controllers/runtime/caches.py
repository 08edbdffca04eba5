"""What the operator knows of Kubernetes: the shared caches, and who belongs to whom."""

from __future__ import annotations

import base64
import binascii
import dataclasses
from collections.abc import Mapping
from typing import TypeVar

from msgspec.structs import replace

from penstock.api.cluster import labels as app_labels
from penstock.api.kubernetes.conditions import Finding, find
from penstock.api.kubernetes.kinds import (
    BUDGETS,
    CLAIMS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    NODES,
    PODS,
    REVISIONS,
    SECRETS,
    SERVICE_MONITORS,
    SERVICES,
    STATEFUL_SETS,
    ConfigMap,
    Pod,
    Secret,
)
from penstock.api.kubernetes.meta import KubeObject
from penstock.api.kubernetes.resource import Resource
from penstock.api.kubernetes.spec_parts import ConfigMapKeySelector, SecretKeySelector
from penstock.api.penstock.partition import PARTITIONS
from penstock.api.slinky import names
from penstock.api.slinky.accounting import ACCOUNTINGS, Accounting
from penstock.api.slinky.controller import CONTROLLERS, Controller
from penstock.api.slinky.loginset import LOGINSETS
from penstock.api.slinky.nodeset import NODESETS, NodeSet
from penstock.api.slinky.restapi import RESTAPIS
from penstock.api.slinky.token import TOKENS, Token
from penstock.controllers.caches.store import CacheStore
from penstock.controllers.observed.members import (
    LOGINSETS_BY_CLUSTER,
    NODESETS_BY_CLUSTER,
    PARTITIONS_BY_CLUSTER,
    RESTAPIS_BY_CLUSTER,
    ClusterMember,
    cluster_keys,
    same_namespace,
    worker_of,
)
from penstock.controllers.observed.references import controllers_accepting_token, sharing_key
from penstock.controllers.observed.watching import PODS_BY_NODE
from penstock.controllers.runtime.settings import Settings
from penstock.decide.auth.jwks import finding as jwks_finding
from penstock.decide.cluster.backups import is_active
from penstock.decide.config.conditions import APPLIED
from penstock.kube import Cache, Manager
from penstock.kube.runtime.state import gone
from penstock.render.config.sections import extra_conf_of, node_count_of
from penstock.render.parts.digest import digest, secret_digest
from penstock.render.slinky.config.config_maps import (
    config_hash,
    config_maps_named,
    files,
    mounted,
)
from penstock.render.slinky.inputs import ClusterInputs
from penstock.slurm.auth import key_rotation as keyring
from penstock.slurm.auth.key_rotation import Ring
from penstock.slurm.conf.apply_method import SLURM_CONF
from penstock.slurm.partition.declaration import live_only
from penstock.translate.slinky.cluster import MARKS

T = TypeVar("T", bound=KubeObject)


class World:
    """The caches. Reading them is synchronous and sends nothing."""

    def __init__(self, manager: Manager, settings: Settings) -> None:
        self.settings = settings
        self.caches = caches = CacheStore(manager)
        self.controllers = caches.of(CONTROLLERS, raw=True)
        self.nodesets = caches.of(NODESETS, raw=True)
        self.restapis = caches.of(RESTAPIS, raw=True)
        self.loginsets = caches.of(LOGINSETS, raw=True)
        self.accountings = caches.of(ACCOUNTINGS, raw=True)
        self.tokens = caches.of(TOKENS)
        self.partitions = caches.of(PARTITIONS)
        self.pods = caches.of(PODS)
        self.nodes = caches.of(NODES)
        self.claims = caches.of(CLAIMS)
        self.secrets = caches.of(SECRETS)
        self.secrets_of = self.secrets.index(_owner_uid)
        self.config_maps = caches.of(CONFIG_MAPS, raw=True)
        self.services = caches.of(SERVICES, raw=True)
        self.stateful_sets = caches.of(STATEFUL_SETS, raw=True)
        self.deployments = caches.of(DEPLOYMENTS, raw=True)
        self.budgets = caches.of(BUDGETS, raw=True)
        self.revisions = caches.of(REVISIONS)
        self.monitors = caches.of(SERVICE_MONITORS, raw=True)
        self.nodesets_of = caches.index(NODESETS_BY_CLUSTER)
        self.restapis_of = caches.index(RESTAPIS_BY_CLUSTER)
        self.loginsets_of = caches.index(LOGINSETS_BY_CLUSTER)
        self.partitions_of = caches.index(PARTITIONS_BY_CLUSTER)
        self.pods_of = self.pods.index(_owner_uid)
        self.pods_in = self.pods.index(lambda pod: [pod.metadata.namespace])
        self.pods_on = caches.index(PODS_BY_NODE)
        self.claims_of = self.claims.index(worker_of)
        self.revisions_of = self.revisions.index(_owner_uid)
        self.own_config_maps = caches.own_config_maps
        self.kept_partitions: dict[str, tuple[frozenset[str], str]] = {}
        """By uid of a Controller the partitions that stay, and the slurm.conf that says how."""
        self.freed_partitions: dict[str, frozenset[str]] = {}
        """By uid of a Controller partitions that may leave its slurm.conf: no job is in them."""
        self.refused_files: dict[str, Mapping[str, str]] = {}
        """By uid of a Controller all files that Slurm refused last, as they are at /etc/slurm."""
        self._hashes: dict[str, tuple[str, str]] = {}
        """Version and hash of Secrets by key: each look at a cluster asks for them."""
        self._sssd: dict[tuple[str, str], tuple[str, str]] = {}
        """The same of single values, by the Secret's key and that within its data."""
        self._rings: dict[str, tuple[str, Ring | None]] = {}
        self.secrets.subscribe(self._secret_seen)

    def cache(self, resource: Resource[T]) -> Cache[T]:
        """The cache of all objects of a resource; a new one only before the start."""
        return self.caches.of(resource)

    def controller_of(self, member: ClusterMember) -> Controller | None:
        """The Controller that a NodeSet, RestApi or LoginSet refers to, if it exists."""
        return next(filter(None, map(self.controllers.get, cluster_keys(member))), None)

    def cluster(self, controller: Controller) -> ClusterInputs:
        """Everything that rendering needs to know about one cluster.

        While Slurm refuses what is declared, the Controller's own lines are those that it has, as
        long as anything beside them is on its way: NodeSets and Partitions do not wait for
        somebody's mistake.
        """
        cluster, held = self.declared(controller), self.accepted(controller)
        if held is None:
            return cluster
        data, space = files(held), controller.metadata.namespace
        ours = (names.config_map(controller), names.config_map_alias(controller))
        there = [self.config_map(f"{space}/{name}") for name in ours]
        return cluster if all(one is not None and one.data == data for one in there) else held

    def accepted(self, controller: Controller) -> ClusterInputs | None:
        """The cluster with the Controller's own lines that Slurm has, while it refuses others."""
        text = self.slurm_conf(controller)
        if text is None or not self.refused(controller):
            return None
        # What slurmctld was told since then may be in no file yet.
        _, told = self.kept_partitions.get(controller.metadata.uid, (frozenset[str](), ""))
        spec = replace(controller.spec, extra_conf=extra_conf_of(told or text))
        declared = self.declared(controller)
        return dataclasses.replace(declared, controller=replace(controller, spec=spec))

    def refused(self, controller: Controller) -> str:
        """The words with which Slurm refuses what is declared now; empty when it does not.

        What differs from it in partitions only is refused as well, until it was tried itself: a
        partition is not to wait for a trial of somebody else's mistake.
        """
        status = controller.status
        if not status.last_error:
            return ""
        cluster = self.declared(controller)
        if status.config_hash == config_hash(cluster):
            return status.last_error
        before = self.refused_files.get(controller.metadata.uid, {})
        now = mounted(cluster, files(cluster))
        old, new = before.get("slurm.conf", ""), now.get("slurm.conf", "")
        alike = live_only(old, new) and {**before, "slurm.conf": new} == now
        return status.last_error if alike else ""

    def declared(self, controller: Controller) -> ClusterInputs:
        """The cluster as it is declared, but for partitions that Slurm refused."""
        spec, namespace = controller.spec, controller.metadata.namespace
        kept, text = self.kept_partitions.get(controller.metadata.uid, (frozenset[str](), ""))
        given = self.secret_hash(namespace, names.slurm_key_ref(controller))
        ring = self.ring(controller) if given else None
        accounting: Accounting | None = None
        if spec.accounting_ref is not None:
            accounting = self.accountings.get(f"{namespace}/{spec.accounting_ref.name}")
        return ClusterInputs(
            controller=controller,
            images=self.settings.images,
            nodesets=self.nodesets_of.get(controller.metadata.key),
            accounting=accounting,
            cluster_domain=self.settings.cluster_domain,
            config_maps=self.config_data(controller),
            slurm_key_hash=ring.origin if ring else given,
            clients_key_hash=ring.clients if ring else given,
            ring=ring,
            node_count=node_count_of(self.slurm_conf(controller) or ""),
            jwt_key_hash=self.secret_hash(namespace, names.jwt_key_ref(controller)),
            identities=any(
                one.spec.identity is not None and controller.metadata.key in self.honoured_by(one)
                for one in same_namespace(controller, self.tokens)
            ),
            partitions=self.partitions_of.get(controller.metadata.key),
            rejected_partitions=kept,
            slurm_conf=text if kept else "",
            in_effect=self.partitions_in_effect(controller),
            freed=self.freed_partitions.get(controller.metadata.uid, frozenset()),
        )

    def config_map(self, key: str) -> ConfigMap | None:
        """One of ours by `namespace/name`, as it was seen or as our last write has left it."""
        return self.own_config_maps.latest(key, self.config_maps.get(key))

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
        note = self.config_map(f"{space}/{names.partition_record(controller)}")
        noted = (note.data or {}).get(SLURM_CONF, "") if note is not None else ""
        now = self.slurm_conf(controller)
        return noted if now is None or not self.served(controller) else now

    def served(self, controller: Controller) -> bool:
        """Whether slurmctld of this Controller has worked, so that jobs may be in it.

        One that never worked may be given a file without the line on which it stumbled.
        """
        worked = find(controller.status.conditions, APPLIED) is not None
        return worked or any(pod.ready for pod in self.slurmctld_pods(controller))

    def real_config(self, controller: Controller) -> Mapping[str, str] | None:
        """The files of ours that slurmctld is given; None before its first ones."""
        key = f"{controller.metadata.namespace}/{names.config_map(controller)}"
        found = self.config_map(key)
        return (found.data or {}) if found is not None else None

    def config_data(self, controller: Controller) -> Mapping[str, Mapping[str, str]]:
        """Contents of the ConfigMaps that a Controller names, as far as they exist."""
        found: dict[str, Mapping[str, str]] = {}
        for name in config_maps_named(controller):
            config_map = self.config_maps.get(f"{controller.metadata.namespace}/{name}")
            if config_map is not None:
                found[name] = _texts(config_map)
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

    def has_newer(self, nodeset: NodeSet) -> bool:
        """Whether somebody wants something else of a NodeSet since it was read."""
        now = self.nodesets.get(nodeset.metadata.key)
        return now is not None and (now.metadata.uid, now.metadata.generation) != (
            nodeset.metadata.uid,
            nodeset.metadata.generation,
        )

    def secret_hash(self, namespace: str, ref: SecretKeySelector) -> str:
        """Hash of a Secret's data; empty while the Secret or its key is absent."""
        key = f"{namespace}/{ref.name}"
        secret = self.secrets.get(key)
        if secret is None or ref.key not in (secret.data or {}):
            self._hashes.pop(key, None)
            return ""
        version = f"{secret.metadata.uid} {secret.metadata.resource_version}"
        seen, found = self._hashes.get(key, ("", ""))
        if seen != version:
            found = secret_digest(secret.data)
            self._hashes[key] = version, found
        return found

    def _secret_seen(self, old: Secret | None, new: Secret | None) -> None:
        if (one := gone(old, new)) is not None:
            self._hashes.pop(one.metadata.key, None)
            self._rings.pop(one.metadata.key, None)

    def ring(self, controller: Controller) -> Ring | None:
        """The key ring of a cluster, once there is one; none of an outside slurmctld."""
        key = f"{controller.metadata.namespace}/{names.key_ring(controller)}"
        secret = None if controller.spec.external else self.secrets.get(key)
        if secret is None:
            self._rings.pop(key, None)
            return None
        version = f"{secret.metadata.uid} {secret.metadata.resource_version}"
        seen, found = self._rings.get(key, ("", None))
        if seen != version:
            found = keyring.read(secret.data)
            self._rings[key] = version, found
        return found

    def rings_of(self, accounting: Accounting) -> list[Controller]:
        """The Controllers with whose slurm.key slurmdbd is to go along, by name."""
        return sharing_key(accounting, self.caches)

    def sssd_hash(self, namespace: str, ref: SecretKeySelector | None) -> str | Finding:
        """Hash of sssd.conf, empty without a reference, or that it is absent.

        Over the one value that is named, as slurm-operator does it: what else is in the Secret
        concerns no pod.
        """
        if ref is None:
            return ""
        place = (f"{namespace}/{ref.name}", ref.key)
        secret = self.secrets.get(place[0])
        if secret is not None and ref.key in (secret.data or {}):
            version = f"{secret.metadata.uid} {secret.metadata.resource_version}"
            seen, found = self._sssd.get(place, ("", ""))
            if seen != version:
                found = digest(self.secret_value(namespace, ref) or b"")
                self._sssd[place] = version, found
            return found
        self._sssd.pop(place, None)
        return Finding(
            False,
            "SecretNotFound",
            f"sssdConfRef: there is no Secret {ref.name} with a key {ref.key} in namespace "
            f"{namespace}. Create it, or leave the reference out",
        )

    def sssd_of(self, nodeset: NodeSet) -> str | Finding:
        """As `sssd_hash`, of the sssd.conf that workers are given."""
        return self.sssd_hash(nodeset.metadata.namespace, nodeset.spec.workers_sssd_conf_ref)

    def secret_value(self, namespace: str, ref: SecretKeySelector) -> bytes | None:
        """One value of a Secret; None while it is absent or is not base64."""
        secret = self.secrets.get(f"{namespace}/{ref.name}")
        text = (secret.data or {}).get(ref.key) if secret is not None else None
        if text is None:
            return None
        try:
            return base64.b64decode(text, validate=True)
        except binascii.Error:
            return None

    def jwks(self, namespace: str, ref: ConfigMapKeySelector) -> str | None:
        """The text of a JWKS file; None while it is absent."""
        config_map = self.config_maps.get(f"{namespace}/{ref.name}")
        return _texts(config_map).get(ref.key) if config_map is not None else None

    def makes_key(self, namespace: str, name: str) -> bool:
        """Whether a Secret is one that a Controller of the namespace has generated for itself."""
        return any(
            (one.spec.slurm_key_ref is None and name == names.generated_slurm_key(one))
            or (one.spec.effective_jwt_key_ref is None and name == names.generated_jwt_key(one))
            for one in self.controllers
            if one.metadata.namespace == namespace
        )

    def slurmctld_pods(self, controller: Controller) -> tuple[Pod, ...]:
        """The pods of a Controller's slurmctld: the active one first, else as Slurm has them."""
        space = controller.metadata.namespace
        keys = [
            f"{space}/{names.controller_pod(controller, number)}"
            for number in range(controller.spec.replicas)
        ]
        found = [pod for key in keys if (pod := self.pods.get(key)) is not None]
        return tuple(sorted(found, key=lambda pod: not is_active(MARKS, pod)))

    def pods_labelled(self, namespace: str, component: str, instance: str) -> tuple[Pod, ...]:
        """Pods of one workload of ours, by name."""
        wanted = app_labels.selector_labels(component, instance)
        found = [
            pod
            for pod in self.pods_in.get(namespace)
            if wanted.items() <= pod.metadata.labels.items()
        ]
        return tuple(sorted(found, key=lambda pod: pod.metadata.name))

    def honoured_by(self, token: Token) -> list[str]:
        """Keys of the Controllers whose slurmctld has the key that a Token is signed with."""
        return controllers_accepting_token(token, self.caches)


def _texts(config_map: ConfigMap) -> Mapping[str, str]:
    """All files of a ConfigMap; what is not UTF-8 in them is kept as surrogates."""
    if not config_map.binary_data:
        return config_map.data or {}
    binary = {
        name: base64.b64decode(value).decode(errors="surrogateescape")
        for name, value in config_map.binary_data.items()
    }
    return binary | (config_map.data or {})


def _owner_uid(obj: KubeObject) -> list[str]:
    owner = obj.metadata.controller
    return [owner.uid] if owner is not None else []
