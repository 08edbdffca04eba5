from __future__ import annotations

import copy
from typing import Any

import pytest

from penstock.api.kubernetes.kinds import CONFIG_MAPS
from penstock.api.kubernetes.meta import Json
from penstock.api.kubernetes.quantity import same_quantity
from penstock.kube import Applier, Client, NotOursError
from penstock.kube.apply.difference import field_differences
from penstock.kube.apply.field_owners import ownership_patch
from penstock.simulation.manual_clock import ManualClock
from unit.kube.fake_api import FakeApi

FIELDS: Json = {
    "f:metadata": {"f:labels": {"f:app": {}}},
    "f:spec": {
        "f:replicas": {},
        "f:args": {},
        "f:finalizers": {'v:"one"': {}},
        "f:containers": {
            'k:{"name":"c"}': {".": {}, "f:name": {}, "f:image": {}, "f:limits": {"f:cpu": {}}}
        },
    },
}
ASKED: Json = {
    "apiVersion": "v1",
    "kind": "Thing",
    "metadata": {"name": "x", "namespace": "a", "labels": {"app": "s"}},
    "spec": {
        "replicas": 2,
        "args": ["-a", "-b"],
        "finalizers": ["one"],
        "containers": [{"name": "c", "image": "i", "limits": {"cpu": "0.5"}}],
    },
}


def live(fields: Json | None = FIELDS) -> Json:
    made = copy.deepcopy(ASKED)
    made["metadata"] |= {"uid": "u", "resourceVersion": "7", "creationTimestamp": "t"}
    made["status"] = {"replicas": 2}
    made["spec"]["defaulted"] = True
    made["spec"]["containers"][0]["limits"]["cpu"] = "500m"
    made["spec"]["containers"].insert(0, {"name": "injected"})
    if fields is not None:
        entry: Json = {"manager": "penstock", "operation": "Apply", "fieldsV1": fields}
        other: Json = {"manager": "kubelet", "operation": "Update", "fieldsV1": {"f:status": {}}}
        made["metadata"]["managedFields"] = [other, entry]
    return made


def test_defaults_injections_and_spellings_of_quantities_are_no_drift() -> None:
    """D25."""
    assert field_differences(ASKED, live(), "penstock") == ()


def test_a_null_time_that_an_older_api_server_counts_as_applied_is_no_drift() -> None:
    """Before Kubernetes 1.34 each template has `creationTimestamp: null`, owned by who applied."""
    fields = copy.deepcopy(FIELDS)
    fields["f:metadata"]["f:time"] = {}
    made = live(fields)
    made["metadata"]["time"] = None
    assert field_differences(ASKED, made, "penstock") == ()
    made["metadata"]["time"] = "2026-01-01T00:00:00Z"
    assert field_differences(ASKED, made, "penstock") == ("metadata.time",)


def change(path: list[Any], value: Any) -> Json:
    made = live()
    place = made
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return made


@pytest.mark.parametrize(
    ("path", "value", "found"),
    [
        (["spec", "replicas"], 3, "spec.replicas"),
        (["spec", "args"], ["-b", "-a"], "spec.args[0]"),
        (["spec", "args"], ["-a"], "spec.args"),
        (["spec", "containers", 1, "image"], "j", "spec.containers[c].image"),
        (["spec", "containers", 1, "limits", "cpu"], "1", "spec.containers[c].limits.cpu"),
        (["spec", "finalizers"], [], "spec.finalizers"),
        (["metadata", "labels"], {}, "metadata.labels.app"),
    ],
)
def test_a_changed_value_is_drift(path: list[Any], value: Any, found: str) -> None:
    assert found in field_differences(ASKED, change(path, value), "penstock")


def test_a_field_that_is_asked_for_no_more_is_drift() -> None:
    less = copy.deepcopy(ASKED)
    del less["spec"]["replicas"], less["spec"]["containers"][0]["image"]
    found = field_differences(less, live(), "penstock")
    assert found == ("spec.containers[c].image", "spec.replicas")


