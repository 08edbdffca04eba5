"""Rules of Slinky's kinds about the objects around one.

A schema, CEL and `validation` see one object. These rules see those of the same namespace, as they
are known at this moment: nothing may depend on them alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.api.admission import Problem, Reference, RelatedObjects
from penstock.api.cluster.cluster_ref import CONTROLLER, ControllerRef, controller_key
from penstock.api.kubernetes.resource import ObjectKey
from penstock.api.slinky import names
from penstock.api.slinky.accounting import ACCOUNTINGS, Accounting, AccountingSpec
from penstock.api.slinky.controller import Controller, ControllerSpec
from penstock.api.slinky.loginset import LoginSet
from penstock.api.slinky.nodeset import NodeSet
from penstock.api.slinky.restapi import RestApi
from penstock.api.slinky.token import Token, TokenSpec
from penstock.base.text import list_some

OURS = frozenset({"slurm.conf", "slurmdbd.conf"})
"""Files that the operator writes itself."""
KNOWN = frozenset(
    {
        "acct_gather.conf",
        "burst_buffer.conf",
        "cgroup.conf",
        "cli_filter.lua",
        "gres.conf",
        "helpers.conf",
        "job_container.conf",
        "job_submit.lua",
        "mpi.conf",
        "namespace.yaml",
        "oci.conf",
        "plugstack.conf",
        "topology.conf",
        "topology.yaml",
    }
)
"""Files that Slurm's daemons look for by name. Source: the man pages of these names."""


def controller_references(obj: Controller) -> Iterator[Reference]:
    """The keys, the Accounting and the ConfigMaps that a Controller names."""
    spec = obj.spec
    yield from _keys(spec)
    if spec.jwks_key_ref is not None:
        yield Reference("spec.jwksKeyRef.name", "ConfigMap", spec.jwks_key_ref.name)
    if spec.accounting_ref is not None:
        yield Reference(
            "spec.accountingRef.name", ACCOUNTINGS.kind, spec.accounting_ref.name, ACCOUNTINGS.group
        )
    for path, name in _config_maps(obj):
        yield Reference(path, "ConfigMap", name)


def nodeset_references(obj: NodeSet) -> Iterator[Reference]:
    """The Controller and the sssd.conf that a NodeSet names."""
    yield _cluster(obj.spec.controller_ref)
    ssh = obj.spec.ssh
    if ssh is not None and ssh.enabled and ssh.sssd_conf_ref is not None:
        yield Reference("spec.ssh.sssdConfRef.name", "Secret", ssh.sssd_conf_ref.name)


def loginset_references(obj: LoginSet) -> Iterator[Reference]:
    """The Controller and the sssd.conf that a LoginSet names."""
    yield _cluster(obj.spec.controller_ref)
    if obj.spec.sssd_conf_ref is not None:
        yield Reference("spec.sssdConfRef.name", "Secret", obj.spec.sssd_conf_ref.name)


def restapi_references(obj: RestApi) -> Iterator[Reference]:
    """The Controller that a RestApi names."""
    yield _cluster(obj.spec.controller_ref)


def accounting_references(obj: Accounting) -> Iterator[Reference]:
    """The keys and the password that an Accounting names."""
    yield from _keys(obj.spec)
    if obj.spec.storage_config is not None:
        password = obj.spec.storage_config.password_key_ref.name
        yield Reference("spec.storageConfig.passwordKeyRef.name", "Secret", password)


def token_references(obj: Token) -> Iterator[Reference]:
    """The key that a Token names."""
    yield from _keys(obj.spec)


def _cluster(ref: ControllerRef) -> Reference:
    group, kind = CONTROLLER
    return Reference("spec.controllerRef.name", kind, ref.name, group)


def _keys(spec: ControllerSpec | AccountingSpec | TokenSpec) -> Iterator[Reference]:
    """The keys that it names; a Token has no slurm.key."""
    if not isinstance(spec, TokenSpec) and spec.slurm_key_ref is not None:
        yield Reference("spec.slurmKeyRef.name", "Secret", spec.slurm_key_ref.name)
    if not isinstance(spec, TokenSpec) and spec.munge_key_ref is not None:
        yield Reference("spec.mungeKeyRef.name", "Secret", spec.munge_key_ref.name)
    if spec.effective_jwt_key_ref is not None:
        yield _jwt(spec.effective_jwt_key_ref.name, older=spec.jwt_key_ref is None)


def controller_uses(obj: Controller) -> tuple[ObjectKey, ...]:
    """The Accounting of a Controller."""
    ref = obj.spec.accounting_ref
    return (ACCOUNTINGS.key(obj.metadata.namespace, ref.name),) if ref is not None else ()


def member_uses(obj: NodeSet | LoginSet | RestApi) -> tuple[ObjectKey, ...]:
    """The Controller that an object belongs to."""
    return controller_key(obj.spec.controller_ref, obj.metadata.namespace)


