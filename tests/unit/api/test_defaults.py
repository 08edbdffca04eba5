"""What is written into a new object, and that it changes nothing of what it means."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from penstock.api.slinky import names
from penstock.api.slinky.controller import INFO, Controller
from penstock.api.slinky.defaults import controller_defaults as defaults


def controller(name: str = "a", **spec: Any) -> Controller:
    meta = {"namespace": "slurm", "name": name}
    return msgspec.convert({"metadata": meta, "spec": spec}, Controller)


def test_a_controller_is_given_the_cluster_name_that_is_taken_when_it_has_none():
    found = controller()
    given = defaults(found)
    assert given == {"clusterName": "slurm_a"}
    assert names.cluster_name(found) == names.cluster_name(controller(**given))
    assert defaults(controller(**given)) == {}


@pytest.mark.parametrize(
    "found",
    [
        controller(clusterName="mine"),
        controller(external=True, externalConfig={"host": "outside"}),
        controller("x" * 40),
        controller(""),
    ],
    ids=["named", "outside", "too long", "not named yet"],
)
def test_nothing_is_guessed(found: Controller):
    assert defaults(found) == {}


def test_only_what_cannot_change_anyway_is_written():
    """Else what is written would stand in the way of a later default, or of the user."""
    assert all(f"{field} is immutable" in str(INFO.rules) for field in defaults(controller()))
