"""Conditions and phase of a SlurmCluster, as users and scripts know them."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest

from penstock.api.kubernetes.conditions import Finding, conditions
from penstock.api.nebius.slurmcluster import SlurmCluster
from penstock.catalog.condition_type import ConditionType
from penstock.catalog.reasons.jail import JailReason
from penstock.catalog.reasons.object import ObjectReason
from penstock.catalog.reasons.pods import PodReason
from penstock.translate.nebius import availability
from penstock.translate.nebius.availability import Availability
from support.nebius import made

READY = Finding(True, PodReason.READY, "1 of 1 pods are ready")
STARTING = Finding(None, PodReason.NOT_READY, "0 of 1 pods are ready")
FAILING = Finding(False, PodReason.FAILING, "0 of 1 pods are ready: no image")
FILLED = Finding(True, JailReason.POPULATE_COMPLETE, "", ConditionType.JAIL_POPULATED)
ALL = Availability(FILLED, READY, READY, READY, READY)


def cluster(**changes: object) -> SlurmCluster:
    dotted = {f"spec.{name}": value for name, value in changes.items()}
    return cast("SlurmCluster", made("slurmcluster-5.0-0", dotted))


def shown(found: Availability, of: SlurmCluster | None = None) -> dict[str, tuple[str, str]]:
    every = conditions(availability.conditions(of or cluster(), found))
    return {one.type: (one.status, one.reason) for one in every}


def test_a_cluster_whose_parts_have_their_pods_is_ready_and_available():
    found = shown(ALL)
    assert found["Ready"][0] == "True"
    assert found["ControllersAvailable"] == ("True", "Available")
    assert found["LoginAvailable"] == ("True", "Available")
    assert found["SConfigControllerAvailable"] == ("True", "Available")
    assert found["PopulateJailMode"] == ("True", "none")
    assert availability.phase(ALL) == "Available"


def test_without_accounting_its_condition_is_false_and_the_cluster_is_ready_all_the_same():
    assert shown(ALL)["AccountingAvailable"] == ("False", "NotAvailable")
    assert shown(ALL)["Ready"][0] == "True"


@pytest.mark.parametrize(
    ("part", "type_"),
    [
        ("slurmctld", "ControllersAvailable"),
        ("login", "LoginAvailable"),
        ("sconfigcontroller", "SConfigControllerAvailable"),
        ("accounting", "AccountingAvailable"),
    ],
)
def test_a_part_that_lacks_pods_is_named_in_its_condition_and_the_others_are_as_they_are(
    part: str, type_: str
):
    late = replace(ALL, **{part: STARTING})
    assert shown(late)[type_] == ("Unknown", "NotAvailable")
    assert shown(late)["Reconciling"][0] == "True"
    assert availability.phase(late) == "Not available"
    failed = replace(ALL, **{part: FAILING})
    assert shown(failed)[type_] == ("False", "NotAvailable")
    assert shown(failed)["Stalled"][0] == "True"
    others = {"ControllersAvailable", "LoginAvailable", "SConfigControllerAvailable"} - {type_}
    assert all(shown(failed)[one] == ("True", "Available") for one in others)


def test_a_jail_that_is_not_filled_keeps_the_cluster_from_being_available():
    found = replace(
        ALL,
        jail=Finding(False, JailReason.POPULATE_FAILED, "no space", ConditionType.JAIL_POPULATED),
    )
    assert availability.phase(found) == "Not available"
    assert shown(found)["JailPopulated"] == ("False", "PopulateJailFailed")


def test_in_maintenance_nobody_waits_for_daemons():
    found = shown(
        replace(ALL, slurmctld=STARTING, login=STARTING), cluster(maintenance="downscale")
    )
    assert found["ControllersAvailable"] == ("False", "Maintenance")
    assert found["LoginAvailable"] == ("False", "Maintenance")
    assert found["PopulateJailMode"] == ("True", "downscale")
    assert found["Ready"][0] == "True"
    assert availability.common(resting=True, waiting=()).reason == "Maintenance"


def test_before_anything_runs_the_phase_is_pending():
    assert availability.phase(None) == "Pending"
    waits = Finding(None, ObjectReason.SECRET_NOT_FOUND, "Secret one is missing")
    assert availability.common(resting=False, waiting=(waits,)).ok is None


def test_partitions_name_the_nodesets_that_they_lack():
    partitions = {"configType": "structured", "partitions": [{"name": "p", "nodeSetRefs": ["a"]}]}
    found = availability.node_sets_resolved(cluster(partitionConfiguration=partitions), ["b"])
    assert found is not None
    assert found.reason == "IgnoredNodeSetRefs"
    assert "no NodeSet a " in found.message
    assert found.excluded_from_ready
    there = availability.node_sets_resolved(cluster(partitionConfiguration=partitions), ["a"])
    assert there is not None
    assert there.reason == "AllNodeSetRefsResolved"
    assert availability.node_sets_resolved(cluster(partitionConfiguration={}), []) is None
