"""What is written on a pod and on its Slurm node: conditions, deadline, protection, ownership."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection
from typing import Any

import pytest
from msgspec.structs import replace

from penstock.api.kubernetes.kinds import (
    ContainerRunning,
    ContainerState,
    ContainerStatus,
    ContainerTerminated,
    ContainerWaiting,
    Pod,
    PodCondition,
)
from penstock.api.slinky.labels import POD_DEADLINE, POD_PROTECT
from penstock.decide.action import DeleteNodeRecord, DrainNode
from penstock.decide.observed import node_comment
from penstock.decide.observed.slurm_view import SlurmSnapshot
from penstock.decide.observed.view import WorkerSetView
from penstock.decide.pod import deadline, labels, protection
from penstock.decide.pod.conditions import conditions_action
from penstock.decide.slurm_node import records
from penstock.slurm.known import Known, Unknown
from penstock.slurm.state import Job, Node
from penstock.translate.slinky.worker_set import MARKS, worker_set
from support.nodesets import (
    NOW,
    UNKNOWN,
    job,
    known_nodes,
    node,
    nodeset,
    observed,
    pod,
    view,
    worker,
)

TERMINATING = "slurm-operator: Pod is terminating"
COMMENT = {
    "namespace": "slurm",
    "podName": "compute-0",
    "node": "machine-0",
    "nodeSetName": "compute",
    "nodeSetUID": "nodeset-uid",
}


def slurm(*nodes: Node, jobs: tuple[Job, ...] | Unknown = ()) -> SlurmSnapshot:
    return SlurmSnapshot.of(
        known_nodes(*nodes), jobs if isinstance(jobs, Unknown) else Known(jobs, 1.0)
    )


def orphaned(
    seen: WorkerSetView, wanted: Collection[str], answer: SlurmSnapshot
) -> records.OrphanedRecords:
    every = dataclasses.replace(observed(seen), slurm=answer)
    return records.orphaned_records(seen, every, wanted)


def condition(type_: str, message: str = "") -> PodCondition:
    return PodCondition(
        type=type_, status="True", message=message, last_transition_time="2027-01-01T00:00:00Z"
    )


def comment(**changes: str) -> str:
    return json.dumps({**COMMENT, **changes}, separators=(",", ":"))


def test_a_pod_of_slurm_operator_gets_the_label_that_users_look_for() -> None:
    """S008."""
    ours = pod()
    theirs = replace(ours, metadata=replace(ours.metadata, labels={}))
    assert labels.missing(MARKS, worker(ours)) == {}
    assert labels.missing(MARKS, worker(theirs)) == {"slinky.slurm.net/component": "slurmd"}


class TestConditions:
    def test_state_and_reason_are_shown(self) -> None:
        """Feature row 47."""
        answer = slurm(node(0, "MIXED", "DRAIN", "COMPLETING", reason="Manual maintenance"))
        found = conditions_action(MARKS, worker(pod(), slurm=answer), NOW)
        assert found is not None
        assert [c.type for c in found.conditions] == [
            "SlurmNodeStateMixed",
            "SlurmNodeStateCompleting",
            "SlurmNodeStateDrain",
        ]
        assert {c.message for c in found.conditions} == {"Manual maintenance"}
        assert {c.last_transition_time for c in found.conditions} == {"2027-01-15T08:00:00Z"}

    def test_stale_ones_go_and_no_other_is_touched(self) -> None:
        """D24, feature row 47."""
        found = conditions_action(
            MARKS,
            worker(
                pod(conditions=(condition("SlurmNodeStateIdle"), condition("SlurmNodeStateDrain"))),
                slurm=slurm(node(0, "IDLE")),
            ),
            NOW,
        )
        assert found is not None
        assert found.conditions == ()
        assert found.remove == ("SlurmNodeStateDrain",)

    def test_a_new_reason_keeps_the_time_of_the_state(self) -> None:
        found = conditions_action(
            MARKS,
            worker(
                pod(conditions=(condition("SlurmNodeStateDown", "old"),)),
                slurm=slurm(node(0, "DOWN", reason="new")),
            ),
            NOW,
        )
        assert found is not None
        assert found.conditions == (condition("SlurmNodeStateDown", "new"),)

    def test_nothing_is_written_twice(self) -> None:
        same = pod(conditions=(condition("SlurmNodeStateIdle"),))
        assert conditions_action(MARKS, worker(same, slurm=slurm(node(0))), NOW) is None

    def test_a_node_that_is_gone_takes_them_along(self) -> None:
        found = conditions_action(
            MARKS,
            worker(pod(conditions=(condition("SlurmNodeStateIdle"),)), slurm=slurm(node(9))),
            NOW,
        )
        assert found is not None
        assert found.remove == ("SlurmNodeStateIdle",)

    @pytest.mark.parametrize(
        "answer", [SlurmSnapshot.of(Known({}, 1.0), UNKNOWN), SlurmSnapshot.of(UNKNOWN, UNKNOWN)]
    )
    def test_a_silent_slurm_changes_nothing(self, answer: SlurmSnapshot) -> None:
        shown = pod(conditions=(condition("SlurmNodeStateIdle"),))
        assert conditions_action(MARKS, worker(shown, slurm=answer), NOW) is None


class TestFailing:
    """S059: why slurmd fails is at the pod, in one line."""

    FATAL = "[2026-11-22T18:14:31.705] error: Bogus\n[2026-11-22T18:14:31.705] fatal: no node\n"
    ENDED = ContainerTerminated(exit_code=1, message=FATAL)
    SHOWN = condition("penstock.dev/SlurmdFailing", "error: Bogus / fatal: no node")

    def failing(self, *conditions: PodCondition, **slurmd: Any) -> Pod:
        found = ContainerStatus(name="slurmd", **slurmd)
        return pod(ready=False, conditions=conditions, slurmd=found)

    @pytest.mark.parametrize("answer", [slurm(), SlurmSnapshot.of(UNKNOWN, UNKNOWN)])
    def test_the_last_words_are_shown_whatever_slurm_says(self, answer: SlurmSnapshot) -> None:
        for state in (
            {"state": ContainerState(terminated=self.ENDED)},
            {
                "state": ContainerState(waiting=ContainerWaiting(reason="CrashLoopBackOff")),
                "last_state": ContainerState(terminated=self.ENDED),
            },
        ):
            found = conditions_action(MARKS, worker(self.failing(**state), slurm=answer), NOW)
            assert found is not None
            assert [(one.type, one.message) for one in found.conditions] == [
                (self.SHOWN.type, self.SHOWN.message)
            ]
            shown = self.failing(self.SHOWN, **state)
            assert conditions_action(MARKS, worker(shown, slurm=answer), NOW) is None

    def test_they_stay_while_it_tries_again_and_go_when_it_is_ready(self) -> None:
        again = {
            "state": ContainerState(running=ContainerRunning()),
            "last_state": ContainerState(terminated=self.ENDED),
        }
        assert (
            conditions_action(MARKS, worker(self.failing(self.SHOWN, **again), slurm=slurm()), NOW)
            is None
        )
        assert conditions_action(MARKS, worker(self.failing(**again), slurm=slurm()), NOW) is None
        found = conditions_action(
            MARKS, worker(self.failing(self.SHOWN, ready=True, **again), slurm=slurm()), NOW
        )
        assert found is not None
        assert found.remove == ("penstock.dev/SlurmdFailing",)

    def test_an_end_that_was_asked_for_is_no_failure(self) -> None:
        ended = ContainerState(terminated=ContainerTerminated(exit_code=0))
        assert (
            conditions_action(MARKS, worker(self.failing(state=ended), slurm=slurm()), NOW) is None
        )


class TestDeadline:
    def test_the_last_job_to_end_decides(self) -> None:
        """Feature row 30."""
        jobs = (job(1, 0, time_limit=10), job(2, 0, time_limit=20), job(3, 1, time_limit=90))
        assert deadline.changes(MARKS, worker(pod(), slurm=slurm(jobs=jobs))) == {
            POD_DEADLINE: "2027-01-15T08:10:00Z"
        }

    def test_no_limit_is_292_years(self) -> None:
        """Feature row 30."""
        changes = deadline.changes(
            MARKS, worker(pod(), slurm=slurm(jobs=(job(1, 0, time_limit=None),)))
        )
        assert (changes[POD_DEADLINE] or "").startswith("2319-")

    def test_it_goes_with_the_job(self) -> None:
        written = pod(annotations={POD_DEADLINE: "2027-01-15T08:10:00Z"})
        assert deadline.changes(MARKS, worker(written, slurm=slurm())) == {POD_DEADLINE: None}

    def test_it_stays_while_jobs_are_unknown(self) -> None:
        written = pod(annotations={POD_DEADLINE: "2027-01-15T08:10:00Z"})
        assert deadline.changes(MARKS, worker(written, slurm=slurm(jobs=UNKNOWN))) == {}

    def test_a_job_without_a_start_gives_the_same_at_any_time(self) -> None:
        waiting = slurm(jobs=(job(1, 0, start_time=None),))
        first = deadline.changes(MARKS, worker(pod(), slurm=waiting))
        assert (
            deadline.changes(
                MARKS,
                worker(pod(annotations={POD_DEADLINE: first[POD_DEADLINE] or ""}), slurm=waiting),
            )
            == {}
        )


PROTECTED = {POD_PROTECT: "true"}


class TestProtection:
    @pytest.mark.parametrize(
        "answer",
        [
            slurm(node(0, "ALLOCATED")),
            slurm(node(0, "IDLE", "COMPLETING")),
            slurm(node(0), jobs=(job(1, 0, state="SUSPENDED"),)),
            slurm(node(0, "MIXED"), jobs=UNKNOWN),
        ],
    )
    def test_a_busy_pod_is_protected(self, answer: SlurmSnapshot) -> None:
        """Feature row 36."""
        assert protection.labels(worker_set(nodeset()), worker(pod(), slurm=answer)) == PROTECTED
        assert (
            protection.labels(worker_set(nodeset()), worker(pod(labels=PROTECTED), slurm=answer))
            == {}
        )

    def test_an_idle_pod_is_not(self) -> None:
        assert protection.labels(
            worker_set(nodeset()), worker(pod(labels=PROTECTED), slurm=slurm(node(0)))
        ) == {POD_PROTECT: None}

    @pytest.mark.parametrize(
        "answer",
        [slurm(), slurm(node(9)), slurm(node(0), jobs=UNKNOWN), SlurmSnapshot.of(UNKNOWN, UNKNOWN)],
    )
    def test_not_knowing_takes_no_protection_away(self, answer: SlurmSnapshot) -> None:
        assert (
            protection.labels(worker_set(nodeset()), worker(pod(labels=PROTECTED), slurm=answer))
            == {}
        )

    def test_it_can_be_switched_off(self) -> None:
        """Feature row 36."""
        off = worker_set(nodeset(workload_disruption_protection=False))
        assert protection.labels(off, worker(pod(), slurm=slurm(node(0, "ALLOCATED")))) == {}
        assert protection.labels(
            off, worker(pod(labels=PROTECTED), slurm=slurm(node(0, "ALLOCATED")))
        ) == {POD_PROTECT: None}


class TestOwnership:
    def test_the_comment_is_slurm_operators(self) -> None:
        found = records.comment_action(worker_set(nodeset()), worker(pod(), node(0)))
        assert found is not None
        assert found.comment == comment()

    def test_a_true_comment_is_not_written_again(self) -> None:
        assert (
            records.comment_action(worker_set(nodeset()), worker(pod(), node(0, comment=comment())))
            is None
        )
        spaced = json.dumps(COMMENT, indent=1, sort_keys=True)
        found = records.comment_action(
            worker_set(nodeset()), worker(pod(), node(0, comment=spaced))
        )
        assert found is None

    def test_it_waits_for_the_pod_unless_the_pod_goes(self) -> None:
        unready = pod(ready=False)
        assert records.comment_action(worker_set(nodeset()), worker(unready, node(0))) is None
        assert (
            records.comment_action(worker_set(nodeset()), worker(unready, node(0)), going=True)
            is not None
        )

    @pytest.mark.parametrize("reason", ["Maintenance", ""])
    def test_somebodys_drain_is_remembered_until_it_ends(self, reason: str) -> None:
        drained = node(0, "IDLE", "DRAIN", reason=reason, comment=comment())
        found = records.comment_action(worker_set(nodeset()), worker(pod(), drained))
        assert found is not None
        assert found.comment == comment(drain=reason)
        hidden = node(0, "DOWN", "DRAIN", reason=TERMINATING, comment=found.comment)
        assert records.comment_action(worker_set(nodeset()), worker(pod(), hidden)) is None
        ended = node(0, "IDLE", comment=found.comment)
        forgotten = records.comment_action(worker_set(nodeset()), worker(pod(), ended))
        assert forgotten is not None
        assert forgotten.comment == comment()

    @pytest.mark.parametrize(
        "text", ["", "rack 7", "{", "[]", "{}", '{"podName": 1}', '{"podName": ""}']
    )
    def test_other_comments_are_not_ours(self, text: str) -> None:
        assert node_comment.read(MARKS.comment, text) is None


class TestRecordsWithoutPods:
    GONE = node(0, "DOWN", "DRAIN", reason=TERMINATING, comment=comment())

    def test_the_record_of_a_pod_that_scale_in_took_is_deleted(self) -> None:
        """D35, feature rows 22 and 46."""
        found = orphaned(view(nodeset()), [], slurm(self.GONE))
        assert found.left == ("compute-0",)
        assert [type(action) for action in found.actions] == [DeleteNodeRecord]

    def test_it_stays_while_a_pod_has_it_or_shall_have_it(self) -> None:
        assert orphaned(view(nodeset(), pod(deleted=True)), [], slurm(self.GONE)).left == ()
        assert orphaned(view(nodeset()), ["compute-0"], slurm(self.GONE)).left == ()

    @pytest.mark.parametrize(
        "other",
        [
            node(0, "DOWN", "DRAIN"),
            node(0, "DOWN", "DRAIN", comment="rack 7"),
            node(0, "DOWN", "DRAIN", comment=comment(nodeSetUID="an older namesake's")),
            node(0, "DOWN", "DRAIN", comment=comment(nodeSetName="gpu")),
            node(0, "DOWN", "DRAIN", comment=comment(namespace="other")),
        ],
    )
    def test_records_of_others_are_left_alone(self, other: Node) -> None:
        """S074, feature row 46."""
        assert orphaned(view(nodeset()), [], slurm(other)) == records.OrphanedRecords()

    @pytest.mark.parametrize(
        "answer",
        [
            slurm(node(0, "ALLOCATED", "DRAIN", comment=comment())),
            slurm(GONE, jobs=(job(1, 0),)),
        ],
    )
    def test_it_stays_while_a_job_holds_it(self, answer: SlurmSnapshot) -> None:
        found = orphaned(view(nodeset()), [], answer)
        assert found.left == ("compute-0",)
        assert found.actions == ()

    def test_one_that_takes_jobs_is_drained_first(self) -> None:
        found = orphaned(view(nodeset()), [], slurm(node(0, "IDLE", comment=comment())))
        (action,) = found.actions
        assert isinstance(action, DrainNode)
        assert action.reason == "slurm-operator: Pod (slurm/compute-0) is gone"

    def test_a_silent_slurm_deletes_nothing(self) -> None:
        answer = SlurmSnapshot.of(known_nodes(self.GONE), UNKNOWN)
        assert orphaned(view(nodeset()), [], answer) == records.OrphanedRecords()
