"""Which slurmctld of several carries the label, and whose pod is recreated: row 8, D7."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from penstock.api.cluster.marks import CONFIG_HASH
from penstock.api.cluster.pod_names import HANDOVER
from penstock.api.kubernetes.kinds import Pod
from penstock.api.kubernetes.meta import Json
from penstock.api.slinky.labels import CONTROLLER_ACTIVE
from penstock.decide.cluster.backups import (
    DEFAULT_TIMEOUT_S,
    SETTLED_S,
    TAKEOVER_S,
    active,
    has_lost_control,
    outdated,
    to_end,
    unmarked,
)
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


def primary(container: Json, *, waits: bool = False, gated: bool = True, restarts: int = 0) -> Pod:
    """The primary's pod: it waits for control, or the kubelet reports this of its slurmctld."""
    state: Json = {"running": {}} if waits else {"terminated": {"exitCode": 0}}
    handover: Json = {"name": HANDOVER, "state": state, "restartCount": restarts}
    status: Json = {
        "initContainerStatuses": [handover] if gated else [],
        "containerStatuses": [{"name": "slurmctld", **container}],
    }
    return msgspec.convert({"metadata": {"name": "c-0"}, "status": status}, Pod)


HUNG: Json = {"started": True, "state": {"running": {}}}
CRASHED: Json = {"started": False, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
BEGINS: Json = {"started": False, "state": {"waiting": {"reason": "PodInitializing"}}}
LOADS: Json = {"started": False, "state": {"running": {}}}
READY: Json = {**HUNG, "ready": True}
TAKEN = slurmctld("c-1", labelled=True)


def test_the_backup_that_has_control_ends_before_the_primary_starts() -> None:
    others = [TAKEN, slurmctld("c-2")]
    assert to_end(MARKS, primary(BEGINS, waits=True), others) is TAKEN
    assert to_end(MARKS, primary(LOADS), others) is None
    assert to_end(MARKS, primary(READY), others) is None
    assert to_end(MARKS, None, others) is None


def test_nothing_more_ends_while_one_ends_or_nobody_is_known_to_have_control() -> None:
    going = slurmctld("c-2", deleting=True)
    assert to_end(MARKS, primary(BEGINS, waits=True), [TAKEN, going]) is None
    assert to_end(MARKS, primary(BEGINS, waits=True), [slurmctld("c-1")]) is None


@pytest.mark.parametrize("container", [HUNG, CRASHED])
def test_a_primary_that_lost_control_does_not_start_again_in_its_pod(
    container: Json,
) -> None:
    had = primary(container)
    conf = "SlurmctldTimeout=10\n"
    assert has_lost_control(MARKS, had, [TAKEN], 10 + TAKEOVER_S + 1, conf)
    assert not has_lost_control(MARKS, had, [TAKEN], 10 + TAKEOVER_S, conf)
    assert not has_lost_control(MARKS, had, [TAKEN], 60, None)
    assert has_lost_control(MARKS, had, [TAKEN], DEFAULT_TIMEOUT_S + TAKEOVER_S + 1, None)


def test_a_primary_that_starts_again_in_its_pod_beside_one_with_control_is_recreated() -> None:
    container: Json = {**LOADS, "restartCount": 1}
    again = primary(container)
    assert has_lost_control(MARKS, again, [TAKEN], 0, None)
    # All of its containers started again, with its Kubernetes node: it has waited.
    assert not has_lost_control(MARKS, primary(container, restarts=1), [TAKEN], 0, None)
    assert not has_lost_control(MARKS, again, [slurmctld("c-1")], 0, None)


@pytest.mark.parametrize(
    "had",
    [
        primary(LOADS),
        primary(BEGINS),
        primary(READY),
        primary(BEGINS, waits=True),
        primary(HUNG, gated=False),
        None,
    ],
    ids=[
        "loads its state",
        "begins",
        "on a lost Kubernetes node",
        "waits",
        "another operator's",
        "absent",
    ],
)
def test_a_primary_that_has_not_lost_control_or_runs_nowhere_keeps_its_pod(
    had: Pod | None,
) -> None:
    assert not has_lost_control(MARKS, had, [TAKEN], 1000, None)


def test_a_primary_keeps_its_pod_while_no_backup_has_control() -> None:
    others = [slurmctld("c-1"), slurmctld("c-2", labelled=True, ready=False)]
    assert not has_lost_control(MARKS, primary(HUNG), others, 1000, None)
