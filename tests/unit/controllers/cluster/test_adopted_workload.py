"""When pods that another operator made stay, and what is written meanwhile."""

from __future__ import annotations

from typing import Any, cast

import pytest

from penstock.api.cluster.marks import ADOPTED_PODS, ADOPTED_TEMPLATE, REPLACE
from penstock.api.kubernetes.meta import Json, KubeObject, ObjectMeta
from penstock.api.kubernetes.spec_parts import PodTemplate
from penstock.controllers.cluster.adopted_workload import inspect
from penstock.controllers.runtime.object_store import ObjectStore
from penstock.render.parts.kept_template import REPLACED, REPLACING
from penstock.render.slinky.cluster.adopted_workload import WorkloadSpec

IMAGE = "registry/daemon:1"
OF = KubeObject(metadata=ObjectMeta(name="slurm", namespace="slurm"))
SERVICE: Json = {"kind": "Service", "metadata": {"name": "slurm"}, "spec": {}}


def workload(*commands: str, **metadata: Any) -> Json:
    container: Json = {"name": "daemon", "image": IMAGE, "command": [*commands]}
    pod: Json = {"metadata": {}, "spec": {"containers": [container]}}
    meta: Json = {"name": "slurm", "namespace": "slurm", **metadata}
    return {"kind": "Deployment", "metadata": meta, "spec": {"replicas": 1, "template": pod}}


def live(manager: str = "manager", note: str = "") -> Json:
    fields: Json = {"f:spec": {"f:replicas": {}, "f:template": {"f:spec": {}}}}
    entry: Json = {"manager": manager, "operation": "Update", "fieldsV1": fields}
    annotations = {ADOPTED_TEMPLATE: note} if note else {}
    return workload("theirs", managedFields=[entry], annotations=annotations)


class Shown:
    """A cache with one object."""

    def __init__(self, found: Json | None) -> None:
        self.found = found

    def live(self, manifest: Json) -> Json | None:
        assert manifest["kind"] == "Deployment"
        return self.found


def found(live_: Json | None, image: str = IMAGE, of: KubeObject = OF, **options: bool) -> Any:
    declared = WorkloadSpec(PodTemplate(), {"daemon": {"image": image}})
    objects = cast("ObjectStore", Shown(live_))
    return inspect(objects, of, [SERVICE, workload("ours")], declared, **options)


@pytest.mark.parametrize("there", [None, live("penstock"), workload("of an old API server")])
def test_what_nobody_else_made_is_written_as_it_is_rendered(there: Json | None) -> None:
    hold = found(there)
    assert not hold.is_foreign
    assert hold.apply() == [SERVICE, workload("ours")]
    assert hold.findings == []


def test_a_template_of_another_operator_is_left_and_noted() -> None:
    hold = found(live())
    assert hold.keeps_pods
    service, written = hold.apply()
    assert service == SERVICE
    assert written["spec"] == {"replicas": 1}
    assert [(one.type, one.ok) for one in hold.findings] == [("PodsAdopted", True)]
    noted = written["metadata"]["annotations"][ADOPTED_TEMPLATE]
    assert found(live(note=noted)).keeps_pods
    assert not found(live(note=noted), image="registry/daemon:2").keeps_pods


def test_it_is_replaced_for_good_once_it_does_not_do_any_more() -> None:
    asked = KubeObject(metadata=ObjectMeta(name="slurm", annotations={ADOPTED_PODS: REPLACE}))
    for note in ("", "v2:of another time", REPLACING, REPLACED):
        for hold in (
            found(live(note=note), image="registry/daemon:2"),
            found(live(note=note), of=asked),
            found(live(note=note), asked=True),
            found(live(note=note), fits=False),
        ):
            assert hold.is_foreign
            assert not hold.keeps_pods
            (told,) = hold.findings
            assert (told.type, told.inverted) == ("PodsAdopted", True)
            written = hold.apply()[1]
            mark = written["metadata"]["annotations"][ADOPTED_TEMPLATE]
            if note:
                assert mark == REPLACED
                assert written["spec"] == workload("ours")["spec"]
            else:
                assert mark == REPLACING
                assert written["spec"] == {"replicas": 1}


def test_a_workload_whose_fields_change_hands_is_still_known() -> None:
    """Between the two requests of a replacement the template is ours by name only."""
    between = live("penstock", note="v2:of another time")
    assert found(between).apply()[1]["metadata"]["annotations"] == {ADOPTED_TEMPLATE: REPLACED}


def test_who_knows_better_may_replace_it_at_once() -> None:
    noted = found(live()).spec_hash
    assert "template" not in found(live(note=noted)).apply()[1]["spec"]
    assert "template" in found(live(note=noted)).apply(stays=False)[1]["spec"]


def test_a_note_of_an_earlier_version_is_read_once_and_written_in_the_form_of_today() -> None:
    older = live(note="0" * 64)
    hold = found(older)
    assert hold.keeps_pods
    assert hold.apply()[1]["metadata"]["annotations"][ADOPTED_TEMPLATE].startswith("v2:")
    assert not found(older, image="registry/daemon:2").keeps_pods
