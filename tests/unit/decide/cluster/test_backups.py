"""Which slurmctld of several carries the label, and which standby gets a new pod: row 8, D7."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from penstock.api.cluster.marks import CONFIG_HASH
from penstock.api.kubernetes.kinds import Pod
from penstock.api.slinky.labels import CONTROLLER_ACTIVE
from penstock.decide.cluster.backups import SETTLED_S, active, outdated, unmarked
from penstock.translate.slinky.cluster import MARKS

SINCE = "2026-01-01T00:00:00Z"
LATER = 1767225600.0 + SETTLED_S


def slurmctld(
    name: str, *, labelled: bool = False, ready: bool = True, deleting: bool = False, had: str = "a"
) -> Pod:
    meta: dict[str, Any] = {
        "name": name,
        "namespace": "slurm",
        "labels": {CONTROLLER_ACTIVE: "true"} if labelled else {},
        "annotations": {CONFIG_HASH: had} if had else {},
    }
    if deleting:
        meta["deletionTimestamp"] = SINCE
    container = {"name": "slurmctld", "ready": ready}
    status = {"containerStatuses": [container]}
    return msgspec.convert({"metadata": meta, "status": status}, Pod)


@pytest.mark.parametrize(
    ("answering", "wanted"),
    [
        ({"c-0": True, "c-1": True}, "c-0"),
        ({"c-0": False, "c-1": True}, "c-1"),
        ({"c-1": True}, "c-1"),
        ({"c-0": False, "c-1": False}, None),
        (None, None),
    ],
)
def test_the_first_that_answers_is_the_one_that_works(
    answering: dict[str, bool] | None, wanted: str | None
) -> None:
    assert active(MARKS, [slurmctld("c-0", labelled=True), slurmctld("c-1")], answering) == wanted


def test_one_that_goes_works_no_more() -> None:
    pods = [slurmctld("c-0", labelled=True, deleting=True), slurmctld("c-1")]
    assert active(MARKS, pods, {"c-0": True, "c-1": True}) == "c-1"


def test_while_nobody_can_be_asked_the_first_that_runs_is_taken_when_none_was_before() -> None:
    assert active(MARKS, [slurmctld("c-0", ready=False), slurmctld("c-1")], None) == "c-1"
    stopped = slurmctld("c-0", labelled=True, ready=False)
    assert active(MARKS, [stopped, slurmctld("c-1")], None) == "c-1"
    assert active(MARKS, [slurmctld("c-0", ready=False)], None) is None


def test_a_standby_that_started_with_other_files_is_replaced_and_the_active_one_is_not() -> None:
    pods = [slurmctld("c-0", labelled=True, had="a"), slurmctld("c-1", had="a")]
    assert [pod.metadata.name for pod in outdated(MARKS, pods, "b", SINCE, LATER)] == ["c-1"]
    assert outdated(MARKS, pods, "a", SINCE, LATER) == []


def test_standbys_wait_until_the_configuration_rests() -> None:
    pods = [slurmctld("c-0", labelled=True), slurmctld("c-1")]
    assert outdated(MARKS, pods, "b", SINCE, LATER - 1) == []
    assert outdated(MARKS, pods, "b", "", LATER) == []
    assert outdated(MARKS, pods, "", SINCE, LATER) == []


def test_nobody_is_replaced_while_it_is_not_known_who_works() -> None:
    assert outdated(MARKS, [slurmctld("c-0"), slurmctld("c-1")], "b", SINCE, LATER) == []


def test_what_a_pod_started_with_is_noted_once() -> None:
    new = slurmctld("c-1", had="")
    assert unmarked([slurmctld("c-0"), new, slurmctld("c-2", had="", deleting=True)]) == [new]
    assert outdated(MARKS, [slurmctld("c-0", labelled=True), new], "b", SINCE, LATER) == []
