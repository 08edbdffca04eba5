"""Fields that a declaration takes from those who had set them by hand."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.api.kubernetes.meta import Json
from penstock.decide.advice.overridden_fields import OverriddenField, describe, find_overridden
from penstock.simulation.apiserver.fields import after_update, apply

HELM, PATCH = "helm", "kubectl-patch"
MADE: Json = {"replicas": 2, "partition": {"enabled": True, "config": "State=UP"}}


def made(manager: str = HELM, **spec: Any) -> Json:
    obj = {"metadata": {"name": "n"}, "spec": spec or MADE}
    return after_update({}, obj, manager, "now")


def patched(obj: Json, manager: str, **spec: Any) -> Json:
    return after_update(obj, {**obj, "spec": {**obj["spec"], **spec}}, manager, "now")


def test_what_a_release_sets_over_a_patch_is_named_with_both_values_and_both_owners() -> None:
    """S034."""
    by_hand = patched(
        made(), PATCH, replicas=3, partition={"enabled": True, "config": "State=DOWN"}
    )
    found = find_overridden(by_hand, patched(by_hand, HELM, **MADE))
    assert found == (
        OverriddenField("spec.partition.config", "State=DOWN", PATCH, "State=UP", HELM),
        OverriddenField("spec.replicas", 3, PATCH, 2, HELM),
    )
    assert describe(found) == (
        "helm overwrote fields of other managers: "
        'spec.partition.config="State=DOWN" (set by kubectl-patch) is now "State=UP"; '
        "spec.replicas=3 (set by kubectl-patch) is now 2"
    )


def test_an_apply_that_takes_fields_by_force_is_told_too() -> None:
    by_hand = patched(made(), PATCH, replicas=3)
    declared = {"metadata": {"name": "n"}, "spec": {"replicas": 2}}
    found = find_overridden(by_hand, apply(by_hand, declared, HELM, "now", force=True))
    assert [(one.path, one.by) for one in found] == [("spec.replicas", HELM)]


def test_a_number_of_nodes_that_was_scaled_is_one_of_them() -> None:
    scaled = patched(made(), "kubectl", replicas=3)
    entry = next(e for e in scaled["metadata"]["managedFields"] if e["manager"] == "kubectl")
    entry["subresource"] = "scale"
    (found,) = find_overridden(scaled, patched(scaled, HELM, replicas=1))
    assert (found.path, found.was, found.of) == ("spec.replicas", 3, "kubectl")


@pytest.mark.parametrize("manager", [PATCH, "kubectl-edit", "kubectl", "penstock"])
def test_what_is_done_by_hand_or_by_the_operator_takes_nothing_back(manager: str) -> None:
    assert find_overridden(made(), patched(made(), manager, replicas=3)) == ()


def test_what_a_declaration_changes_of_its_own_is_nobody_elses_matter() -> None:
    by_hand = patched(made(), PATCH, replicas=3)
    other = {"enabled": True, "config": "State=DRAIN"}
    assert find_overridden(by_hand, patched(by_hand, HELM, partition=other)) == ()
    assert find_overridden(by_hand, patched(by_hand, HELM, replicas=3)) == ()
    assert find_overridden({"metadata": {}, "spec": {}}, made()) == ()


def test_a_long_value_is_cut() -> None:
    by_hand = patched(made(), PATCH, text="x" * 500)
    assert len(describe(find_overridden(by_hand, patched(by_hand, HELM, text="y" * 500)))) < 300


def test_a_field_that_a_release_takes_away_is_told_and_one_that_a_user_takes_away_is_not() -> None:
    by_hand = patched(made(), PATCH, replicas=3, extra="x")
    without = {key: value for key, value in by_hand["spec"].items() if key != "extra"}
    replaced = after_update(by_hand, {**by_hand, "spec": {**without, "replicas": 1}}, HELM, "later")
    found, _ = find_overridden(by_hand, replaced)
    assert str(found) == 'spec.extra="x" (set by kubectl-patch) is now unset'
    taken_away = after_update(by_hand, {**by_hand, "spec": without}, PATCH, "later")
    assert find_overridden(by_hand, taken_away) == ()
