"""ScheduledUpdate: which reservation there shall be, and which pods go in it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from penstock.api.cluster.marks import CORDONED_FOR, DRAIN_FINALIZER
from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import Pod
from penstock.api.slinky.labels import POD_CORDON, RESERVATION_FINALIZER
from penstock.api.slinky.nodeset import NodeSet, ScheduledUpdate, UpdateStrategy
from penstock.base import times
from penstock.catalog.condition_type import ConditionType
from penstock.decide.action import (
    AddFinalizer,
    DeletePod,
    DeleteReservation,
    PatchPod,
    RejectedReservation,
    RemoveFinalizer,
    SetReservation,
)
from penstock.decide.nodeset.plan import Plan, plan
from penstock.decide.observed.reservations import ObservedReservations
from penstock.decide.observed.view import ControllerState, WorkerSetView
from penstock.slurm.known import Known, Unknown
from penstock.slurm.reservation import Reservation
from support.nodesets import NOW, job, known_nodes, node, nodeset, pod, view

NAME = "SlurmOperatorMaint-compute"
OLD = {"controller.kubernetes.io/hash": "old"}
TAKEN = {POD_CORDON: "true", CORDONED_FOR: "update since 2027-01-15T08:00:00Z"}
OURS = frozenset({"MAINT", "IGNORE_JOBS", "SPEC_NODES"})
HOUR = 3600
AHEAD = (int(NOW) + HOUR, int(NOW) + 2 * HOUR)
RUNS = (int(NOW) - 600, int(NOW) + 3000)
OVER = (int(NOW) - 2 * HOUR, int(NOW) - HOUR)


def wanted(
    when: tuple[int, int] | None = AHEAD, *flags: str, marked: bool = True, **more: Any
) -> NodeSet:
    """Scheduled for then; not at all without `when`."""
    strategy = UpdateStrategy()
    if when is not None:
        update = ScheduledUpdate(
            start_time=times.write(when[0]), duration=f"{when[1] - when[0]}s", flags=flags
        )
        strategy = UpdateStrategy(type="ScheduledUpdate", scheduled_update=update)
    found = nodeset(2, update_strategy=strategy, **more)
    held = (DRAIN_FINALIZER, RESERVATION_FINALIZER) if marked else (DRAIN_FINALIZER,)
    meta = msgspec.structs.replace(found.metadata, finalizers=held)
    return msgspec.structs.replace(found, metadata=meta)


def there(
    when: tuple[int, int], *nodes: int, flags: frozenset[str] = OURS
) -> Known[dict[str, Reservation]]:
    listed = frozenset(f"compute-{number}" for number in nodes)
    return Known({NAME: Reservation(NAME, *when, listed, flags)}, 1.0)


NONE: Known[dict[str, Reservation]] = Known({}, 1.0)


def old(ordinal: int, **more: Any) -> Pod:
    return pod(ordinal, labels=OLD, **more)


def seen(
    of: NodeSet, reservations: Known[dict[str, Reservation]] | Unknown, *pods: Pod, **more: Any
) -> WorkerSetView:
    return view(
        of, *(pods or (old(0), old(1))), reservations=ObservedReservations(reservations), **more
    )


def in_maintenance(*ordinals: int, **others: tuple[str, ...]) -> Any:
    """Nodes 0 and 1, of which these are in maintenance."""
    states = {n: ("IDLE", "MAINTENANCE") if n in ordinals else ("IDLE",) for n in (0, 1)}
    states |= {int(name.removeprefix("n")): state for name, state in others.items()}
    return known_nodes(*(node(number, *state) for number, state in states.items()))


def of(found: Plan, *kinds: type[Any]) -> list[Any]:
    return [one for one in found.actions if isinstance(one, kinds)]


def steps(found: Plan) -> list[Any]:
    return of(found, AddFinalizer, RemoveFinalizer, SetReservation, DeleteReservation)


def told(found: Plan) -> Finding:
    return next(one for one in found.findings if one.type == ConditionType.RESERVATION_CREATED)


def taken(found: Plan) -> list[str]:
    return [one.name for one in of(found, PatchPod) if one.annotations.get(POD_CORDON)]


class TestReservation:
    def test_a_finalizer_is_written_before_it_is_made(self) -> None:
        """Feature row 39."""
        found = plan(seen(wanted(marked=False), NONE))
        assert steps(found) == [AddFinalizer(RESERVATION_FINALIZER)]

    def test_it_has_the_nodes_of_old_pods_and_no_others(self) -> None:
        found = plan(seen(wanted(AHEAD, "overlap"), NONE, old(0), pod(1)))
        (made,) = steps(found)
        assert (made.name, made.nodes) == (NAME, ("compute-0",))
        assert (made.start, made.end) == AHEAD
        assert made.flags == ("MAINT", "IGNORE_JOBS", "OVERLAP")
        assert taken(found) == []

    def test_it_says_when_it_will_be(self) -> None:
        finding = told(plan(seen(wanted(), there(AHEAD, 0, 1))))
        assert (finding.ok, finding.reason, finding.inverted) == (True, "Created", False)
        assert "compute-[0-1] are replaced" in finding.message
        assert f"from {times.write(AHEAD[0])} to {times.write(AHEAD[1])}" in finding.message

    def test_one_that_is_as_declared_is_left_alone(self) -> None:
        found = plan(seen(wanted(), there(AHEAD, 0, 1)))
        assert steps(found) == []
        assert found.requeue_after == pytest.approx(3600.0)

    def test_its_nodes_follow_the_pods(self) -> None:
        (changed,) = steps(plan(seen(wanted(), there(AHEAD, 0, 1), old(0), pod(1))))
        assert (changed.nodes, changed.start, changed.end) == (("compute-0",), None, None)

    @pytest.mark.parametrize(
        "other",
        [
            there((AHEAD[0] + 60, AHEAD[1]), 0, 1),
            there((AHEAD[0], AHEAD[1] + 60), 0, 1),
            there(AHEAD, 0, 1, flags=OURS | {"DAILY"}),
            there(AHEAD, 0, 1, flags=OURS | {"FLEX"}),
            there(AHEAD, 0, 1, flags=OURS - {"MAINT"}),
        ],
    )
    def test_a_changed_schedule_makes_it_anew(self, other: Known[dict[str, Reservation]]) -> None:
        (gone,) = steps(plan(seen(wanted(), other)))
        assert isinstance(gone, DeleteReservation)

    def test_slurm_s_own_flags_are_no_change(self) -> None:
        flags = OURS | {"OVERLAP", "FORCE_START"}
        assert steps(plan(seen(wanted(), there(AHEAD, 0, 1, flags=flags)))) == []

    def test_one_that_somebody_deleted_is_made_again_for_what_is_left(self) -> None:
        (made,) = steps(plan(seen(wanted(RUNS), NONE)))
        assert (made.start, made.end) == (int(NOW), RUNS[1])
        assert steps(plan(seen(wanted(RUNS), there((int(NOW), RUNS[1]), 0, 1)))) == []

    def test_one_that_comes_again_is_made_in_its_window_by_force(self) -> None:
        (made,) = steps(plan(seen(wanted(RUNS, "DAILY"), NONE)))
        assert (made.start, made.end) == RUNS
        assert made.flags[-2:] == ("DAILY", "FORCE_START")

    def test_one_that_comes_again_is_waited_for_while_slurm_moves_it_on(self) -> None:
        past = there(OVER, 0, 1, flags=OURS | {"DAILY"})
        found = plan(seen(wanted(OVER, "DAILY"), past))
        assert steps(found) == []
        assert found.requeue_after == 10.0

    def test_nothing_is_made_for_the_last_minute(self) -> None:
        almost = (int(NOW) - 570, int(NOW) + 30)
        found = plan(seen(wanted(almost), NONE))
        assert steps(found) == []
        assert told(found).reason == "ScheduleOver"
        (made,) = steps(plan(seen(wanted(almost, "DAILY"), NONE)))
        assert made.start == almost[0] + 86400

    def test_a_window_that_is_over_is_told_and_takes_nothing(self) -> None:
        found = plan(seen(wanted(OVER), NONE, old(0), old(1)))
        assert steps(found) == [one for one in steps(found) if isinstance(one, RemoveFinalizer)]
        assert told(found).reason == "ScheduleOver"
        assert "set another startTime" in told(found).message
        assert taken(found) == []

    def test_it_goes_when_nothing_is_left_to_replace_and_its_finalizer_after_it(self) -> None:
        found = plan(seen(wanted(RUNS), there(RUNS, 0), pod(0), pod(1)))
        assert [type(one) for one in steps(found)] == [DeleteReservation]
        then = plan(seen(wanted(RUNS), NONE, pod(0), pod(1)))
        assert [type(one) for one in steps(then)] == [RemoveFinalizer]
        assert (told(then).reason, told(then).inverted) == ("UpToDate", True)

    def test_another_strategy_takes_it_away(self) -> None:
        assert [type(one) for one in steps(plan(seen(wanted(None), there(AHEAD, 0))))] == [
            DeleteReservation
        ]
        assert [type(one) for one in steps(plan(seen(wanted(None), NONE)))] == [RemoveFinalizer]
        assert steps(plan(seen(wanted(None, marked=False), NONE))) == []

    def test_a_silent_slurm_is_waited_for(self) -> None:
        silent = Unknown("no answer")
        found = plan(seen(wanted(), silent))
        assert steps(found) == []
        assert (told(found).ok, told(found).reason) == (None, "ReservationUnknown")
        assert steps(plan(seen(wanted(None), silent))) == []
        assert steps(plan(seen(wanted(), NONE, nodes=silent))) == []

    def test_what_slurmctld_refused_is_told_and_asked_for_later(self) -> None:
        refused = RejectedReservation("Nodes busy", NOW + 30)
        reservations = ObservedReservations(NONE, refused)
        found = plan(replace(seen(wanted(), NONE), reservations=reservations))
        assert steps(found) == []
        assert (told(found).ok, told(found).reason) == (False, "ReservationRefused")
        assert "Nodes busy" in told(found).message
        assert found.requeue_after == 30.0
        later = replace(seen(wanted(), NONE), reservations=reservations, now=NOW + 31)
        assert [type(one) for one in steps(plan(later))] == [SetReservation]

    def test_pods_of_which_slurm_has_no_node_are_in_none(self) -> None:
        found = plan(seen(wanted(), NONE, old(0), nodes=known_nodes(node(7))))
        assert of(found, SetReservation) == []
        assert told(found).reason == "NoNodes"


class TestDeletion:
    def test_a_deleted_nodeset_takes_it_along(self) -> None:
        gone = wanted(deleted=NOW - 10)
        assert DeleteReservation in {type(one) for one in steps(plan(seen(gone, there(AHEAD, 0))))}
        removed = of(plan(seen(gone, NONE)), RemoveFinalizer)
        assert [one.finalizer for one in removed] == [RESERVATION_FINALIZER]

    def test_a_silent_slurm_is_waited_for_five_minutes(self) -> None:
        silent = Unknown("no answer")

        def left(after: float) -> set[str]:
            last = view(
                wanted(deleted=NOW - after),
                reservations=ObservedReservations(silent),
                nodes=silent,
                jobs=silent,
            )
            return {one.finalizer for one in of(plan(last), RemoveFinalizer)}

        assert left(200) == set()
        assert left(301) == {DRAIN_FINALIZER, RESERVATION_FINALIZER}

    def test_without_a_controller_it_does_not_hold_the_nodeset(self) -> None:
        gone = seen(wanted(deleted=NOW - 10), Unknown("gone"), controller=ControllerState.ABSENT)
        removed = of(plan(gone), RemoveFinalizer)
        assert RESERVATION_FINALIZER in {one.finalizer for one in removed}


class TestUpdate:
    def test_nothing_is_taken_before_slurm_says_that_it_is_maintenance(self) -> None:
        """Feature row 39."""
        assert taken(plan(seen(wanted(RUNS), there(RUNS, 0, 1)))) == []
        early = seen(wanted(AHEAD), there(AHEAD, 0, 1), nodes=in_maintenance(0, 1))
        assert taken(plan(early)) == []

    def test_in_it_the_budget_is_that_of_a_rolling_update(self) -> None:
        found = plan(seen(wanted(RUNS), there(RUNS, 0, 1), nodes=in_maintenance(0, 1)))
        assert len(taken(found)) == 1

    def test_a_node_that_is_not_in_it_stays(self) -> None:
        found = plan(seen(wanted(RUNS), there(RUNS, 1), nodes=in_maintenance(0, 1)))
        assert taken(found) == ["compute-1"]

    @pytest.mark.parametrize(
        ("state", "gone"), [(("IDLE",), ["compute-0"]), (("IDLE", "DRAIN"), []), (("DOWN",), [])]
    )
    def test_one_that_waits_and_does_not_work_is_out(
        self, state: tuple[str, ...], gone: list[str]
    ) -> None:
        found = plan(seen(wanted(RUNS), there(RUNS, 0), nodes=in_maintenance(0, n1=state)))
        assert taken(found) == gone

    def test_a_job_is_waited_for_and_a_drained_pod_goes(self) -> None:
        nodes = known_nodes(
            node(0, "IDLE", "MAINTENANCE"),
            node(1, "ALLOCATED", "DRAIN", "MAINTENANCE", reason=REASON),
        )
        pods = (old(0), old(1, annotations=TAKEN))
        busy = seen(wanted(RUNS), there(RUNS, 0, 1), *pods, nodes=nodes, jobs=(job(1, 1),))
        assert of(plan(busy), DeletePod) == []
        nodes = known_nodes(
            node(0, "IDLE", "MAINTENANCE"),
            node(1, "IDLE", "DRAIN", "MAINTENANCE", reason=REASON),
        )
        done = seen(wanted(RUNS), there(RUNS, 0, 1), *pods, nodes=nodes)
        assert [one.name for one in of(plan(done), DeletePod)] == ["compute-1"]

    def test_what_still_waits_at_the_end_is_given_back(self) -> None:
        nodes = known_nodes(node(0), node(1, "ALLOCATED", "DRAIN", reason=REASON))
        pods = (old(0), old(1, annotations=TAKEN))
        after = plan(seen(wanted(OVER), NONE, *pods, nodes=nodes, jobs=(job(1, 1),)))
        (patch,) = (one for one in of(after, PatchPod) if one.annotations)
        assert patch.annotations[CORDONED_FOR] == "nobody"

    def test_while_reservations_are_not_known_what_was_taken_stays_taken(self) -> None:
        nodes = known_nodes(node(0, "IDLE", "MAINTENANCE"), node(1, "IDLE", "DRAIN", reason=REASON))
        pods = (old(0), old(1, annotations=TAKEN))
        found = plan(seen(wanted(RUNS), Unknown("no answer"), *pods, nodes=nodes))
        assert taken(found) == []
        assert [one.name for one in of(found, DeletePod)] == ["compute-1"]


REASON = "slurm-operator: Pod (slurm/compute-1) is pending termination for update"
