"""Put Penstock into a cluster from the manifests of this checkout, and take it out again.

A Lease is in the namespace of its operator, so two operators of one API group would both lead.
While the operator of SlurmClusters is there (`penstock.local.soperator`), this one leads
`slinky.slurm.net` alone.
"""

from collections.abc import Iterable, Sequence
from typing import Any, cast

from penstock.api.penstock import backup_group
from penstock.base import yaml_text
from penstock.controllers.runtime.apis import APIS, NEBIUS, SLINKY, VARIABLE
from penstock.local.errors import LocalError
from penstock.local.recipes import ROOT
from penstock.local.target import Images, Target

Document = dict[str, Any]

SYSTEM = "penstock-system"
"""Namespace of the operator of Controllers."""
OPERATOR = "penstock-operator"
"""Its Deployment."""
SOPERATOR = "soperator"
"""Namespace of the operator of SlurmClusters."""
MANAGER = "soperator-manager"
"""Its Deployment."""
MARK = "penstock.dev/demo"
"""Label of what a demo made where nothing was before: only that is removed again."""
SLINKY_DEMO, SLURMCLUSTER_DEMO = "true", "slurmcluster"
"""Values of the label: the demo that made an object. Definitions of kinds belong to both."""
_IMAGE = "PENSTOCK_OPERATOR_IMAGE"
_SLURM_IMAGE = "--slurm-image="
_HOOKS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
_MARKED = ("Namespace", "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding", *_HOOKS)
_BACKUPS = {one.resource.plural for one in backup_group.GROUP.kinds}


def documents(*paths: str) -> list[Document]:
    """The objects of YAML files or folders, by their place in the checkout."""
    found: list[Document] = []
    for name in paths:
        path = ROOT / name
        for file in sorted(path.glob("*.yaml")) if path.is_dir() else [path]:
            found += [cast("Document", one) for one in yaml_text.documents(file.read_text()) if one]
    return found


def operator(
    images: Images, apis: Sequence[str] = APIS, manifest: str = "deploy/operator.yaml"
) -> list[Document]:
    """An operator's manifests, with images that the cluster has and the groups that it leads."""
    found = documents(manifest)
    for one in found:
        if one["kind"] == "Deployment":
            container = one["spec"]["template"]["spec"]["containers"][0]
            container["image"] = images.operator
            given = [one for one in container["args"] if not one.startswith(_SLURM_IMAGE)]
            container["args"] = [*given, f"{_SLURM_IMAGE}{images.slurm}"]
            values = {_IMAGE: images.operator, VARIABLE: ",".join(apis)}
            for variable in container["env"]:
                if variable["name"] in values:
                    variable["value"] = values[variable["name"]]
        elif one["kind"] in _HOOKS:
            _drop_rules(one, [group for group in APIS if group not in apis])
    return found


def apply(
    target: Target, objects: Iterable[Document], *, force: bool = True, mark: str = SLINKY_DEMO
) -> list[str]:
    """Apply all; new objects are marked as the demo's. Returns kubectl's output.

    The manifests win over fields that somebody else has set, unless `force` is false.
    """
    marked = [_marked(target, one, mark) for one in objects]
    options = ("--server-side", *(("--force-conflicts",) if force else ()))
    said = target.kubectl("apply", *options, "-f", "-", stdin=yaml_text.dumped(marked))
    return said.splitlines()


def install(target: Target, images: Images) -> None:
    """Kinds and operator; returns when the operator is there and the kinds can be used."""
    apply_kinds(target)
    alone = not target.has("deployment", MANAGER, "-n", SOPERATOR)
    apply(target, operator(images, APIS if alone else (SLINKY,)))
    until_running(target, OPERATOR, SYSTEM)


def apply_kinds(target: Target) -> None:
    """The definitions of all kinds; returns when they can be used."""
    kinds = documents("deploy/crds")
    apply(target, kinds)
    target.kubectl(
        "wait",
        "--for=condition=Established",
        "--timeout=60s",
        *(f"crd/{one['metadata']['name']}" for one in kinds),
    )


def until_running(target: Target, deployment: str, namespace: str) -> None:
    """Wait for the pods of a Deployment's template."""
    target.kubectl(
        "rollout", "status", f"deployment/{deployment}", "-n", namespace, "--timeout=180s"
    )


def is_there(target: Target) -> bool:
    """Whether the operator of Controllers is in the cluster."""
    return target.has("deployment", OPERATOR, "-n", SYSTEM)


def lead(target: Target, apis: Sequence[str]) -> None:
    """Have the operator of Controllers lead these groups and no other."""
    hooks = [one for one in operator(Images("", ""), apis) if one["kind"] in _HOOKS]
    apply(target, hooks)
    value = f"{VARIABLE}={','.join(apis)}"
    target.kubectl("set", "env", f"deployment/{OPERATOR}", value, "-n", SYSTEM)
    until_running(target, OPERATOR, SYSTEM)


def remove(target: Target) -> None:
    """Take out what `install` made; kinds that somebody uses by now are left, with a word."""
    remove_marked(target, SLINKY_DEMO)
    if not target.has("deployment", MANAGER, "-n", SOPERATOR):
        remove_kinds(target)


def remove_marked(target: Target, mark: str) -> None:
    """Delete what a demo made, but for the definitions of kinds."""
    hooks = ",".join(_HOOKS).lower()
    every = f"{hooks},clusterrolebinding,clusterrole,namespace"
    target.kubectl("delete", every, "-l", f"{MARK}={mark}", "--ignore-not-found")


def remove_kinds(target: Target) -> None:
    """Delete the definitions that a demo made. Raises LocalError if there are objects of them."""
    kinds = [one["metadata"]["name"] for one in documents("deploy/crds")]
    used = [name for name in kinds if target.has("crd", name) and target.has(name, "-A")]
    if used:
        raise LocalError(f"These kinds are in use and were left: {', '.join(used)}.")
    target.kubectl("delete", "crd", "-l", f"{MARK}={SLINKY_DEMO}", "--ignore-not-found")


def _drop_rules(hooks: Document, others: Sequence[str]) -> None:
    """Have webhooks not be called for objects of API groups that another operator leads."""
    for hook in hooks["webhooks"]:
        labels = hook.get("objectSelector", {}).get("matchLabels", {})
        theirs = NEBIUS in others and any(key.startswith(NEBIUS) for key in labels)
        # A hook stays without rules: the operator is a field manager of its caBundle, so that
        # without ours an incomplete one would be left.
        hook["rules"] = [rule for rule in hook["rules"] if not theirs and not _is_of(rule, others)]


def _is_of(rule: Document, groups: Sequence[str]) -> bool:
    """Whether a rule is about objects of these API groups, or about Backups of SlurmClusters."""
    backups = NEBIUS in groups and set(rule["resources"]) >= _BACKUPS
    return backups or not set(groups).isdisjoint(rule["apiGroups"])


def _marked(target: Target, one: Document, mark: str) -> Document:
    if one["kind"] not in _MARKED:
        return one
    meta = one["metadata"]
    kind = one["kind"].lower()
    found = target.kubectl(
        "get", kind, meta["name"], "--ignore-not-found", "-o", "jsonpath={.metadata.labels}"
    )
    exists = target.has(kind, meta["name"])
    if exists and MARK not in found:
        return one
    return {**one, "metadata": {**meta, "labels": {**meta.get("labels", {}), MARK: mark}}}