def nodeset_partitions(obj: NodeSet) -> tuple[str, ...]:
    """The partition over the nodes of a NodeSet, if it is enabled."""
    enabled = obj.spec.partition is not None and obj.spec.partition.enabled
    return (names.partition_name(obj),) if enabled else ()


def nodeset_conflicts(obj: NodeSet, related: RelatedObjects) -> Iterator[Problem]:
    """Nodes, features and partitions that another NodeSet of the cluster has."""
    for other in related.of(NodeSet):
        yield from _same_nodes(obj, other)


def controller_conflicts(obj: Controller, related: RelatedObjects) -> Iterator[Problem]:
    """Files of the user's ConfigMaps that the operator writes."""
    for path, name in _config_maps(obj) if not obj.spec.external else ():
        taken = sorted(OURS.intersection(related.files.get(name, ())))
        if path.startswith("spec.configFileRefs") and taken:
            yield Problem(
                path,
                f"ConfigMap {name} has {', '.join(taken)}, which the operator writes: move "
                "its lines to spec.extraConf of the Controller or the Accounting",
            )


def controller_deletion_warnings(_: Controller, related: RelatedObjects) -> Iterator[str]:
    """The objects that a deleted Controller leaves."""
    yield (
        f"{list_some(related.users)} belong to this Controller: their pods stay, and nothing is "
        "drained or scaled, until there is a Controller of this name again"
    )


def accounting_deletion_warnings(_: Accounting, related: RelatedObjects) -> Iterator[str]:
    """The Controllers that a deleted Accounting leaves."""
    yield (
        f"Records of {list_some(related.users)} wait in slurmctld until there is an Accounting "
        "of this name again"
    )


def _jwt(name: str, *, older: bool) -> Reference:
    return Reference(f"spec.{'jwtHs256KeyRef' if older else 'jwtKeyRef'}.name", "Secret", name)


def _config_maps(obj: Controller) -> Iterator[tuple[str, str]]:
    """Path and name of each ConfigMap with files."""
    spec = obj.spec
    for key, refs in (
        ("configFileRefs", spec.config_file_refs),
        ("prologScriptRefs", spec.prolog_script_refs),
        ("epilogScriptRefs", spec.epilog_script_refs),
        ("prologSlurmctldScriptRefs", spec.prolog_slurmctld_script_refs),
        ("epilogSlurmctldScriptRefs", spec.epilog_slurmctld_script_refs),
    ):
        for index, ref in enumerate(refs or ()):
            yield f"spec.{key}[{index}].name", ref.name


def controller_warnings(obj: Controller, related: RelatedObjects) -> Iterator[str]:
    """Files of the user's ConfigMaps that no daemon reads, and those that are there twice."""
    places: dict[str, str] = {}
    for path, name in _config_maps(obj) if not obj.spec.external else ():
        for file in related.files.get(name, ()):
            if path.startswith("spec.configFileRefs") and file not in KNOWN | OURS:
                yield f"{path}: no daemon of Slurm looks for {file} of ConfigMap {name} by itself"
            before = places.setdefault(file, name)
            if before != name:
                yield f"{path}: {file} is in ConfigMap {before} too; only one of them is used"


def _same_nodes(obj: NodeSet, other: NodeSet) -> Iterator[Problem]:
    """A NodeSet whose Slurm nodes have the names or features of another NodeSet's."""
    path = "spec.template.spec.hostname" if names.template_hostname(obj) else "metadata.name"
    there = other.metadata.name
    if obj.spec.scaling_mode == other.spec.scaling_mode == "StatefulSet":
        taken = _meeting(obj, other)
        if taken:
            yield Problem(
                path,
                f"node {taken} would be one of this NodeSet and of NodeSet {there}: choose a "
                "spec.template.spec.hostname of its own, such as "
                f"{obj.metadata.name}-x-",
            )
            return
    name = names.partition_name(obj)
    if name == names.partition_name(other):
        yield Problem(
            path,
            f"NodeSet {there} of the same Controller has the feature and partition {name} already: "
            "choose a spec.template.spec.hostname of its own",
        )


def _meeting(one: NodeSet, other: NodeSet) -> str:
    """A Slurm node name that two NodeSets have in common; empty when they have none."""
    if any(each.spec.template.spec.get("hostNetwork") for each in (one, other)):
        return ""
    short, long = sorted((one, other), key=lambda each: len(_prefix(each)))
    rest = _prefix(long).removeprefix(_prefix(short))
    if not _prefix(long).startswith(_prefix(short)) or (rest and not rest.isdigit()):
        return ""
    if not rest:
        # Grown together later, they would meet then: no number of replicas makes it right.
        return names.slurm_node_name(one, 0)
    known = {names.slurm_node_name(short, number) for number in range(short.spec.replicas)}
    found = (names.slurm_node_name(long, number) for number in range(long.spec.replicas))
    return next((each for each in found if each in known), "")


def _prefix(obj: NodeSet) -> str:
    return names.template_hostname(obj) or f"{obj.metadata.name}-"
