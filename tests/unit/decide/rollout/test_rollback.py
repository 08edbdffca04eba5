"""Going back to a recorded template: which one, and what is written."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from penstock.api.cluster.marks import ROLLBACK, ROLLED_BACK
from penstock.api.kubernetes.kinds import ControllerRevision
from penstock.api.kubernetes.meta import Json, ObjectMeta
from penstock.api.slinky.nodeset import NodeSet
from penstock.decide.rollout.rollback import Rollback, requested, rollback
from penstock.render.slinky.nodeset import revision_meaning as meaning
from penstock.render.slinky.nodeset import worker_pod as worker
from penstock.translate.slinky import recorded_spec
from penstock.translate.slinky.recorded_spec import recorded
from penstock.translate.slinky.worker_set import worker_set
from support.nodesets import nodeset

LIVE: Json = {
    "controllerRef": {"name": "slurm"},
    "replicas": 3,
    "slurmd": {"image": "slurmd:2", "env": [{"name": "A", "value": "1"}]},
    "template": {"spec": {"nodeSelector": {"a": "b"}, "volumes": [{"name": "v", "emptyDir": {}}]}},
    "ordinalPadding": 0,
    "updateStrategy": {"type": "OnDelete"},
}


def declared(spec: Json, **notes: str) -> NodeSet:
    meta = {
        "name": "compute",
        "namespace": "slurm",
        "uid": "u",
        "resourceVersion": "7",
        "annotations": notes,
    }
    body = {"apiVersion": "slinky.slurm.net/v1beta1", "kind": "NodeSet"}
    return msgspec.convert({**body, "metadata": meta, "spec": spec}, NodeSet)


def record(spec: Json, number: int) -> ControllerRevision:
    found = worker.revision(declared(spec))
    data: Json = msgspec.json.decode(msgspec.json.encode(found.data))
    return ControllerRevision(metadata=ObjectMeta(name=found.name), data=data, revision=number)


def changed(**fields: Any) -> Json:
    return {key: value for key, value in {**LIVE, **fields}.items() if value is not None}


def decide(value: str, live: Json, *records: ControllerRevision) -> Rollback:
    of = declared(live)
    every = [meaning.recorded_revision(of, one) for one in records]
    return rollback(worker_set(of), value, meaning.declared_revision(of), every)


def patch(of: NodeSet, live: Json, back: Rollback) -> list[Json]:
    return recorded_spec.patch(of, live, back.value, back.spec)


def applied(live: Json, steps: list[Json]) -> Json:
    spec = dict(live)
    for step in steps:
        _, root, *rest = step["path"].split("/")
        if root == "spec" and step["op"] == "remove":
            del spec[rest[0]]
        elif root == "spec":
            spec[rest[0]] = step["value"]
    return spec


class TestWhich:
    def test_a_number_a_name_and_the_one_before(self) -> None:
        """Feature row 40."""
        first, second = record(changed(slurmd={"image": "slurmd:1"}), 1), record(LIVE, 2)
        for value in ("1", first.metadata.name, "0", "previous"):
            found = decide(value, LIVE, second, first)
            assert (found.number, found.why) == (1, "")
        assert decide("2", LIVE, first, second).number == 2

    def test_the_one_before_means_another_template(self) -> None:
        same = record(LIVE, 2)
        written_out = ControllerRevision(
            metadata=ObjectMeta(name="compute-other"),
            data={"spec": {**same.data["spec"], "logfile": {"env": None, "$patch": "replace"}}},
            revision=3,
        )
        first = record(changed(slurmd={"image": "slurmd:1"}), 1)
        assert decide("previous", LIVE, written_out, same, first).number == 1

    def test_a_revision_that_is_not_there_is_told_with_those_that_are(self) -> None:
        found = decide("9", LIVE, record(LIVE, 2))
        assert found.spec is None
        assert "there is no revision 9, but 2 (compute-" in found.why
        assert "spec.revisionHistoryLimit is 0" in found.why
        assert "no older template is recorded" in decide("0", LIVE, record(LIVE, 2)).why

    def test_a_record_of_something_else_is_not_taken(self) -> None:
        other = ControllerRevision(metadata=ObjectMeta(name="x"), data={"spec": 3}, revision=1)
        assert "does not record a template" in decide("1", LIVE, other).why

    @pytest.mark.parametrize(
        ("notes", "value"),
        [
            ({}, None),
            ({ROLLBACK: ""}, None),
            ({ROLLBACK: " 3 "}, "3"),
            ({ROLLBACK: "3", ROLLED_BACK: "3"}, None),
            ({ROLLBACK: "3", ROLLED_BACK: "2"}, "3"),
        ],
    )
    def test_each_value_is_done_once(self, notes: dict[str, str], value: str | None) -> None:
        assert requested(worker_set(declared(LIVE, **notes))) == value

    def test_a_nodeset_that_goes_is_left(self) -> None:
        going = nodeset(deleted=1.0)
        meta = msgspec.structs.replace(going.metadata, annotations={ROLLBACK: "1"})
        assert requested(worker_set(msgspec.structs.replace(going, metadata=meta))) is None


class TestPatch:
    @pytest.mark.parametrize(
        "before",
        [
            changed(slurmd={"image": "slurmd:1"}),
            changed(slurmd=None),
            changed(template=None),
            changed(template={"metadata": {"labels": {"a": "b"}}, "spec": {"hostNetwork": False}}),
            changed(extraConf="Weight=3", oversubscribeNode=True, ordinalPadding=2),
            changed(ssh={"enabled": True, "extraSshdConfig": "PermitRootLogin no\n"}),
            changed(logfile={"image": "tail"}),
        ],
    )
    def test_the_spec_is_as_it_was(self, before: Json) -> None:
        """S152."""
        first = record(before, 1)
        back = decide("1", LIVE, first, record(LIVE, 2))
        steps = patch(declared(LIVE), LIVE, back)
        assert applied(LIVE, steps) == before
        returned = applied(
            before, patch(declared(before), before, decide("2", before, record(LIVE, 2)))
        )
        assert {**returned, "ordinalPadding": 0} == LIVE

    def test_nothing_else_changes_and_an_old_view_is_a_conflict(self) -> None:
        first = record(changed(slurmd={"image": "slurmd:1"}), 1)
        steps = patch(declared(LIVE), LIVE, decide("1", LIVE, first))
        assert steps[:2] == [
            {"op": "replace", "path": "/metadata/uid", "value": "u"},
            {"op": "replace", "path": "/metadata/resourceVersion", "value": "7"},
        ]
        assert [one["path"] for one in steps[2:]] == [
            "/metadata/annotations/nodeset.penstock.dev~1rolled-back-to",
            "/spec/slurmd",
        ]

    def test_what_cannot_be_done_is_noted_alone(self) -> None:
        steps = patch(declared(LIVE), LIVE, decide("9", LIVE))
        assert [one["path"] for one in steps][2:] == [
            "/metadata/annotations/nodeset.penstock.dev~1rolled-back-to"
        ]

    def test_false_is_not_the_same_as_nothing(self) -> None:
        quiet = changed(template={"spec": {"automountServiceAccountToken": False}})
        loud = changed(template={"spec": {"dnsPolicy": "Default"}})
        back = decide("1", loud, record(quiet, 1))
        assert applied(loud, patch(declared(loud), loud, back)) == quiet

    def test_marks_of_patches_and_nulls_are_not_written(self) -> None:
        data = {"spec": {"template": {"spec": {"a": None, "b": {"$patch": "replace", "c": 1}}}}}
        assert recorded(data) == {"template": {"spec": {"b": {"c": 1}}}}
