"""What users write over what we make: Kubernetes' strategic merge, with each wish honoured.

`false` and 0 are wishes. An empty value (`{}`, `[]`, `""`) is one where it takes something of ours
away; elsewhere it means "not set", as null does (`penstock.render.parts.empty_values`). What a
cluster cannot live without (the config server's address, spread and tolerations) is joined, never
lost.
Source of the merge keys: Kubernetes API reference, `patchMergeKey` of Container and PodSpec.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

from penstock.api.kubernetes.meta import Json
from penstock.api.kubernetes.pod_fields import OF_CONTAINERS, OF_PODS
from penstock.render.parts import empty_values as empty
from penstock.render.parts.digest import canonical_json

_PROBES = ("startupProbe", "livenessProbe", "readinessProbe")
_HANDLERS = frozenset({"exec", "httpGet", "tcpSocket", "grpc", "sleep"})
_JOINED_ENV = frozenset({"SACKD_OPTIONS"})


def prune(value: Any) -> Any:
    """The value without null fields at any depth."""
    if isinstance(value, dict):
        fields = cast("Json", value)
        return {k: prune(v) for k, v in fields.items() if v is not None}
    if isinstance(value, list):
        return [prune(item) for item in cast("list[Any]", value)]
    return value


def deep(base: Json, user: Json) -> Json:
    """Maps are merged key by key, everything else is the user's when given."""
    wish: Json = empty.said({k: v for k, v in user.items() if base.get(k) in empty.EMPTY})
    out = base | wish
    for key, value in user.items():
        old = base.get(key)
        if old in empty.EMPTY or value is None:
            continue
        if isinstance(value, dict) and isinstance(old, dict):
            out[key] = deep(cast("Json", old), cast("Json", value))
        else:
            out[key] = empty.said(value)
    return out


def items(value: Any) -> list[Json]:
    """A list of objects out of an opaque spec; absent and null are empty."""
    return [empty.said(item) for item in cast("list[Json]", value or [])]


def union(base: Iterable[Any], user: Iterable[Any]) -> list[Any]:
    """Ours first, then the user's that are not among them."""
    out = list(base)
    seen = {canonical_json(item) for item in out}
    for item in user:
        if (form := canonical_json(item)) not in seen:
            seen.add(form)
            out.append(item)
    return out


def by_key(base: Iterable[Json], user: Iterable[Json], *keys: str) -> list[Json]:
    """A user's entry takes the place of ours with the same `keys`; the rest is appended."""

    def place(entry: Json) -> bytes:
        return canonical_json([entry.get(key) for key in keys])

    out = list(base)
    places: dict[bytes, int] = {}
    for index, entry in enumerate(out):
        places.setdefault(place(entry), index)
    for entry in user:
        at = places.setdefault(place(entry), len(out))
        if at == len(out):
            out.append(entry)
        else:
            out[at] = entry
    return out


def ports(base: Iterable[Json], user: Iterable[Json]) -> list[Json]:
    """A user's port takes the place of ours with the same name, or the same number and protocol."""

    def places(entry: Json) -> Iterator[bytes]:
        yield canonical_json([entry.get("containerPort"), entry.get("protocol", "TCP")])
        if "name" in entry:
            yield canonical_json(entry["name"])

    out = list(base)
    found: dict[bytes, int] = {}
    for index, entry in enumerate(out):
        for place in places(entry):
            found.setdefault(place, index)
    for entry in user:
        at = min((found[one] for one in places(entry) if one in found), default=len(out))
        if at == len(out):
            out.append(entry)
        else:
            for place in places(out[at]):
                found.pop(place, None)
            out[at] = {**out[at], **entry}
        for place in places(out[at]):
            found.setdefault(place, at)
    return out


