"""What is wrong with an object because of the objects around it.

A schema, CEL and `validate.problems` see one object. These rules see those of the same namespace,
as they are known at this moment: nothing may depend on them alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from penstock.api.kubernetes.meta import KubeObject
from penstock.api.penstock.partition import Partition
from penstock.api.slinky import names
from penstock.api.slinky.accounting import Accounting, AccountingSpec
from penstock.api.slinky.controller import Controller, ControllerSpec
from penstock.api.slinky.loginset import LoginSet
from penstock.api.slinky.nodeset import NodeSet
from penstock.api.slinky.restapi import RestApi
from penstock.api.slinky.token import Token, TokenSpec
from penstock.api.slinky.validation import Problem
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
_WAITED = "it is waited for"


@dataclass(frozen=True, slots=True)
class Reference:
    """A field that names another object of the namespace."""

    path: str
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Neighbours:
    """What stands around an object; itself is not among them."""

    nodesets: tuple[NodeSet, ...] = ()
    """Of the same Controller."""
    partitions: tuple[Partition, ...] = ()
    """Of the same Controller."""
    absent: tuple[Reference, ...] = ()
    """Objects that it names and that are not known to be there."""
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Names of the files in the ConfigMaps that it names, as far as those are there."""
    users: tuple[str, ...] = ()
    """Objects that name it, as `Kind name`."""


def references(obj: KubeObject) -> Iterator[Reference]:
    """The objects that an object names, as far as it cannot do without them."""
    match obj:
        case Controller():
            spec = obj.spec
            yield from _keys(spec)
            if spec.jwks_key_ref is not None:
                yield Reference("spec.jwksKeyRef.name", "ConfigMap", spec.jwks_key_ref.name)
            if spec.accounting_ref is not None:
                yield Reference("spec.accountingRef.name", "Accounting", spec.accounting_ref.name)
            for path, name in _config_maps(obj):
                yield Reference(path, "ConfigMap", name)
        case NodeSet():
            yield Reference("spec.controllerRef.name", "Controller", obj.spec.controller_ref.name)
            ssh = obj.spec.ssh
            if ssh is not None and ssh.enabled and ssh.sssd_conf_ref is not None:
                yield Reference("spec.ssh.sssdConfRef.name", "Secret", ssh.sssd_conf_ref.name)
        case LoginSet():
            yield Reference("spec.controllerRef.name", "Controller", obj.spec.controller_ref.name)
            if obj.spec.sssd_conf_ref is not None:
                yield Reference("spec.sssdConfRef.name", "Secret", obj.spec.sssd_conf_ref.name)
        case RestApi() | Partition():
            yield Reference("spec.controllerRef.name", "Controller", obj.spec.controller_ref.name)
        case Accounting():
            spec = obj.spec
            yield from _keys(spec)
            if spec.storage_config is not None:
                password = spec.storage_config.password_key_ref.name
                yield Reference("spec.storageConfig.passwordKeyRef.name", "Secret", password)
        case Token():
            yield from _keys(obj.spec)
        case _:
            pass


def _keys(spec: ControllerSpec | AccountingSpec | TokenSpec) -> Iterator[Reference]:
    """The keys that it names; a Token has no slurm.key."""
    if not isinstance(spec, TokenSpec) and spec.slurm_key_ref is not None:
        yield Reference("spec.slurmKeyRef.name", "Secret", spec.slurm_key_ref.name)
    if spec.effective_jwt_key_ref is not None:
        yield _jwt(spec.effective_jwt_key_ref.name, older=spec.jwt_key_ref is None)


def conflicts(obj: KubeObject, around: Neighbours) -> Iterator[Problem]:
    """What must not be stored beside what is there."""
    match obj:
        case NodeSet():
            for other in around.nodesets:
                yield from _same_nodes(obj, other)
        case Controller():
            for path, name in _config_maps(obj):
                taken = sorted(OURS.intersection(around.files.get(name, ())))
                if path.startswith("spec.configFileRefs") and taken:
                    yield Problem(
                        path,
                        f"ConfigMap {name} has {', '.join(taken)}, which the operator writes: move "
                        "its lines to spec.extraConf of the Controller or the Accounting",
                    )
        case _:
            pass


def hints(obj: KubeObject, around: Neighbours) -> Iterator[str]:
    """What a user should know and what keeps nothing from being stored."""
    for one in around.absent:
        yield f"{one.path}: there is no {one.kind} {one.name} in this namespace yet; {_WAITED}"
    match obj:
        case Controller():
            yield from _files(obj, around)
        case Partition():
            same = [
                f"Partition {one.metadata.name}"
                for one in around.partitions
                if one.slurm_name == obj.slurm_name
            ]
            same += [
                f"NodeSet {one.metadata.name}"
                for one in around.nodesets
                if one.spec.partition
                and one.spec.partition.enabled
                and names.partition_name(one) == obj.slurm_name
            ]
            if same:
                yield (
                    f"spec.name: {obj.slurm_name} is declared by {list_some(same)} already, which "
                    "keeps it; choose another name, or take it out there"
                )
        case _:
            pass


def farewell(obj: KubeObject, around: Neighbours) -> Iterator[str]:
    """What a user should know who deletes an object."""
    if not around.users:
        return
    match obj:
        case Controller():
            yield (
                f"{list_some(around.users)} belong to this Controller: their pods stay, and "
                "nothing is drained or scaled, until there is a Controller of this name again"
            )
        case Accounting():
            yield (
                f"Records of {list_some(around.users)} wait in slurmctld until there is an "
                "Accounting of this name again"
            )
        case _:
            pass


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


def _files(obj: Controller, around: Neighbours) -> Iterator[str]:
    places: dict[str, str] = {}
    for path, name in _config_maps(obj):
        for file in around.files.get(name, ()):
            if path.startswith("spec.configFileRefs") and file not in KNOWN | OURS:
                yield f"{path}: no daemon of Slurm looks for {file} of ConfigMap {name} by itself"
            before = places.setdefault(file, name)
            if before != name:
                yield f"{path}: {file} is in ConfigMap {before} too; only one of them is used"


def _same_nodes(obj: NodeSet, other: NodeSet) -> Iterator[Problem]:
    """A NodeSet whose nodes Slurm could not tell from those of another."""
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
