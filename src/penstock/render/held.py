"""Workloads that another operator made: their pods stay as they are until what is declared changes.

slurm-operator's StatefulSets and Deployments have the names, selectors and meaning of ours, but
other probes and side containers. Writing our template would restart each daemon for nothing. So a
template of its own is left, with a note of what was declared then; ours comes with the next change
of that, or when somebody asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from penstock.api.meta import Json
from penstock.api.slinky import wellknown
from penstock.api.slinky.shared import PodTemplate
from penstock.render.canonical import canonical_json, digest
from penstock.render.meaning import bare
from penstock.render.pod import pod_labels
from penstock.render.quantity import quantity

REPLACED = "replaced"
"""In place of the note, once our template has been written."""
REPLACING = "replacing"
"""In place of the note, before that."""

_SAME_HASHES = (
    wellknown.SLURM_KEY_HASH,
    wellknown.JWT_KEY_HASH,
    wellknown.SSSD_CONF_HASH,
    wellknown.SSH_HOST_KEYS_HASH,
)
"""Of what both operators hash by the same rule."""
_FIXED = ("serviceName", "podManagementPolicy", "volumeClaimTemplates")
"""What the API server lets nobody change. Source: Kubernetes API reference, StatefulSetSpec."""


@dataclass(frozen=True, slots=True)
class Declared:
    """What users say of the pods of one workload.

    `containers` are their wishes by the container's usual name; `more` is whatever else the daemon
    reads at its start only. `optional` containers may be missing in another operator's pod.
    """

    template: PodTemplate
    containers: Mapping[str, Json]
    more: Mapping[str, str] = field(default_factory=dict[str, str])
    optional: frozenset[str] = frozenset()


def note(declared: Declared, manifest: Json) -> str:
    """A hash of what is declared, which our own way to make pods of it does not change."""
    template: Json = manifest["spec"]["template"]
    annotations: Json = template["metadata"].get("annotations") or {}
    hashes = {key: annotations[key] for key in sorted(_hashes(annotations))}
    return digest(
        canonical_json(
            bare(
                {
                    "labels": pod_labels(declared.template, {}),
                    "annotations": declared.template.metadata.annotations,
                    "spec": declared.template.spec,
                    "containers": declared.containers,
                    "hashes": hashes,
                    "more": dict(declared.more),
                    "sources": sorted(_sources(template["spec"])),
                }
            )
        )
    )


def serves(declared: Declared, manifest: Json, live: Json) -> bool:
    """Whether the pods of another operator's workload have all that is declared.

    What is empty, false or 0 counts as not said, since slurm-operator leaves it out.
    """
    ours, theirs = manifest["spec"]["template"], live["spec"]["template"]
    have: Json = theirs.get("metadata") or {}
    wish = declared.template
    marks: Json = ours["metadata"].get("annotations") or {}
    known: Json = have.get("annotations") or {}
    return (
        _within(pod_labels(wish, {}), have.get("labels") or {})
        and _within(wish.metadata.annotations or {}, known)
        and all(known.get(key, value) == value for key, value in _hashes(marks).items())
        and _within(_known_fields(wish.spec), theirs["spec"])
        and all(
            _contained(name, wish, theirs["spec"], missing=name in declared.optional)
            for name, wish in declared.containers.items()
        )
        and _sources(ours["spec"]) <= _sources(theirs["spec"])
    )


def kept(manifest: Json, noted: str) -> Json:
    """Our manifest for a workload whose pods stay: all but their template."""
    spec = {k: v for k, v in manifest["spec"].items() if k not in ("template", *_FIXED)}
    return {**_noted(manifest, noted), "spec": spec}


def replaced(manifest: Json, live: Json) -> Json:
    """Our manifest for another operator's workload from now on; what cannot change stays."""
    fixed = {key: live["spec"][key] for key in _FIXED if key in live["spec"]}
    spec = {k: v for k, v in manifest["spec"].items() if k not in _FIXED}
    return {**_noted(manifest, REPLACED), "spec": spec | fixed}


def _noted(manifest: Json, value: str) -> Json:
    metadata: Json = manifest["metadata"]
    annotations: Json = metadata.get("annotations") or {}
    noted = annotations | {wellknown.ADOPTED_TEMPLATE: value}
    return {**manifest, "metadata": {**metadata, "annotations": noted}}


def _hashes(annotations: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in annotations.items() if key in _SAME_HASHES}


def _known_fields(spec: Json) -> Json:
    """Without a spelling that only Penstock takes."""
    return {key: value for key, value in spec.items() if key != "dNSPolicy"}


def _contained(name: str, wish: Json, spec: Json, *, missing: bool) -> bool:
    called = wish.get("name") or name
    every: list[Json] = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    found = next((one for one in every if one.get("name") == called), None)
    return missing if found is None else _within(wish, found)


def _within(wish: Any, have: Any) -> bool:
    """Whether everything that is said in one value holds in the other."""
    if wish in (None, "", 0, False, {}, []):
        return True
    if isinstance(wish, dict):
        if not isinstance(have, dict):
            return all(_within(one, None) for one in cast("Json", wish).values())
        fields = cast("Json", have)
        return all(_within(one, fields.get(key)) for key, one in cast("Json", wish).items())
    if isinstance(wish, list):
        every = cast("list[Any]", have) if isinstance(have, list) else []
        return all(any(_within(one, each) for each in every) for one in cast("list[Any]", wish))
    return wish == have or _same_amount(wish, have)


def _same_amount(one: Any, other: Any) -> bool:
    if not isinstance(one, (str, int, float)) or not isinstance(other, (str, int, float)):
        return False
    try:
        return quantity(one) == quantity(other)
    except ValueError:
        return False


def _sources(spec: Json) -> set[tuple[str, str]]:
    """Kind and name of what the pod cannot do without: Secrets, ConfigMaps and claims."""
    return {
        found
        for volume in cast("list[Json]", spec.get("volumes") or [])
        for found in _sources_of(volume)
    }


def _sources_of(volume: Json) -> Iterator[tuple[str, str]]:
    if claim := volume.get("persistentVolumeClaim"):
        yield "claim", claim["claimName"]
    if secret := volume.get("secret"):
        yield "secret", secret.get("secretName", "")
    projected: Json = volume.get("projected") or {}
    for one in (volume, *cast("list[Json]", projected.get("sources") or [])):
        for kind in ("secret", "configMap"):
            source: Json = one.get(kind) or {}
            if source.get("name") and not source.get("optional"):
                yield kind, source["name"]