def container(base: Json, user: Json | None) -> Json:
    """Our container with the user's wishes.

    `args` are appended; `env` (by name), `volumeMounts` (by path) and `ports` are merged; a probe's
    or hook's handler replaces ours; `command` and other lists are replaced; an empty `image` is no
    wish. `SACKD_OPTIONS` is joined, since ours says where slurmctld is. Fields that only a pod
    spec has are left out: the API server rejects them.
    """
    wish = {k: v for k, v in (user or {}).items() if v is not None and k not in OF_PODS}
    out = dict(base)
    if args := wish.pop("args", None):
        out["args"] = [*base.get("args", []), *args]
    if env := items(wish.pop("env", None)):
        out["env"] = _env(base.get("env", []), env)
    if mounts := items(wish.pop("volumeMounts", None)):
        out["volumeMounts"] = by_key(base.get("volumeMounts", []), mounts, "mountPath")
    if numbers := items(wish.pop("ports", None)):
        out["ports"] = ports(base.get("ports", []), numbers)
    for name in _PROBES:
        if probe := empty.said(wish.pop(name, None) or {}):
            out[name] = _handled(base.get(name, {}), probe)
    if hooks := wish.pop("lifecycle", None):
        ours: Json = base.get("lifecycle", {})
        out["lifecycle"] = ours | {
            name: _handled(ours.get(name, {}), said)
            for name, hook in hooks.items()
            if (said := empty.said(hook or {}))
        }
        if not out["lifecycle"]:
            del out["lifecycle"]
    for text in ("image", "name"):
        if wish.get(text) == "":
            del wish[text]
    return deep(out, wish)


def _handled(base: Json, user: Json) -> Json:
    if any(user.get(handler) is not None for handler in _HANDLERS):
        base = {k: v for k, v in base.items() if k not in _HANDLERS}
    return deep(base, user)


def _env(base: Iterable[Json], user: Iterable[Json]) -> list[Json]:
    ours = {entry["name"]: entry for entry in base}
    wishes: list[Json] = []
    for entry in user:
        name = entry["name"]
        if name in _JOINED_ENV and name in ours and "valueFrom" not in entry:
            if "value" not in entry:
                continue
            entry = {"name": name, "value": f"{ours[name]['value']} {entry['value']}".strip()}
        wishes.append(entry)
    return by_key(ours.values(), wishes, "name")


def pod_spec(base: Json, user: Json | None) -> Json:
    """Our pod spec with the user's wishes.

    Containers of our names are merged, others appended; volumes of the same name are replaced
    whole (two sources in one volume are invalid); tolerations, DNS searches and anti-affinity terms
    are ours and the user's. `dNSPolicy`, an old spelling, means `dnsPolicy`. In the host's network
    a pod asks the cluster's DNS unless the user says otherwise: Slurm's daemons find each other by
    names of the cluster, which its machine does not know. Fields that only a container has are left
    out: the API server rejects them.
    """
    wish = {k: v for k, v in (user or {}).items() if v is not None and k not in OF_CONTAINERS}
    if (policy := wish.pop("dNSPolicy", None)) and not wish.get("dnsPolicy"):
        wish["dnsPolicy"] = policy
    out = dict(base)
    for kind in ("initContainers", "containers"):
        if extra := items(wish.pop(kind, None)):
            out[kind] = _containers(base.get(kind, []), extra)
    if volumes := items(wish.pop("volumes", None)):
        out["volumes"] = by_key(base.get("volumes", []), volumes, "name")
    if tolerations := items(wish.pop("tolerations", None)):
        out["tolerations"] = union(base.get("tolerations", []), tolerations)
    if terms := wish.pop("affinity", None):
        out |= {"affinity": found} if (found := _affinity(base.get("affinity", {}), terms)) else {}
    if dns := wish.pop("dnsConfig", None):
        out |= {"dnsConfig": found} if (found := _dns(base.get("dnsConfig", {}), dns)) else {}
    out = deep(out, wish)
    if out.get("hostNetwork"):
        out.setdefault("dnsPolicy", "ClusterFirstWithHostNet")
    return out


def _containers(base: Iterable[Json], user: Iterable[Json]) -> list[Json]:
    out = {entry["name"]: entry for entry in base}
    for entry in user:
        name = entry.get("name", "")
        own = {key: value for key, value in entry.items() if key not in OF_PODS}
        out[name] = container(out[name], entry) if name in out else own
    return list(out.values())


def _affinity(base: Json, user: Json) -> Json:
    out = deep(base, user)
    for kind in ("podAffinity", "podAntiAffinity"):
        ours, wish = base.get(kind), user.get(kind)
        if not ours or not wish:
            continue
        out[kind] = deep(ours, wish)
        for field in (
            "requiredDuringSchedulingIgnoredDuringExecution",
            "preferredDuringSchedulingIgnoredDuringExecution",
        ):
            if field in out[kind]:
                out[kind][field] = union(ours.get(field, []), items(wish.get(field)))
    return out


def _dns(base: Json, user: Json) -> Json:
    out = deep(base, user)
    if "searches" in base:
        out["searches"] = union(base["searches"], user.get("searches") or [])
    return out
