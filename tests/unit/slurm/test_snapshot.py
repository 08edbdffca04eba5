from __future__ import annotations

from penstock.slurm.known import Known, Unknown
from penstock.slurm.mirror.snapshot import (
    LATE,
    NO_NODES,
    NOT_ASKED,
    ListCache,
    NodeListFilter,
    Snapshot,
    Uptime,
    changed_nodes,
    with_reused_records,
)
from penstock.slurm.state import Job, Node


def nodes(*names: str, state: str = "IDLE") -> dict[str, Node]:
    return {name: Node(name, frozenset({state})) for name in names}


def test_nothing_is_known_before_anything_was_asked():
    assert ListCache[int](15).fact(0) == Unknown(NOT_ASKED)


def test_an_answer_counts_until_it_is_stale():
    belief = ListCache[int](stale=15)
    belief.store(7, 1000, asked_at=10)
    assert belief.fact(25) == Known(7, 10)
    assert belief.fact(25.1) == Unknown(LATE)


def test_a_failure_leaves_the_last_answer_until_it_is_stale_and_then_gives_the_reason():
    belief = ListCache[int](stale=15)
    belief.store(7, 1000, asked_at=10)
    belief.fail("refused")
    assert belief.fact(25) == Known(7, 10)
    assert belief.fact(26) == Unknown("refused")
    assert belief.fact(10, fresh=True) == Unknown("refused")


def test_no_change_makes_an_answer_fresh_again():
    belief = ListCache[int](stale=15)
    belief.unchanged(5)
    assert belief.fact(5) == Unknown(NOT_ASKED)
    belief.store(7, 1000, asked_at=10)
    belief.unchanged(20)
    assert belief.fact(35) == Known(7, 20)


def test_an_empty_node_list_is_unknown_at_once_and_asks_for_everything():
    belief = NodeListFilter(stale=15, confirm_s=60)
    belief.accept(nodes("a"), 1000, 1)
    assert belief.update_time == 1000
    belief.accept({}, 1001, 2)
    assert belief.fact(2) == Unknown(NO_NODES)
    assert belief.update_time is None
    belief.unchanged(3)
    assert belief.fact(3) == Unknown(NO_NODES)


def test_an_empty_node_list_stays_unknown_while_slurmctld_does_not_report_how_long_it_runs():
    """D4."""
    belief = NodeListFilter(stale=15, confirm_s=60)
    for second in range(0, 1000, 10):
        belief.accept({}, 1, second)
        assert belief.fact(second) == Unknown(NO_NODES)


def test_an_empty_node_list_of_a_slurmctld_that_just_started_is_unknown():
    belief = NodeListFilter(stale=15, confirm_s=60)
    for second in range(0, 1000, 10):
        belief.accept({}, 1, second, Uptime(59.0))
        assert belief.fact(second) == Unknown(NO_NODES)


def test_a_slurmctld_that_runs_and_goes_on_listing_no_nodes_is_believed():
    """D23, S013."""
    belief = NodeListFilter(stale=15, confirm_s=60)
    belief.accept({}, 1, 0, Uptime(1000.0))
    assert belief.fact(0) == Unknown(NO_NODES)
    assert not belief.needs_uptime((), 59)
    assert belief.needs_uptime((), 60)
    belief.accept({}, 1, 60, Uptime(1060.0))
    assert belief.fact(60) == Known(dict[str, Node](), 60)
    assert not belief.needs_uptime((), 61)
    belief.accept({}, 1, 61)
    assert belief.fact(61) == Known(dict[str, Node](), 61)


def test_a_list_with_nodes_begins_the_wait_for_an_empty_one_again():
    belief = NodeListFilter(stale=15, confirm_s=60)
    belief.accept({}, 1, 0, Uptime(1000.0))
    belief.accept(nodes("a"), 1, 59)
    belief.accept({}, 1, 61, Uptime(1061.0))
    assert belief.fact(61) == Unknown(NO_NODES)


def test_a_list_without_half_of_the_nodes_has_to_repeat_itself():
    belief = NodeListFilter(stale=15, confirm_s=60)
    belief.accept(nodes("a", "b", "c", "d"), 1, 0)
    belief.accept(nodes("a", "b"), 2, 10)
    assert belief.fact(10) == Unknown("slurmrestd listed only 2 of 4 known nodes")
    belief.accept(nodes("a", "b"), 3, 69)
    assert isinstance(belief.fact(69), Unknown)
    belief.accept(nodes("a", "b"), 4, 70)
    assert belief.fact(70) == Known(nodes("a", "b"), 70)


def test_half_a_list_is_not_counted_against_an_empty_one():
    belief = NodeListFilter(stale=15, confirm_s=60)
    belief.accept(nodes("a", "b", "c", "d"), 1, 0)
    belief.accept(nodes("a"), 2, 10)
    belief.accept({}, 3, 60)
    belief.accept(nodes("a"), 4, 75)
    assert isinstance(belief.fact(75), Unknown)


