"""What a PodTemplate that a check names adds to the check's pods: a strategic merge.

Lists with a key are merged by it, all other lists are replaced, maps are merged. Source of the
keys: Kubernetes API reference, `patchMergeKey` of PodSpec and Container.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, cast

from penstock.api.kubernetes.meta import Json

_KEYS: Final = {
    "initContainers": "name",
    "containers": "name",
    "volumes": "name",
    "imagePullSecrets": "name",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
    "env": "name",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "ports": "containerPort",
}
_WHOLE: Final = frozenset({"volumes"})
"""A volume is replaced: one with two sources is invalid."""
_DEFAULTS: Final[Json] = {"restartPolicy": "Always", "terminationMessagePolicy": "File"}
"""What the API server writes into each PodTemplate. A Job may not restart its pods for ever, and
the status shows the last log lines of a container that failed."""


def merged(base: Json, over: Json) -> Json:
    """The pod template of a check with that of a PodTemplate merged over it.

    Labels and annotations of the operator stay: by them it finds the pods.
    """
    if not over:
        return base
    metadata: Json = over.get("metadata") or {}
    found: Json = {}
    for key in ("labels", "annotations"):
        theirs: Json = metadata.get(key) or {}
        found[key] = theirs | base["metadata"].get(key, {})
    return {"metadata": found, "spec": _merge(base["spec"], over.get("spec") or {})}


def _merge(base: Json, over: Json) -> Json:
    out = dict(base)
    for key, value in over.items():
        old = out.get(key)
        if value is None or (old is not None and _DEFAULTS.get(key) == value):
            continue
        if key in _KEYS and isinstance(value, list) and isinstance(old, list):
            entries = cast("list[Json]", value)
            out[key] = _by_key(key, cast("list[Json]", old), entries)
        elif isinstance(value, dict) and isinstance(old, dict):
            out[key] = _merge(cast("Json", old), cast("Json", value))
        else:
            out[key] = value
    return out


def _by_key(field: str, base: Iterable[Json], over: Iterable[Json]) -> list[Json]:
    key = _KEYS[field]
    out: dict[Any, Json] = {one.get(key): one for one in base}
    for one in over:
        old = out.get(one.get(key))
        out[one.get(key)] = one if old is None or field in _WHOLE else _merge(old, one)
    return list(out.values())
