"""Fields of a pod that are declared empty, which nearly always means the same as not at all.

One chart writes `resources: {}` and `tolerations: []`, another one leaves them out. The API server
stores some of them, so a pod template that has them is another one than a template without.
"""

from __future__ import annotations

from typing import Any, cast

from penstock.api.kubernetes.meta import Json

EMPTY: tuple[Any, ...] = (None, "", {}, [])
MEANT = frozenset(
    {
        "emptyDir",
        "downwardAPI",
        "projected",
        "labelSelector",
        "namespaceSelector",
        "selector",
        "storageClassName",
        "seLinuxOptions",
    }
)
"""Fields in which an empty value says something: a volume without settings, a selector of all, no
storage class. Source: Kubernetes API reference, Volume, LabelSelector, PersistentVolumeClaimSpec,
SecurityContext."""
NAMED = frozenset({"labels", "annotations", "matchLabels", "nodeSelector", "volumeAttributes"})
"""Maps whose keys users choose: there a key with an empty value is one."""


def said(value: Any, *, under: str = "") -> Any:
    """The value without fields that are empty at any depth; `false` and 0 say something.

    Items of lists stay. Whether the whole says nothing is for the caller.
    """
    if isinstance(value, dict):
        out: Json = {}
        for key, given in cast("Json", value).items():
            if given is None:
                continue
            found = said(given, under=key)
            if found not in EMPTY or key in MEANT or (under in NAMED and found == ""):
                out[key] = found
        return out
    if isinstance(value, list):
        return [said(one) for one in cast("list[Any]", value)]
    return value


def spelt_as(wanted: Any, live: Any) -> Any:
    """The wanted value with the empty fields of a live one that mean nothing.

    What an earlier version wrote is not taken away for its own sake: a template without it would be
    another one, and replace the pods.
    """
    if wanted == live:
        return wanted
    if isinstance(wanted, dict) and isinstance(live, dict):
        fields, had = cast("Json", wanted), cast("Json", live)
        # Most values are neither: this is asked for each workload in each reconcile.
        out: Json = {
            key: spelt_as(one, had.get(key)) if isinstance(one, (dict, list)) else one
            for key, one in fields.items()
        }
        for key, one in had.items():
            if key not in out and key not in MEANT and one != "" and said(one) in EMPTY:
                out[key] = one
        return out
    if isinstance(wanted, list) and isinstance(live, list):
        return _items_spelt_as(cast("list[Any]", wanted), cast("list[Any]", live))
    return cast("Any", wanted)


def _items_spelt_as(wanted: list[Any], live: list[Any]) -> list[Any]:
    if len(wanted) != len(live):
        return wanted
    return [
        spelt_as(one, other) if _named(one) == _named(other) else one
        for one, other in zip(wanted, live, strict=True)
    ]


def _named(item: Any) -> Any:
    return cast("Json", item).get("name") if isinstance(item, dict) else None
