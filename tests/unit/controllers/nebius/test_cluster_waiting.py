"""What workers wait for."""

from __future__ import annotations

from typing import cast

import msgspec

from penstock.api.kubernetes.meta import Condition
from penstock.api.nebius.slurmcluster import SlurmCluster
from penstock.controllers.nebius.cluster_waiting import jail_wait
from penstock.decide.jail.populate import POPULATED
from support import nebius


def cluster(*conditions: Condition) -> SlurmCluster:
    found = cast("SlurmCluster", nebius.made("slurmcluster-5.0-0"))
    status = msgspec.structs.replace(found.status, conditions=conditions)
    return msgspec.structs.replace(found, status=status)


def test_an_absent_cluster_is_reported_by_others() -> None:
    assert jail_wait(None) is None


def test_a_jail_of_which_nothing_is_known_is_waited_for() -> None:
    found = jail_wait(cluster())
    assert found is not None
    assert (found.ok, found.reason) == (None, "JailNotPopulated")
    assert found.message == "Workers wait for the jail: the jail is not filled"


def test_the_words_are_those_of_the_cluster() -> None:
    found = jail_wait(cluster(Condition(POPULATED, "False", reason="Failed", message="disk full")))
    assert found is not None
    assert found.message.endswith("the jail: disk full")


def test_a_filled_jail_is_not_waited_for() -> None:
    assert jail_wait(cluster(Condition(POPULATED, "True", reason="Complete"))) is None
