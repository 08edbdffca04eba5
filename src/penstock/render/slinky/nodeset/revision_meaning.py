"""What is meant, in whatever form it is written: to compare what different programs wrote.

slurm-operator writes out fields that Penstock leaves away (`{}`, `[]`, `""`, null), and Kubernetes
writes `500m` for `0.5`. Neither is a reason to replace a pod.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any, cast

import msgspec

from penstock.api.kubernetes.kinds import ControllerRevision
from penstock.api.kubernetes.meta import Json, ObjectMeta
from penstock.api.kubernetes.quantity import quantity
from penstock.api.slinky.controller import Controller
from penstock.api.slinky.nodeset import NodeSet
from penstock.model.recorded_revision import RecordedRevision
from penstock.render.parts import empty_values as empty
from penstock.render.parts import merge
from penstock.render.parts.default_images import Images
from penstock.render.parts.digest import canonical_json
from penstock.render.slinky.inputs import ClusterInputs
from penstock.render.slinky.nodeset import worker_pod as worker
from penstock.translate.slinky.recorded_spec import recorded_revision as translated

_AMOUNTS = frozenset({"requests", "limits"})
_PATCH = "$patch"
_NOBODY = ClusterInputs(Controller(), Images("", "", "", "", ""))


def normalize(value: Any) -> Any:
    """Drop fields that mean the same as their absence, and write quantities as numbers.

    `false` and 0 have a meaning. Whether a whole list or mapping has one is for the caller.
    """
    return _with_amounts(empty.said(value))


def normalize_amounts(value: Any) -> Any:
    """Normalize, and drop false, 0 and empty items, which slurm-operator leaves out of its pods."""
    return _without_falses(normalize(value))


def _without_falses(value: Any) -> Any:
    """Drop false and 0 of a normalized value, and what becomes empty by that.

    What is empty in the normalized value has a meaning and stays.
    """
    if isinstance(value, dict):
        fields = cast("Json", value)
        found = {key: _without_falses(one) for key, one in fields.items()}
        return {
            key: one
            for key, one in found.items()
            if one is not False and one != 0 and (one not in empty.EMPTY or fields[key] == one)
        }
    if isinstance(value, list):
        every = [_without_falses(one) for one in cast("list[Any]", value)]
        return [one for one in every if one not in empty.EMPTY]
    return value


def _with_amounts(value: Any, *, under: str = "") -> Any:
    if isinstance(value, dict):
        return {
            key: _amount(one) if under in _AMOUNTS else _with_amounts(one, under=key)
            for key, one in cast("Json", value).items()
        }
    if isinstance(value, list):
        return [_with_amounts(one) for one in cast("list[Any]", value)]
    return value


def _amount(value: Any) -> Any:
    try:
        return str(quantity(value))
    except ValueError:
        return value


def declared_revision(nodeset: NodeSet) -> RecordedRevision:
    """The revision that pods of a NodeSet should have."""
    found = worker.revision(nodeset)
    meta = ObjectMeta(name=found.name)
    return recorded_revision(nodeset, ControllerRevision(metadata=meta, data=found.data))


def recorded_revision(nodeset: NodeSet, record: ControllerRevision) -> RecordedRevision:
    """What a ControllerRevision of a NodeSet records."""
    return translated(nodeset, record, partial(normalized_pod, nodeset))


def normalized_pod(nodeset: NodeSet, data: Json) -> bytes:
    """What the data of a ControllerRevision of a NodeSet mean: the pod that is made from them.

    Two that mean the same give the same bytes. Data that are of no NodeSet mean themselves.
    """
    spec = nodeset.spec
    place: Json = {
        "namespace": nodeset.metadata.namespace,
        "name": nodeset.metadata.name,
        "controllerRef": msgspec.to_builtins(spec.controller_ref),
        "claims": spec.volume_claim_templates or (),
        "mode": spec.scaling_mode,
    }
    return _normalized_pod(canonical_json([place, data]))


@lru_cache(maxsize=256)
def _normalized_pod(text: bytes) -> bytes:
    place, data = msgspec.json.decode(text, type=tuple[Json, Json])
    try:
        parts: Json = {
            key: {k: v for k, v in cast("Json", value).items() if k != _PATCH}
            if isinstance(value, dict)
            else value
            for key, value in merge.prune(data.get("spec") or {}).items()
        }
        nodeset = msgspec.convert(
            {
                "apiVersion": "slinky.slurm.net/v1beta1",
                "kind": "NodeSet",
                "metadata": {"namespace": place["namespace"], "name": place["name"]},
                "spec": {
                    **parts,
                    "controllerRef": place["controllerRef"],
                    "volumeClaimTemplates": place["claims"],
                    "scalingMode": place["mode"],
                },
            },
            NodeSet,
        )
        pod = worker.pod(_NOBODY, nodeset, 0, revision_hash="-")
        return canonical_json({"padding": nodeset.spec.ordinal_padding, "pod": normalize(pod)})
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        return text
