"""One volume for each PVC of a pod.

The kubelet keeps the volumes of a pod by PVC, so it reports only one of two volumes of the same PVC
as mounted, and the pod waits for the other one without end. Kubernetes 1.34 logs `unmounted
volumes=[a], unattached volumes=[], failed to process volumes=[a]: context deadline exceeded`.
Upstream issues: kubernetes/kubernetes#51853 and #132921.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, cast

from penstock.api.kubernetes.meta import Json

_CONTAINERS: Final = ("initContainers", "containers")
_USES: Final = ("volumeMounts", "volumeDevices")


def merge_pvcs(spec: Json) -> Json:
    """The pod spec with one volume for each PVC; mounts of the others are of the first one.

    The volume is writable if one of them was; mounts of a read-only one stay read-only.
    """
    volumes = cast("list[Json]", spec["volumes"])
    kept: dict[str, Json] = {}
    names: dict[str, str] = {}
    read_only: set[str] = set()
    for volume in volumes:
        pvc: Json = volume.get("persistentVolumeClaim") or {}
        if claim := pvc.get("claimName"):
            first = kept.setdefault(claim, volume)
            names[volume["name"]] = first["name"]
            if pvc.get("readOnly"):
                read_only.add(volume["name"])
    merged = {first for name, first in names.items() if name != first}
    if not merged:
        return spec
    writable = {names[name] for name in names if name not in read_only}
    read_only = {name for name in read_only if names[name] in merged & writable}
    out = {**spec, "volumes": list(_volumes(volumes, names, merged & writable))}
    for kind in _CONTAINERS:
        if kind in out:
            out[kind] = [_renamed(one, names, read_only) for one in cast("list[Json]", out[kind])]
    return out


def _volumes(
    volumes: Iterable[Json], names: Mapping[str, str], writable: set[str]
) -> Iterable[Json]:
    for volume in volumes:
        name = volume["name"]
        if names.get(name, name) != name:
            continue
        if name in writable:
            pvc: Json = volume["persistentVolumeClaim"]
            source = {key: value for key, value in pvc.items() if key != "readOnly"}
            volume = {**volume, "persistentVolumeClaim": source}
        yield volume


def _renamed(container: Json, names: Mapping[str, str], read_only: set[str]) -> Json:
    out = dict(container)
    for use in _USES:
        if use in out:
            out[use] = [
                {
                    **one,
                    "name": names.get(one["name"], one["name"]),
                    **(
                        {"readOnly": True}
                        if use == "volumeMounts" and one["name"] in read_only
                        else {}
                    ),
                }
                for one in cast("list[Json]", out[use])
            ]
    return out