def test_whole_lists_are_believed_again_at_once():
    belief = NodeListFilter(stale=15, confirm_s=60)
    belief.accept(nodes("a", "b", "c", "d"), 1, 0)
    belief.accept(nodes("a"), 2, 10)
    belief.accept(nodes("a", "b", "c"), 3, 12)
    assert belief.fact(12) == Known(nodes("a", "b", "c"), 12)


def test_records_that_we_deleted_may_be_missing():
    belief = NodeListFilter(stale=15, confirm_s=60)
    belief.accept(nodes("a", "b", "c", "d"), 1, 0)
    belief.forget(["b", "c", "d"])
    belief.accept(nodes("a"), 2, 1)
    assert belief.fact(1) == Known(nodes("a"), 1)


def test_one_missing_node_is_unknown_not_gone():
    snapshot = Snapshot(Known(nodes("a"), 1.0), Known((), 1.0))
    assert snapshot.node("a") == Known(nodes("a")["a"], 1.0)
    assert snapshot.node("b") == Unknown("slurmctld has no node record b")
    assert Snapshot(Unknown("why"), Unknown("why")).node("a") == Unknown("why")


def test_the_jobs_of_a_node_are_unknown_with_the_jobs():
    job = Job(1, nodes=("a", "b"))
    snapshot = Snapshot(Known(nodes("a"), 1.0), Known((job, Job(2)), 1.0))
    assert snapshot.jobs_on("b") == Known((job,), 1.0)
    assert snapshot.jobs_on("c") == Known((), 1.0)
    assert Snapshot(Unknown("why"), Unknown("why")).jobs_on("a") == Unknown("why")


def test_changes_name_the_nodes_of_changed_records_and_jobs():
    old = Snapshot(Known(nodes("a", "b", "c"), 1), Known((Job(1, nodes=("c",)),), 1))
    new = Snapshot(Known(nodes("a", "b", "c", "d"), 2), Known((Job(2, nodes=("b",)),), 2))
    assert changed_nodes(old, new) == {"b", "c", "d"}


def test_a_new_time_alone_is_no_change():
    old = Snapshot(Known(nodes("a"), 1), Known((Job(1),), 1))
    new = Snapshot(Known(nodes("a"), 2), Known((Job(1),), 2))
    assert changed_nodes(old, new) is None
    assert (
        changed_nodes(Snapshot(Unknown("x"), Unknown("x")), Snapshot(Unknown("x"), Unknown("x")))
        is None
    )


def test_a_turn_between_known_and_unknown_names_every_node():
    known = Snapshot(Known(nodes("a", "b"), 1), Known((), 1))
    unknown = Snapshot(Unknown("why"), Known((), 1))
    assert changed_nodes(known, unknown) == {"a", "b"}
    assert changed_nodes(unknown, known) == {"a", "b"}
    assert changed_nodes(unknown, Snapshot(Unknown("other"), Known((), 1))) == frozenset()


def test_a_failure_replaces_an_old_doubt():
    belief = NodeListFilter(stale=15, confirm_s=60)
    belief.accept({}, 1, 0)
    belief.fail("refused")
    assert belief.fact(1) == Unknown("refused")
    belief.accept({}, 1, 2)
    assert belief.fact(2) == Unknown(NO_NODES)


def test_an_empty_list_is_believed_at_once_only_when_we_deleted_the_last_record():
    belief = NodeListFilter(stale=15, confirm_s=60)
    belief.accept({}, 1000, asked_at=0)
    assert belief.fact(0) == Unknown(NO_NODES)
    belief.accept(nodes("a", "b"), 1001, asked_at=1)
    belief.forget(["a"])
    belief.accept({}, 1002, asked_at=2)
    assert belief.fact(2) == Unknown(NO_NODES)
    belief.forget(["b"])
    belief.accept({}, 1003, asked_at=3)
    assert belief.fact(3) == Known(dict[str, Node](), 3)
    belief.accept(nodes("c"), 1004, asked_at=4)
    belief.accept({}, 1005, asked_at=5)
    assert belief.fact(5) == Unknown(NO_NODES)


def test_equal_records_are_the_same_objects_again():
    old = {"a": Node("a", frozenset({"IDLE"})), "b": Node("b", frozenset({"IDLE"}))}
    found = with_reused_records(
        old, [Node("a", frozenset({"IDLE"})), Node("b", frozenset({"DOWN"}))]
    )
    assert found["a"] is old["a"]
    assert found["b"].state == {"DOWN"}
    assert with_reused_records(None, [old["a"]]) == {"a": old["a"]}
