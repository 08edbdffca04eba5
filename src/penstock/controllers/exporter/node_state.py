"""What the states of a Slurm node mean for metrics: pure rules.

Source: sinfo(1), NODE STATE CODES; slurmrestd OpenAPI, `node_states`.
"""

from __future__ import annotations

import re
from typing import Final

from penstock.slurm.rest.records import NodeRecord

_BASES: Final = ("UNKNOWN", "DOWN", "IDLE", "ALLOCATED", "ERROR", "MIXED")
_POWER_MANAGED: Final = frozenset({"POWERED_DOWN", "POWERING_DOWN", "POWERING_UP"})
_INVALID: Final = frozenset({"INVALID", "INVALID_REG"})
_WITH_JOBS: Final = frozenset({"ALLOCATED", "MIXED"})
_GPUS: Final = re.compile(r"gpu:(?:[^:(,]*:)?([0-9]+)")
_TRES: Final = re.compile(r"(?:^|,)([^=,]+)=([0-9]+(?:\.[0-9]+)?)([KMGTP]?)")
_UNITS: Final = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}
MIB: Final = 1024 * 1024


def base_state(node: NodeRecord) -> str:
    """The base state; empty when there is none, as of a FUTURE node."""
    return next((one for one in _BASES if one in node.states), "")


def is_power_managed(node: NodeRecord) -> bool:
    """Whether Slurm powers it down or up, so that its state is no fault."""
    return not _POWER_MANAGED.isdisjoint(node.states)


def is_invalid(node: NodeRecord) -> bool:
    """Whether its slurmd registered with less than is configured."""
    return not _INVALID.isdisjoint(node.states)


def is_unavailable(node: NodeRecord) -> bool:
    """Whether no job can run on it, for another reason than power saving."""
    if is_power_managed(node):
        return False
    states = node.states
    return bool(
        states & {"DOWN", "NOT_RESPONDING", "UNKNOWN", "ERROR", "FAIL"}
        or is_invalid(node)
        or ("DRAIN" in states and base_state(node) == "IDLE")
    )


def is_draining(node: NodeRecord) -> bool:
    """Whether it drains while jobs are on it."""
    return "DRAIN" in node.states and base_state(node) in _WITH_JOBS


def is_failed(node: NodeRecord) -> bool:
    """Whether it is down or drained, for another reason than power saving."""
    return bool(node.states & {"DOWN", "DRAIN"}) and not is_power_managed(node)


def tres_amounts(text: str) -> dict[str, float]:
    """Amounts of a TRES list such as `cpu=2,mem=500M,gres/gpu=8`; memory in bytes."""
    return {
        name: float(amount) * 1024 ** _UNITS[unit] for name, amount, unit in _TRES.findall(text)
    }


def gpus(tres: str) -> float:
    """GPUs in a TRES list; those of one type only where the sum is not there."""
    found = tres_amounts(tres)
    if "gres/gpu" in found:
        return found["gres/gpu"]
    return sum(amount for name, amount in found.items() if name.startswith("gres/gpu:"))


def gres_gpus(gres: str) -> int:
    """GPUs in a GRES list such as `gpu:h100:8(S:0-1)`."""
    return sum(map(int, _GPUS.findall(gres)))


def long_state(node: NodeRecord) -> str:
    """The state as `sinfo -O StateLong` prints it, in lower case."""
    states, base = node.states, base_state(node)
    with_jobs = base in _WITH_JOBS or "COMPLETING" in states
    if "DRAIN" in states and base != "ERROR":
        word = "draining" if with_jobs else "drained"
    elif "FAIL" in states:
        word = "failing" if with_jobs else "fail"
    elif "MAINTENANCE" in states and base == "IDLE":
        word = "maint"
    elif "REBOOT_ISSUED" in states and not with_jobs:
        word = "reboot"
    elif "RESERVED" in states and base == "IDLE":
        word = "reserved"
    elif "COMPLETING" in states:
        word = "allocated+" if base == "ALLOCATED" else "completing"
    elif "PLANNED" in states and base == "IDLE":
        word = "planned"
    elif "INVALID_REG" in states:
        word = "inval"
    else:
        word = base.lower() or "future"
    return word + _suffix(states)


def _suffix(states: frozenset[str]) -> str:
    marks = (
        ("POWERED_DOWN", "~"),
        ("POWERING_DOWN", "%"),
        ("POWERING_UP", "#"),
        ("POWER_DOWN", "!"),
        ("NOT_RESPONDING", "*"),
    )
    return next((mark for state, mark in marks if state in states), "")
