"""Put Penstock into a cluster from the manifests of this checkout, and take it out again."""

from collections.abc import Iterable
from typing import Any, cast

import yaml

from penstock.local.errors import LocalError
from penstock.local.recipes import ROOT
from penstock.local.target import Images, Target

Document = dict[str, Any]

SYSTEM = "penstock-system"
MARK = "penstock.dev/demo"
"""Label of what a demo made where nothing was before: only that is removed again."""
_SLURM_IMAGE = "--slurm-image="
_HOOKS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
_MARKED = ("Namespace", "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding", *_HOOKS)


def documents(*paths: str) -> list[Document]:
    """The objects of YAML files or folders, by their place in the checkout."""
    found: list[Document] = []
    for name in paths:
        path = ROOT / name
        for file in sorted(path.glob("*.yaml")) if path.is_dir() else [path]:
            found += [cast("Document", one) for one in yaml.safe_load_all(file.read_text()) if one]
    return found


def operator(images: Images) -> list[Document]:
    """The operator's manifests, with the images that the cluster has."""
    found = documents("deploy/operator.yaml")
    for one in found:
        if one["kind"] == "Deployment":
            container = one["spec"]["template"]["spec"]["containers"][0]
            container["image"] = images.operator
            given = [one for one in container["args"] if not one.startswith(_SLURM_IMAGE)]
            container["args"] = [*given, f"{_SLURM_IMAGE}{images.slurm}"]
    return found


def apply(target: Target, objects: Iterable[Document], *, force: bool = True) -> list[str]:
    """Apply all; new objects are marked as the demo's. Returns kubectl's output.

    The manifests win over fields that somebody else has set, unless `force` is false.
    """
    marked = [_marked(target, one) for one in objects]
    options = ("--server-side", *(("--force-conflicts",) if force else ()))
    said = target.kubectl("apply", *options, "-f", "-", stdin=yaml.safe_dump_all(marked))
    return said.splitlines()


def install(target: Target, images: Images) -> None:
    """Kinds and operator; returns when the operator is there and the kinds can be used."""
    kinds = documents("deploy/crds")
    apply(target, kinds)
    target.kubectl(
        "wait",
        "--for=condition=Established",
        "--timeout=60s",
        *(f"crd/{one['metadata']['name']}" for one in kinds),
    )
    apply(target, operator(images))
    target.kubectl(
        "rollout", "status", "deployment/penstock-operator", "-n", SYSTEM, "--timeout=180s"
    )


def remove(target: Target) -> None:
    """Take out what `install` made; kinds that somebody uses by now are left, with a word."""
    kinds = [one["metadata"]["name"] for one in documents("deploy/crds")]
    selector = ("-l", f"{MARK}=true", "--ignore-not-found")
    used = [name for name in kinds if target.has("crd", name) and target.has(name, "-A")]
    hooks = ",".join(_HOOKS).lower()
    target.kubectl("delete", f"{hooks},clusterrolebinding,clusterrole,namespace", *selector)
    if used:
        raise LocalError(f"These kinds are in use and were left: {', '.join(used)}.")
    target.kubectl("delete", "crd", *selector)


def _marked(target: Target, one: Document) -> Document:
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
    return {**one, "metadata": {**meta, "labels": {**meta.get("labels", {}), MARK: "true"}}}
