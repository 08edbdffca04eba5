"""Which lists of Kubernetes' own kinds are maps in disguise, and which maps are one value.

Source: Kubernetes API reference, `patchMergeKey`, `x-kubernetes-list-map-keys` and
`x-kubernetes-map-type: atomic`, for the kinds that a Slurm cluster is made of.
"""

from __future__ import annotations

from typing import Any, cast

from penstock.api.kubernetes.meta import Json

MERGE_KEYS: dict[str, tuple[str, ...]] = {
    "conditions": ("type",),
    "containers": ("name",),
    "env": ("name",),
    "ephemeralContainers": ("name",),
    "hostAliases": ("ip",),
    "imagePullSecrets": ("name",),
    "initContainers": ("name",),
    "ownerReferences": ("uid",),
    "volumeDevices": ("devicePath",),
    "volumeMounts": ("mountPath",),
    "volumes": ("name",),
}
SETS = frozenset({"finalizers"})
ATOMIC = frozenset(
    {
        "configMapKeyRef",
        "fieldRef",
        "matchLabels",
        "nodeSelector",
        "resourceFieldRef",
        "secretKeyRef",
        "selector",
    }
)
DEFAULTED = frozenset(
    {"apiVersion", "creationTimestamp", "defaultMode", "kind", "protocol", "status", "volumeMode"}
)
"""Fields to which an API server gives a value when they are left out of such a list or map."""


def merge_keys(name: str, items: list[Any]) -> tuple[str, ...]:
    """Fields that identify the items of the list `name`; empty for an atomic list."""
    if name == "ports":
        # Of containers and of Services; both default the protocol, which is then no key here.
        first: Any = items[0] if items else None
        if isinstance(first, dict):
            return ("containerPort",) if "containerPort" in first else ("port",)
        return ()
    return MERGE_KEYS.get(name, ())


def same_item(one: Json, other: Any, keys: tuple[str, ...]) -> bool:
    """Whether two items of a list are the same one."""
    if not isinstance(other, dict):
        return False
    others = cast("Json", other)
    return all(one.get(key) == others.get(key) for key in keys)
