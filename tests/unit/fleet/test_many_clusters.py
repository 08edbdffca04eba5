"""The bench `many`: what it declares, and the names of its figures."""

from __future__ import annotations

from typing import Any

import msgspec

from bench import ranges
from bench.fleet.cluster import CLUSTER, rest_host
from bench.fleet.many import run as many
from bench.fleet.many.cluster import (
    BROKEN,
    LOST,
    REJECTED_POD,
    SLURM_FAULTS,
    WORKERS,
    objects,
)
from penstock.api.slinky.controller import Controller
from penstock.api.slinky.nodeset import NodeSet, NodeSetSpec
from penstock.api.slinky.restapi import RestApi

PORT = 1234


def test_each_of_many_clusters_has_a_namespace_and_a_slurmrestd_of_its_own():
    kinds: dict[str, Any] = {one.__name__: one for one in (Controller, RestApi, NodeSet)}
    space, *made = objects(7, PORT)
    found = {one["kind"]: msgspec.convert(one, kinds[one["kind"]]) for one in made}
    assert {one.metadata.namespace for one in found.values()} == {space["metadata"]["name"]}
    assert found["NodeSet"].spec.replicas == WORKERS
    assert found["RestApi"].spec.service.port == PORT
    assert rest_host(space["metadata"]["name"]) == f"{CLUSTER}-restapi.{space['metadata']['name']}"


def test_each_way_to_break_a_cluster_is_another_one_and_is_no_invalid_spec():
    assert len(set(SLURM_FAULTS)) + len(LOST) + 2 == BROKEN
    msgspec.convert({"controllerRef": {"name": CLUSTER}, **REJECTED_POD}, NodeSetSpec)
    for one in LOST.values():
        msgspec.convert(one, NodeSet if one["kind"] == "NodeSet" else Controller)


def test_every_limit_is_of_a_figure_that_is_measured():
    assert ranges.limits(ranges.read(), many.BENCH.name).keys() <= many.UNITS.keys()