def test_a_field_that_somebody_took_over_is_drift_even_at_the_same_value() -> None:
    fields = copy.deepcopy(FIELDS)
    del fields["f:spec"]["f:replicas"]
    assert field_differences(ASKED, live(fields), "penstock") == ("spec.replicas",)


def test_an_object_that_was_never_applied_is_drift() -> None:
    made = live()
    del made["metadata"]["managedFields"][1]
    assert "metadata.managedFields" in field_differences(ASKED, made, "penstock")


def test_text_that_reads_like_a_quantity_is_text() -> None:
    asked: Json = {"metadata": {}, "data": {"threads": "1"}}
    assert field_differences(asked, {"metadata": {}, "data": {"threads": "1000m"}}, "penstock")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("0.5", "500m", True),
        ("1Gi", "1024Mi", True),
        (1, "1", True),
        ("1k", "1000", True),
        ("1Gi", "1G", False),
        ("1", "x", False),
        (True, "1", False),
    ],
)
def test_quantities_are_compared_by_value(one: object, other: object, same: bool) -> None:
    assert same_quantity(one, other) is same


def test_the_fields_of_an_update_become_applied_ones() -> None:
    made = live()
    made["metadata"]["managedFields"] += [
        {"manager": "old", "operation": "Update", "fieldsV1": {"f:spec": {"f:old": {}}}},
        {"manager": "old", "operation": "Update", "subresource": "status", "fieldsV1": {}},
    ]
    patch = ownership_patch(made, "penstock", {"old"})
    assert patch is not None
    fields, version = patch
    assert version["value"] == "7"
    applied, *rest = fields["value"]
    assert (applied["manager"], applied["operation"]) == ("penstock", "Apply")
    assert applied["fieldsV1"]["f:spec"]["f:old"] == {}
    assert applied["fieldsV1"]["f:spec"]["f:replicas"] == {}
    assert [e["manager"] for e in rest] == ["kubelet", "old"]


def test_without_a_former_manager_nothing_is_handed_over() -> None:
    assert ownership_patch(live(), "penstock", {"old"}) is None


def owned(uid: str) -> Json:
    owner = {"kind": "Controller", "name": "c", "uid": uid, "controller": True}
    meta = {"name": "x", "namespace": "a", "ownerReferences": [owner]}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"k": "1"}}


async def test_an_object_of_another_owner_is_left_alone() -> None:
    api = FakeApi()
    applier = Applier(Client(api, clock=ManualClock()))
    made = await applier.ensure(CONFIG_MAPS, owned("one"), None)
    assert made.done == "created"
    with pytest.raises(NotOursError, match="controlled by Controller c"):
        await applier.ensure(CONFIG_MAPS, owned("two"), made.live)
    assert [r.method for r in api.requests] == ["GET", "PATCH"]


async def test_an_object_recreated_since_it_was_read_is_not_touched() -> None:
    api = FakeApi()
    applier = Applier(Client(api, clock=ManualClock()))
    made = await applier.ensure(CONFIG_MAPS, owned("one"), None)
    path = "/api/v1/namespaces/a/configmaps/x"
    api.remove(path)
    api.put(path, data={"k": "theirs"})
    asked = owned("one")
    asked["data"]["k"] = "2"
    with pytest.raises(Exception, match="uid is another"):
        await applier.ensure(CONFIG_MAPS, asked, made.live)
    assert api.objects[path]["data"] == {"k": "theirs"}


def test_a_key_that_stays_in_a_map_owned_as_one_is_drift() -> None:
    asked: Json = {"metadata": {"name": "x"}, "spec": {"selector": {"a": "1"}, "ref": {"b": "2"}}}
    fields: Json = {"f:spec": {"f:selector": {}, "f:ref": {}}}
    entry: Json = {"manager": "penstock", "operation": "Apply", "fieldsV1": fields}
    found = copy.deepcopy(asked)
    found["metadata"]["managedFields"] = [entry]
    found["spec"]["ref"]["apiVersion"] = "a default of the server"
    assert field_differences(asked, found, "penstock") == ()
    found["spec"]["selector"]["once"] = "asked for"
    assert field_differences(asked, found, "penstock") == ("spec.selector",)
