from __future__ import annotations

import pytest

from penstock.slurm.state import Node


@pytest.mark.parametrize(
    ("state", "busy", "drain", "drained"),
    [
        ("IDLE", False, False, False),
        ("ALLOCATED", True, False, False),
        ("MIXED DRAIN", True, True, False),
        ("IDLE DRAIN", False, True, True),
        ("DOWN DRAIN NOT_RESPONDING", False, True, True),
        ("IDLE DRAIN COMPLETING", True, True, False),
        ("IDLE DRAIN UNDRAIN", False, False, False),
        ("UNKNOWN DRAIN", False, True, False),
    ],
)
def test_only_a_draining_node_known_to_be_empty_is_drained(
    state: str, busy: bool, drain: bool, drained: bool
):
    node = Node("n", frozenset(state.split()))
    assert (node.busy, node.drain, node.drained) == (busy, drain, drained)


def test_a_boot_time_that_wanders_by_a_second_is_no_change():
    assert Node("n", boot_time=1) == Node("n", boot_time=2)
