"""What the bench of a SlurmCluster beside the quickstart applies and changes, and its figures."""

from __future__ import annotations

from typing import Any, cast

import pytest

from bench.figures import breakdown
from bench.slurmcluster import job_step
from bench.slurmcluster.measured import Measured
from bench.slurmcluster.side import Side, nebius, slinky
from penstock.local.recipes import reference
from penstock.local.target import Images

IMAGES = Images(reference("{role}"), "localhost/penstock/operator:26.05-0123456789abcdef")
SIDES = (slinky(IMAGES), nebius(IMAGES))


def merged(target: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(target, dict) or not isinstance(patch, dict):
        return patch
    known = cast("dict[str, Any]", target)
    given = cast("dict[str, Any]", patch)
    return {**known, **{key: merged(known.get(key), value) for key, value in given.items()}}


@pytest.mark.parametrize("side", SIDES, ids=lambda side: side.title)
def test_all_objects_are_in_a_namespace_of_the_bench(side: Side) -> None:
    """It is deleted with all that is in it."""
    assert {one["metadata"]["namespace"] for one in side.objects} == {side.namespace}
    assert side.namespace.startswith("bench-")


@pytest.mark.parametrize("side", SIDES, ids=lambda side: side.title)
def test_changes_are_of_an_object_that_was_applied(side: Side) -> None:
    """And another object is what they lead to."""
    for change in (side.size(4), side.max_time(71)):
        found = [
            one
            for one in side.objects
            if (one["kind"], one["metadata"]["name"]) == (change.resource.kind, change.name)
        ]
        assert len(found) == 1
        assert merged(found[0], change.body) != found[0]


@pytest.mark.parametrize("side", SIDES, ids=lambda side: side.title)
def test_plain_pods_have_images_of_the_worker_twice(side: Side) -> None:
    assert side.images.count(side.worker_image) == 2
    assert not [image for image in side.images if "{" in image]


def test_differences_of_steps_are_those_of_pairs() -> None:
    """A step that both of a pair wait long for moves none."""
    pairs = [
        job_step.Pair(start=30, whole=40, jail_start=32, jail_whole=45),
        job_step.Pair(start=90, whole=99, jail_start=93, jail_whole=105),
        job_step.Pair(start=30, whole=40, jail_start=31, jail_whole=44),
    ]
    figures = {one.name: one for one in job_step.figures(pairs)}
    assert figures["step: more in the jail"].values == (2, 3, 1)
    assert figures["step: more in the jail until srun ends"].values == (5, 6, 4)
    (ratio,) = figures["step: in the jail over without the plug-in"].values
    assert ratio == pytest.approx(32 / 30)


def test_figures_come_in_the_order_of_their_first_values() -> None:
    measured = Measured(pairs=[job_step.Pair(1, 2, 3, 4)])
    for value in (1.0, 2.0):
        measured.add("later", "s", value)
        measured.add("earlier", "x", value)
    first, second = measured.figures()[:2]
    assert (first.name, first.unit, first.values) == ("later", "s", (1.0, 2.0))
    assert (second.name, second.unit) == ("earlier", "x")


def test_a_breakdown_is_ordered_by_medians() -> None:
    lines = breakdown([{"b": 2.0, "a": 1.0}, {"b": 4.0, "a": 1.5}]).splitlines()
    assert [line.split()[0] for line in lines] == ["seconds", "a", "b"]
    assert lines[2].split() == ["b", "2.00", "3.00", "4.00"]
