"""What is asked of all pods together is remembered, and is what it would be if it were not."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from penstock.api.kubernetes.kinds import Pod
from penstock.api.slinky.labels import REVISION_HASH
from penstock.decide.observed.pod_aggregates import aggregate, changed_positions, update_aggregates
from penstock.translate.slinky.worker_set import MARKS, worker_names
from support import nodesets

NAMES = worker_names(nodesets.nodeset())


@st.composite
def pods(draw: st.DrawFn) -> Pod:
    """In all the ways in which one differs for this."""
    machine = draw(st.sampled_from(("", "machine-0", "machine-1")))
    return nodesets.pod(
        draw(st.integers(0, 2)),
        phase=draw(st.sampled_from(("", "Pending", "Running", "Failed", "Succeeded"))),
        ready=draw(st.booleans()),
        deleted=draw(st.booleans()),
        labels=draw(st.sampled_from(({}, {REVISION_HASH: "old"}))),
        machine=machine,
        host=draw(st.sampled_from(("", "other"))),
        bound=draw(st.booleans()),
        name=draw(st.sampled_from(("", "stranger"))),
    )


@st.composite
def changes(draw: st.DrawFn) -> list[tuple[Pod, ...]]:
    """Crowds one after the other; most pods stay the same objects."""
    found = [tuple(draw(st.lists(pods(), max_size=4)))]
    for _ in range(draw(st.integers(1, 4))):
        last = list(found[-1])
        match draw(st.sampled_from(("replace", "copy", "add", "remove"))):
            case "replace" if last:
                last[draw(st.integers(0, len(last) - 1))] = draw(pods())
            case "copy" if last:
                last[0] = msgspec.structs.replace(last[0])
            case "remove" if last:
                last.pop(draw(st.integers(0, len(last) - 1)))
            case _:
                last.append(draw(pods()))
        found.append(tuple(last))
    return found


@given(changes())
def test_a_crowd_that_was_followed_is_the_crowd_there_is(seen: list[tuple[Pod, ...]]):
    known = None
    for found in seen:
        changed = changed_positions(known.pods, found) if known is not None else None
        known = update_aggregates(known, NAMES, MARKS, found, changed)
        assert known == aggregate(NAMES, MARKS, found)


def test_nothing_is_counted_anew_for_a_change_that_nobody_counts():
    before = aggregate(NAMES, MARKS, (nodesets.pod(0), nodesets.pod(1)))
    annotated = nodesets.pod(1, annotations={"example.com/note": "seen"})
    after = update_aggregates(before, NAMES, MARKS, (before.pods[0], annotated), [1])
    assert after.slurm_nodes is before.slurm_nodes
    assert after.pods[1] is annotated


def test_nodes_of_several_living_pods_are_shared_and_those_of_one_that_goes_are_not():
    living = (nodesets.pod(0, host="same"), nodesets.pod(1, host="same"))
    going = (nodesets.pod(2, host="old"), nodesets.pod(3, host="old", deleted=True))
    found = aggregate(NAMES, MARKS, (*living, *going))
    assert found.shared_slurm_nodes == {"same"}
    assert found.slurm_nodes == {"same", "old"}
