"""Fields that another manager updated become ours, but for those that are to stay its own."""

from __future__ import annotations

from typing import cast

from penstock.api.kubernetes.meta import Json
from penstock.kube.apply.field_owners import ownership_patch

FIELDS: Json = {
    "f:metadata": {"f:labels": {"f:chart": {}}},
    "f:spec": {"f:strategy": {}, "f:template": {"f:spec": {"f:nodeSelector": {}}}},
}


def live(manager: str = "slurm-operator") -> Json:
    entry: Json = {"manager": manager, "operation": "Update", "fieldsV1": FIELDS}
    return {
        "apiVersion": "apps/v1",
        "metadata": {"resourceVersion": "5", "managedFields": [entry]},
    }


def test_all_fields_of_the_other_manager_are_handed_over() -> None:
    patch = ownership_patch(live(), "penstock", {"slurm-operator"})
    assert patch is not None
    (only,) = cast("list[Json]", patch[0]["value"])
    assert (only["manager"], only["operation"], only["fieldsV1"]) == ("penstock", "Apply", FIELDS)


def test_fields_below_a_path_stay_with_their_owner() -> None:
    patch = ownership_patch(live(), "penstock", {"slurm-operator"}, leave=[("spec", "template")])
    assert patch is not None
    ours, theirs = cast("list[Json]", patch[0]["value"])
    assert ours["fieldsV1"] == {
        "f:metadata": {"f:labels": {"f:chart": {}}},
        "f:spec": {"f:strategy": {}},
    }
    assert (theirs["manager"], theirs["fieldsV1"]) == (
        "slurm-operator",
        {"f:spec": {"f:template": {"f:spec": {"f:nodeSelector": {}}}}},
    )
    patch[0]["value"][1] |= {"operation": "Update"}
    left: Json = {**live(), "metadata": {"managedFields": [theirs], "resourceVersion": "6"}}
    assert (
        ownership_patch(left, "penstock", {"slurm-operator"}, leave=[("spec", "template")]) is None
    )


def test_nothing_is_taken_from_a_manager_that_is_not_named() -> None:
    assert ownership_patch(live("helm"), "penstock", {"slurm-operator"}) is None
