"""The share of the nodes that checks may drain, over all orders of drains and repairs."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.api.nebius import rule_parts
from penstock.decide.check.check_share import (
    LINE,
    OutNode,
    drainable,
    is_check_drain,
    is_share,
    keeps_drain,
    limit,
    share_in,
)
from penstock.decide.check.out_nodes import out_by_checks
from penstock.render.nebius.config.keys import SHARE_REMARK
from penstock.slurm.reservation import Reservation
from penstock.slurm.state import Node

QUICK = "[user_problem] boot_disk_full: 88 % [hc_program]"
OPERATORS = "[node_problem] gpu-checks: job 7 [slurm_job]"
NAMES = st.sampled_from([f"worker-{n}" for n in range(8)])


@pytest.mark.parametrize(
    ("share", "nodes", "most"),
    [
        ("", 1000, 100),
        ("", 2, 1),
        ("", 0, 1),
        ("10%", 19, 1),
        ("25%", 8, 2),
        ("100%", 8, 8),
        ("3", 1000, 3),
        ("no share", 1000, 100),
    ],
)
def test_a_share_is_at_least_one_node(share: str, nodes: int, most: int) -> None:
    assert limit(share, nodes) == most


@given(st.one_of(st.text(), st.from_regex(r"[0-9]{0,4}%?\n?", fullmatch=True)))
def test_admission_and_checks_agree_on_what_is_a_share(text: str) -> None:
    assert is_share(text) == rule_parts.is_share(text)


@given(st.integers(1, 9), st.sets(NAMES), st.lists(NAMES))
def test_no_check_drains_a_node_above_the_limit(most: int, out: set[str], wanted: list[str]):
    drained = drainable(most, out, wanted)
    assert len(out | {*drained}) <= max(most, len(out))
    postponed = {*wanted} - {*drained}
    assert not postponed or len(out | {*drained}) >= most
    assert not postponed & out


@given(st.integers(1, 4), st.sets(NAMES, min_size=1), st.lists(NAMES))
def test_a_repair_makes_room_for_the_next_one(most: int, wanted: set[str], repaired: list[str]):
    """Whatever is repaired in whatever order, all room is used and no more."""
    out: set[str] = set()
    bad = sorted(wanted)
    for name in [*repaired, ""]:
        out |= {*drainable(most, out, bad)}
        assert len(out) == min(most, len(bad))
        out.discard(name)
        bad = [one for one in bad if one != name]


@given(
    st.integers(1, 4),
    st.dictionaries(NAMES, st.tuples(st.integers(0, 2), st.booleans()), min_size=1),
)
def test_of_workers_that_drain_together_as_many_stay_as_may(
    most: int, given_nodes: dict[str, tuple[int, bool]]
) -> None:
    """Each decides by itself, in any order, and has all drains up to its own second before it."""
    every = [
        OutNode(name, OPERATORS if operators else QUICK, at)
        for name, (at, operators) in given_nodes.items()
    ]
    workers = [one for one in every if one.reason == QUICK]
    for order in itertools.islice(itertools.permutations(workers), 24):
        out = {one.name: one for one in every}
        for own in order:
            if not keeps_drain(most, own, out.values()):
                del out[own.name]
        assert len(out) <= max(most, len(every) - len(workers))
        assert len(out) >= min(most, len(every))


@given(st.integers(1, 3), st.sets(NAMES, min_size=1))
def test_a_worker_that_has_not_seen_later_drains_keeps_no_node_too_many(
    most: int, names: set[str]
) -> None:
    nodes = [OutNode(name, QUICK, at) for at, name in enumerate(sorted(names))]
    kept = [one for at, one in enumerate(nodes) if keeps_drain(most, one, nodes[: at + 1])]
    assert kept == nodes[:most]


@pytest.mark.parametrize(
    ("reason", "is_checks"),
    [
        (QUICK, True),
        (OPERATORS, True),
        ("nvme_raid_health: sda [hc_program]", True),
        ("[hardware_problem] gpu", True),
        ("bad cable", False),
        ("", False),
        ("[compute_maintenance] node reboot process", False),
        ("see [node_problem]", False),
    ],
)
def test_a_drain_of_a_check_differs_from_a_users(reason: str, is_checks: bool) -> None:
    assert is_check_drain(reason) is is_checks


def test_nodes_of_users_and_of_updates_are_not_out_by_checks() -> None:
    drained = frozenset({"IDLE", "DRAIN"})
    nodes = [
        Node("worker-0", drained, reason=QUICK),
        Node("worker-1", drained, reason="bad cable"),
        Node("worker-2", frozenset({"IDLE"}), reason=QUICK),
        Node("worker-3", frozenset({"IDLE", "RESERVED"})),
        Node("worker-4", frozenset({"IDLE", "MAINTENANCE"})),
    ]
    flags = frozenset({"MAINT", "IGNORE_JOBS", "SPEC_NODES"})
    reservations = [
        Reservation("activecheck.gpu-checks.worker-3", nodes=frozenset({"worker-3"})),
        Reservation("maintenance", nodes=frozenset({"worker-4"}), flags=flags),
        Reservation("suspicious-worker-5", nodes=frozenset({"worker-5"}), flags=flags),
        Reservation("mine-worker-6", nodes=frozenset({"worker-6"})),
    ]
    assert out_by_checks(nodes, reservations) == {"worker-0", "worker-3", "worker-5"}


def test_workers_find_the_share_in_slurm_conf() -> None:
    assert LINE == SHARE_REMARK
    conf = f"# made by hand\nClusterName=slurm\n{SHARE_REMARK}20%\n#\n"
    assert share_in(conf) == "20%"
    assert share_in("ClusterName=slurm\n") == ""
