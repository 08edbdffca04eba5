"""Decisions about files of a jail: paths, who writes which, restarts, and conditions."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.api.kubernetes.conditions import Finding, conditions, set_conditions
from penstock.api.kubernetes.meta import Condition
from penstock.catalog.reasons.jailed_config import JailedConfigReason
from penstock.catalog.reasons.object import ObjectReason
from penstock.decide.jail import paths
from penstock.decide.jail.configuration import delivery, named
from penstock.decide.jail.file_assignment import MOST_BYTES, Assignment, assign_files
from penstock.decide.jail.jailed_config import (
    Member,
    findings,
    has_action,
    needs_reconfigure,
    refreshing,
)
from penstock.decide.jail.slurmd_restart import start_times, starts_now, unfinished
from penstock.model.jail_file import Fault, JailedFiles, JailFile
from penstock.slurm.conf.manifest import manifest
from penstock.slurm.state import Node

FAULT = Fault(JailedConfigReason.FAILED, "/x: the jail is full")


@given(st.text("./\0ab", max_size=8))
def test_a_path_is_accepted_only_if_it_stays_below_the_root(path: str) -> None:
    if paths.problem(path):
        return
    folders, name = paths.split(path)
    assert "/" + "/".join((*folders, name)) == path
    assert not {"", ".", ".."} & {*folders, name}
    assert "\0" not in path


@pytest.mark.parametrize("path", ["/etc/slurm/topology.conf", "/x", "/.hidden/..x/x..", "/ä/ b"])
def test_unusual_names_are_paths(path: str) -> None:
    assert paths.problem(path) == ""


def test_a_path_of_many_long_names_is_rejected() -> None:
    assert "a path 4095" in paths.problem("/" + "/".join(["x" * 250] * 17))


NAMES = st.from_regex(r"[-._a-zA-Z0-9]{1,20}", fullmatch=True)


@given(st.dictionaries(NAMES, st.binary(max_size=4)), st.dictionaries(NAMES, st.binary(max_size=4)))
def test_a_delivery_removes_exactly_what_only_the_last_manifest_names(
    old: dict[str, bytes], new: dict[str, bytes]
) -> None:
    last = manifest(old)
    found = delivery(new, last)
    assert {one.rpartition("/")[2] for one in found.removed} == named(last) - named(
        found.manifest.content.decode()
    )
    delivered = [one.path.rpartition("/")[2] for one in found.files]
    assert set(delivered) == named(found.manifest.content.decode())
    assert "slurm.conf" not in delivered[:-1]
    if found.announcement is not None:
        announced = named(found.announcement.content.decode())
        assert announced == named(last) | set(delivered)


def jailed(name: str, *files: str, config_map: str = "c", created: str = "1") -> JailedFiles:
    return JailedFiles(name, created, None, config_map, tuple(JailFile(f, b"") for f in files))


def test_the_oldest_writes_a_file_that_several_name() -> None:
    found = assign_files(
        [jailed("a", "/x", "/y", created="2"), jailed("b", "/x", created="1")], "own", ()
    )
    first, second = found
    assert first == Assignment(jailed("b", "/x"), (JailFile("/x", b""),))
    assert second.files == ()
    assert second.config.fault is not None
    assert second.config.fault.message.startswith("/x is written by JailedConfig b, which is older")


def test_a_file_named_twice_and_too_much_content_are_invalid() -> None:
    twice, much = assign_files(
        [
            jailed("twice", "/x", "/x"),
            JailedFiles("x", "2", None, "c", (JailFile("/m", b"x" * (MOST_BYTES + 1)),)),
        ],
        "own",
        (),
    )
    assert twice.config.fault == Fault(
        ObjectReason.INVALID, "/x is named twice; remove one of the items"
    )
    assert much.config.fault is not None
    assert "1 files with 16777217 bytes" in much.config.fault.message
    many = assign_files([jailed("many", *(f"/{n}" for n in range(1001)))], "own", ())
    assert many[0].config.fault is not None


def test_a_file_of_the_configuration_is_delivered_and_not_written() -> None:
    own, other = assign_files(
        [
            jailed("own", "/etc/slurm/slurm.conf", "/x", config_map="own"),
            jailed("z", "/etc/slurm/slurm.conf"),
        ],
        "own",
        {"/etc/slurm/slurm.conf"},
    )
    assert [one.path for one in own.files] == ["/x"]
    assert [one.path for one in own.delivered] == ["/etc/slurm/slurm.conf"]
    assert other.config.fault is not None
    assert other.config.fault.reason == "Conflict"


def node(name: str, start: int, *state: str) -> Node:
    return Node(name, frozenset(state or ("IDLE",)), slurmd_start_time=start)


def test_only_slurmds_that_can_restart_are_waited_for() -> None:
    before = start_times(
        [
            node("a", 5),
            node("b", 5),
            node("gone", 5),
            node("never", 0),
            node("silent", 5, "IDLE", "NOT_RESPONDING"),
            node("off", 5, "IDLE", "POWERED_DOWN"),
        ]
    )
    assert before == {"a": 5, "b": 5, "gone": 5}
    after = [node("a", 6), node("b", 5), node("new", 1)]
    assert unfinished(before, after) == ["b"]
    assert unfinished(before, [node("b", 5, "DOWN", "NOT_RESPONDING")]) == []


def test_a_slurmd_of_this_very_second_would_show_no_restart() -> None:
    assert starts_now({"a": 100}, 100.9)
    assert not starts_now({"a": 100}, 101.0)


def kept(*found: Finding) -> tuple[Condition, ...]:
    new = [one for one in conditions(found) if one.type in {one.type for one in found}]
    return set_conditions((), new, 1, datetime.now(UTC))


def shown(member: Member, *, acts: bool = True, failure: Fault | None = None, waits: str = ""):
    found = findings(member, acts=acts, failure=failure, waits=waits)
    return [(one.ok, one.reason) for one in found]


@pytest.mark.parametrize(
    ("member", "acts", "expected"),
    [
        (Member((), False, False), False, [(True, "Success"), (True, "MissingAction")]),
        (Member((), False, True), False, [(True, "Success"), (True, "Success")]),
        (Member((), True, False), True, [(True, "Success"), (True, "Success")]),
        (Member((), True, True, FAULT), True, [(False, "Failed"), (False, "NotWritten")]),
        (
            Member(kept(*refreshing()), True, True, FAULT),
            True,
            [(False, "Failed"), (False, "Refresh")],
        ),
        (
            Member((), True, True, waits_for="later"),
            True,
            [(False, "Refresh"), (False, "NotWritten")],
        ),
    ],
)
def test_conditions_have_the_published_reasons(
    member: Member, acts: bool, expected: list[tuple[bool, str]]
) -> None:
    assert shown(member, acts=acts) == expected


def test_a_reconfigure_is_due_only_after_a_change_of_a_group_that_asks_for_it() -> None:
    settled = Member((), reconfigures=True, is_grouped=True)
    changed = Member((), reconfigures=False, is_grouped=True, has_changed=True)
    begun = Member(kept(*refreshing()), reconfigures=True, is_grouped=True)
    broken = Member(kept(*refreshing()), reconfigures=True, is_grouped=True, fault=FAULT)
    assert not needs_reconfigure([settled])
    assert needs_reconfigure([settled, changed])
    assert not needs_reconfigure([changed])
    assert needs_reconfigure([begun])
    assert not needs_reconfigure([broken])
    assert not has_action([changed])


def test_a_failed_and_an_unfinished_reconfigure_are_reported() -> None:
    member = Member((), True, False)
    assert shown(member, failure=FAULT) == [(True, "Success"), (False, "Failed")]
    assert shown(member, waits="slurmd of a") == [(True, "Success"), (False, "Refresh")]
