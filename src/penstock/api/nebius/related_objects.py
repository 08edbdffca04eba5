"""Rules of kinds of `slurm.nebius.ai` about the objects around them."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from penstock.api.admission import Reference, RelatedObjects
from penstock.api.kubernetes.resource import ObjectKey
from penstock.api.nebius.active_check import ACTIVE_CHECKS, ActiveCheck
from penstock.api.nebius.common import GROUP
from penstock.api.nebius.jailed_config import JailedConfig
from penstock.api.nebius.names import cluster_of
from penstock.api.nebius.nodeset import NODE_SETS, NodeSet
from penstock.api.nebius.power_state import NodeSetPowerState
from penstock.api.nebius.rule_parts import known_names
from penstock.api.nebius.slurmcluster import SLURM_CLUSTERS, SlurmCluster
from penstock.api.nebius.sssd import cluster_sssd, node_set_sssd
from penstock.base.text import list_some


def cluster_references(obj: SlurmCluster) -> Iterator[Reference]:
    """Secrets and ConfigMaps that a SlurmCluster names."""
    spec, nodes = obj.spec, obj.spec.slurm_nodes
    login, accounting = nodes.login, nodes.accounting
    path = "spec.slurmNodes"
    secrets = [("spec.secrets.sshdKeysName", spec.secrets.sshd_keys_name)]
    maps = [(f"{path}.login.sshdConfigMapRefName", login.sshd_config_map_ref_name)]
    for files in cluster_sssd(obj):
        secrets.append((files.secret_path, "" if files.is_generated else files.secret))
        maps.append((files.certificates_path, files.certificates))
    if nodes.worker is not None:
        name = nodes.worker.sshd_config_map_ref_name
        maps.append((f"{path}.worker.sshdConfigMapRefName", name))
    if accounting.enabled and accounting.external_db.enabled:
        external, key = accounting.external_db, accounting.external_db.password_secret_key_ref
        here = f"{path}.accounting.externalDB"
        if key is not None:
            secrets.append((f"{here}.passwordSecretKeyRef.name", key.name))
        if external.tls is not None:
            secrets.append((f"{here}.tls.serverCASecretRef", external.tls.server_ca_secret_ref))
            secrets.append((f"{here}.tls.clientCertSecretRef", external.tls.client_cert_secret_ref))
    for kind, named in (("Secret", secrets), ("ConfigMap", maps)):
        for here, name in named:
            if name:
                yield Reference(here, kind, name)


def cluster_uses(obj: SlurmCluster) -> tuple[ObjectKey, ...]:
    """The cluster itself, so that its NodeSets and checks are its related objects."""
    return (_cluster_key(obj.metadata.namespace, obj.metadata.name),)


def unknown_node_sets(obj: SlurmCluster, known: Collection[str]) -> Iterator[str]:
    """References of partitions to NodeSets that do not exist, each with the known names.

    Slurm has such a partition without these nodes. They may be created later, so nothing is
    rejected for it.
    """
    declared = obj.spec.partition_configuration
    if declared.config_type != "structured":
        return
    for index, partition in enumerate(declared.partitions):
        missing = [name for name in partition.node_set_refs if name not in known]
        if missing and not partition.is_all:
            yield (
                f"spec.partitionConfiguration.partitions[{index}].nodeSetRefs: there is no NodeSet "
                f"{list_some(missing)} of this cluster yet; {known_names(known)}"
            )


def cluster_warnings(obj: SlurmCluster, related: RelatedObjects) -> Iterator[str]:
    """Partitions of NodeSets that do not exist yet."""
    return unknown_node_sets(obj, {one.metadata.name for one in related.of(NodeSet)})


def cluster_partitions(obj: SlurmCluster) -> tuple[str, ...]:
    """The Slurm partitions that a SlurmCluster declares by name."""
    declared = obj.spec.partition_configuration
    return (
        tuple(one.name for one in declared.partitions)
        if declared.config_type == "structured"
        else ()
    )


def cluster_deletion_warnings(_: SlurmCluster, related: RelatedObjects) -> Iterator[str]:
    """The objects that a deleted SlurmCluster leaves."""
    yield (
        f"{list_some(related.users)} belong to this SlurmCluster: they have no effect until there "
        "is a SlurmCluster of this name again"
    )


def nodeset_references(obj: NodeSet) -> Iterator[Reference]:
    """The cluster and the ConfigMaps that a NodeSet names."""
    spec = obj.spec
    yield Reference("spec.clusterName", SLURM_CLUSTERS.kind, cluster_of(obj), GROUP)
    yield Reference("spec.configMapRefSshd", "ConfigMap", spec.config_map_ref_sshd)
    if (files := node_set_sssd(obj)) is not None:
        yield Reference(files.secret_path, "Secret", "" if files.is_generated else files.secret)
        yield Reference(files.certificates_path, "ConfigMap", files.certificates)


def nodeset_uses(obj: NodeSet) -> tuple[ObjectKey, ...]:
    """The cluster that a NodeSet belongs to."""
    return (_cluster_key(obj.metadata.namespace, cluster_of(obj)),) if cluster_of(obj) else ()


def power_state_references(obj: NodeSetPowerState) -> Iterator[Reference]:
    """The NodeSet of a power state."""
    yield Reference("spec.nodeSetRef", NODE_SETS.kind, obj.spec.node_set_ref, GROUP)


def active_check_references(obj: ActiveCheck) -> Iterator[Reference]:
    """The cluster, the checks and the ConfigMaps that a check names."""
    spec = obj.spec
    name = spec.slurm_cluster_ref_name
    yield Reference("spec.slurmClusterRefName", SLURM_CLUSTERS.kind, name, GROUP)
    for index, check in enumerate(spec.depends_on):
        yield Reference(f"spec.dependsOn[{index}]", ACTIVE_CHECKS.kind, check, GROUP)
    if spec.k8s_job_spec is not None:
        script = spec.k8s_job_spec.script_ref_name
        yield Reference("spec.k8sJobSpec.scriptRefName", "ConfigMap", script)
    if spec.slurm_job_spec is not None:
        script = spec.slurm_job_spec.sbatch_script_ref_name
        yield Reference("spec.slurmJobSpec.sbatchScriptRefName", "ConfigMap", script)


def active_check_uses(obj: ActiveCheck) -> tuple[ObjectKey, ...]:
    """The cluster that a check belongs to."""
    return (_cluster_key(obj.metadata.namespace, obj.spec.slurm_cluster_ref_name),)


def jailed_config_references(obj: JailedConfig) -> Iterator[Reference]:
    """The ConfigMap with the files."""
    yield Reference("spec.configMap.name", "ConfigMap", obj.spec.config_map.name)


def _cluster_key(namespace: str, name: str) -> ObjectKey:
    return SLURM_CLUSTERS.key(namespace, name)
