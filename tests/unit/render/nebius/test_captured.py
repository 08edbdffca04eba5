"""Each difference from the objects of the original is deliberate.

`tests/fixtures/nebius/captured` has the objects of two namespaces as the original left them,
without values of Secrets and texts of scripts.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import cast

import pytest
import yaml

from penstock.api.kubernetes.meta import Json
from support.nebius_clusters import SHAPES, of_shape
from support.nebius_differences import OBJECTS, PATHS
from support.object_comparison import differences

FOLDER = Path(__file__).parents[3] / "fixtures" / "nebius" / "captured"
OPAQUE = ("Secret", "ConfigMap")
OURS = ("ControllerRevision", "PersistentVolumeClaim", "Pod", "PodDisruptionBudget")
"""Kinds that the original's StatefulSets of workers made, which are no longer there, and one that
the original lacks."""
OWN_NAMES = ("-slurm-exporter-state", "-exporter-svc")
"""Where durations outlive the exporter, and how a Prometheus without PodMonitors finds it."""
UNCAPTURED = ("PodMonitor",)


@cache
def captured(shape: str) -> tuple[Json, ...]:
    return tuple(cast("list[Json]", yaml.safe_load_all((FOLDER / f"{shape}.yaml").read_text())))


def comparable(one: Json) -> Json:
    """Without the values of a Secret or ConfigMap, and the uids of owners."""
    meta = {**one["metadata"]}
    if owners := meta.get("ownerReferences"):
        meta["ownerReferences"] = [{k: v for k, v in o.items() if k != "uid"} for o in owners]
    data = dict.fromkeys(one.get("data", ()), "value") if one["kind"] in OPAQUE else {}
    return {**one, "metadata": meta, **({"data": data} if data else {})}


def pairs(shape: str) -> Iterator[tuple[str, Json | None, Json]]:
    """Kind, ours, theirs of each captured object; a worker's pod is compared with its template."""
    whole = of_shape(shape)
    ours = {(one["kind"], one["metadata"]["name"]): one for one in whole.objects()}
    sets = {one.names.feature: number for number, one in enumerate(whole.workers)}
    for theirs in captured(shape):
        kind, name = theirs["kind"], theirs["metadata"]["name"]
        if kind == "StatefulSet" and name in sets:
            pod = whole.pod(sets[name])
            fields = {key: pod["metadata"][key] for key in ("labels", "annotations")}
            yield "Worker", {"metadata": fields, "spec": pod["spec"]}, theirs["spec"]["template"]
        else:
            found = ours.get((kind, name))
            yield kind, comparable(found) if found else None, comparable(theirs)


def found(shape: str) -> list[str]:
    """`KIND PATH` of all differences of objects that both have."""
    return [
        f"{kind} {path}"
        for kind, ours, theirs in pairs(shape)
        if ours is not None
        for path in differences(ours, theirs)
    ]


def absent(shape: str) -> list[str]:
    """`KIND NAME` of objects that only the original has."""
    return [
        f"{kind} {theirs['metadata']['name']}" for kind, ours, theirs in pairs(shape) if not ours
    ]


@pytest.mark.parametrize("shape", SHAPES)
def test_each_difference_from_the_original_is_deliberate(shape: str):
    unknown = [one for one in found(shape) if not any(row.covers(one) for row in PATHS)]
    assert unknown == []


@pytest.mark.parametrize("shape", SHAPES)
def test_each_object_of_the_original_is_there_or_left_out_for_a_reason(shape: str):
    unknown = [one for one in absent(shape) if not any(row.covers(one) for row in OBJECTS)]
    assert unknown == []


@pytest.mark.parametrize("shape", SHAPES)
def test_no_object_has_a_name_that_the_original_does_not_have(shape: str):
    theirs = {(one["kind"], one["metadata"]["name"]) for one in captured(shape)}
    ours = {(one["kind"], one["metadata"]["name"]) for one in of_shape(shape).objects()}
    found = [one for one in ours - theirs if one[0] not in (*OURS, *UNCAPTURED)]
    assert [one for one in found if not one[1].endswith(OWN_NAMES)] == []


def test_no_reason_is_left_without_a_difference():
    paths = [one for shape in SHAPES for one in found(shape)]
    objects = [one for shape in SHAPES for one in absent(shape)]
    stale = [row.name for row in PATHS if not any(map(row.covers, paths))]
    stale += [row.name for row in OBJECTS if not any(map(row.covers, objects))]
    assert stale == []
