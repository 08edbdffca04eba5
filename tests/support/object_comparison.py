"""Compares a manifest with an object of the original, read back from an API server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, cast

from penstock.api.kubernetes.meta import Json
from penstock.api.kubernetes.quantity import quantity

_KEYS: Final = {
    "containers": "name",
    "initContainers": "name",
    "env": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "items": "path",
    "ownerReferences": "kind",
    "rules": "resources",
    "subjects": "kind",
}
"""Lists that are compared item by item, by this key; others as a whole."""
_AMOUNTS: Final = frozenset({"limits", "requests"})
_DEFAULTS: Final[dict[str, tuple[Any, ...]]] = {
    "apiVersion": ("v1",),
    "backoffLimit": (6,),
    "completionMode": ("NonIndexed",),
    "dnsPolicy": ("ClusterFirst",),
    "externalTrafficPolicy": ("Cluster",),
    "failureThreshold": (3,),
    "internalTrafficPolicy": ("Cluster",),
    "ipFamilies": (["IPv4"],),
    "ipFamilyPolicy": ("SingleStack",),
    "manualSelector": (False,),
    "periodSeconds": (10,),
    "podReplacementPolicy": ("TerminatingOrFailed",),
    "progressDeadlineSeconds": (600,),
    "protocol": ("TCP",),
    "revisionHistoryLimit": (10,),
    "schedulerName": ("default-scheduler",),
    "sessionAffinity": ("None",),
    "strategy": (
        {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
    ),
    "successThreshold": (1,),
    "suspend": (False,),
    "terminationGracePeriodSeconds": (30,),
    "terminationMessagePath": ("/dev/termination-log",),
    "timeoutSeconds": (1,),
    "type": ("", "ClusterIP"),
    "value": ("",),
}
"""Values that the API server gives a field that nobody sets."""
_MEANT_EMPTY: Final = frozenset({"emptyDir"})


def differences(ours: Json, theirs: Json) -> list[str]:
    """Paths at which two objects differ. Of what only one of them has, the path of the whole."""
    return list(_compare(_plain(ours), _plain(theirs), ""))


def _compare(ours: Any, theirs: Any, path: str) -> Iterator[str]:
    if not (isinstance(ours, dict) and isinstance(theirs, dict)):
        if ours != theirs:
            yield path
        return
    left, right = cast("Json", ours), cast("Json", theirs)
    for key in dict.fromkeys([*left, *right]):
        here = f"{path}{key}" if key.startswith("[") else f"{path}.{key}".removeprefix(".")
        if key not in left or key not in right:
            yield here
        else:
            yield from _compare(left[key], right[key], here)


def _plain(value: Any, *, under: str = "", above: str = "") -> Any:
    """The value without defaults; a list that has keys as a mapping."""
    if isinstance(value, dict):
        out: Json = {}
        for key, one in cast("Json", value).items():
            if one in _DEFAULTS.get(key, ()) or (key, above) == ("restartPolicy", "template"):
                continue
            if key == "clusterIPs" or (key == "clusterIP" and one != "None"):
                continue
            if (found := _plain(one, under=key, above=under)) not in ({}, []) or (
                key in _MEANT_EMPTY
            ):
                out[key] = str(quantity(one)) if under in _AMOUNTS else found
        return out
    if isinstance(value, list):
        items = cast("list[Any]", value)
        if key := _KEYS.get(under):
            return {f"[{_mark(one, key)}]": _plain(one) for one in items}
        return [_plain(one) for one in items]
    return value


def _mark(item: Any, key: str) -> str:
    found = cast("Json", item).get(key)
    return "+".join(cast("list[str]", found)) if isinstance(found, list) else str(found)
