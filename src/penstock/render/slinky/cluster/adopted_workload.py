"""Adopted workloads: pods of another operator's workload stay until the desired state changes.

slurm-operator's StatefulSets and Deployments have the names, selectors and meaning of ours, but
other probes and side containers. Writing our template would restart each daemon for nothing. So the
workload keeps its template, with a hash of the desired pods at that time; ours comes with the next
change of that hash, or on request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from penstock.api.kubernetes.meta import Json
from penstock.api.kubernetes.quantity import same_quantity
from penstock.api.kubernetes.spec_parts import PodTemplate
from penstock.render.parts.digest import canonical_json, digest
from penstock.render.parts.kept_template import REPLACED, REPLACING
from penstock.render.parts.pod_template import pod_labels
from penstock.render.slinky.nodeset.revision_meaning import normalize_amounts

_FORM = "v2:"
"""What a note begins with. Another form of it needs another beginning."""
_AMOUNTS = frozenset({"requests", "limits", "overhead"})
"""Fields of a pod whose values are quantities."""
_AMOUNT = frozenset({"sizeLimit", "divisor"})
"""Fields of a pod that are a quantity."""


Source = tuple[str, str]
"""Kind (`secret`, `configMap` or `claim`) and name of what a pod cannot do without."""


@dataclass(frozen=True, slots=True)
class WorkloadSpec:
    """Desired pods of one workload, as far as users declare them.

    `containers` are the user's settings by the container's usual name. `hashes` are of Secrets that
    the daemon reads at its start only, by the pod annotation that both operators compute by the
    same rule; `more` is whatever else it reads then. `sources` are the objects, by kind and name,
    that the pod must mount. `optional` containers may be missing in another operator's pod.
    """

    template: PodTemplate
    containers: Mapping[str, Json]
    hashes: Mapping[str, str] = field(default_factory=dict[str, str])
    more: Mapping[str, str] = field(default_factory=dict[str, str])
    sources: frozenset[Source] = frozenset()
    optional: frozenset[str] = frozenset()

    @property
    def labels(self) -> dict[str, str]:
        """Labels that users give the pods, in the form that is compared."""
        return pod_labels(self.template, {})

    @property
    def spec(self) -> Json:
        """The template's spec as slurm-operator reads it: without a spelling that only we take."""
        return {key: one for key, one in self.template.spec.items() if key != "dNSPolicy"}


def spec_hash(declared: WorkloadSpec) -> str:
    """Hash of the desired pods, without anything that another version of Penstock may change.

    It is over the same form that `satisfies` compares: what is empty, false or 0 is not in it.
    """
    return _FORM + digest(
        canonical_json(
            normalize_amounts(
                {
                    "labels": declared.labels,
                    "annotations": declared.template.metadata.annotations,
                    "spec": declared.spec,
                    "containers": declared.containers,
                    "hashes": dict(declared.hashes),
                    "more": dict(declared.more),
                    "sources": sorted(declared.sources),
                }
            )
        )
    )


def is_older(noted: str) -> bool:
    """Whether a note is of an earlier version, which covered the way that version made pods."""
    return noted not in (REPLACED, REPLACING) and not noted.startswith(_FORM)


def satisfies(declared: WorkloadSpec, live: Json) -> bool:
    """Whether the pods of another operator's workload have everything that is desired.

    A value that is empty, false or 0 counts as absent, since slurm-operator leaves it out.
    """
    theirs = live["spec"]["template"]
    have: Json = theirs.get("metadata") or {}
    known: Json = have.get("annotations") or {}
    return (
        _within(normalize_amounts(declared.labels), have.get("labels") or {})
        and _within(normalize_amounts(declared.template.metadata.annotations or {}), known)
        and all(known.get(key, value) == value for key, value in declared.hashes.items() if value)
        and _within(normalize_amounts(declared.spec), theirs["spec"])
        and all(
            _contained(
                name, normalize_amounts(wish), theirs["spec"], missing=name in declared.optional
            )
            for name, wish in declared.containers.items()
        )
        and declared.sources <= _sources(theirs["spec"])
    )


def _contained(name: str, declared: Json, spec: Json, *, missing: bool) -> bool:
    called = declared.get("name") or name
    every: list[Json] = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    found = next((one for one in every if one.get("name") == called), None)
    return missing if found is None else _within(declared, found)


def _within(declared: Any, have: Any, *, under: str = "", amount: bool = False) -> bool:
    """Whether the other value has everything of a normalized one.

    `under` is the name of the field that has the value; only an `amount` is compared as a number.
    slurm-operator leaves out a label to select by that has no value, too.
    """
    if declared == "":
        return True
    if isinstance(declared, dict):
        if not isinstance(have, dict):
            return False
        fields, amounts = cast("Json", have), under in _AMOUNTS
        return all(
            _within(one, fields.get(key), under=key, amount=amounts or key in _AMOUNT)
            for key, one in cast("Json", declared).items()
        )
    if isinstance(declared, list):
        every = cast("list[Any]", have) if isinstance(have, list) else []
        return all(any(_within(one, each) for each in every) for one in cast("list[Any]", declared))
    return declared == have or (amount and same_quantity(declared, have))


def _sources(spec: Json) -> set[Source]:
    """Kind and name of what the pod cannot do without: Secrets, ConfigMaps and PVCs."""
    return {
        found
        for volume in cast("list[Json]", spec.get("volumes") or [])
        for found in _sources_of(volume)
    }


def _sources_of(volume: Json) -> Iterator[Source]:
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
