"""Events of conditions have no address of a runbook, and are not repeated for one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import msgspec

from penstock.api.kubernetes.conditions import Finding, conditions
from penstock.api.kubernetes.meta import ObjectMeta
from penstock.api.slinky.controller import CONTROLLERS, Controller
from penstock.catalog.reasons.configuration import ConfigReason
from penstock.catalog.runbook import without_address
from penstock.controllers.runtime.report import Events, build_conditions
from penstock.kube import Recorder

WORDS = "slurmctld rejects the configuration: x"
OBJ = Controller(metadata=ObjectMeta(name="slurm", namespace="hpc", generation=1))
FOUND = Finding(False, ConfigReason.REFUSED, WORDS)
ADDRESS = "https://penstock.dev/r/ConfigRefused"


class Notes:
    def __init__(self) -> None:
        self.notes: list[str] = []

    def event(self, *_: object, note: str, **__: object) -> None:
        self.notes.append(note)


def emitted(old: tuple[Any, ...], new: tuple[Any, ...]) -> list[str]:
    notes = Notes()
    Events(cast("Recorder", notes), CONTROLLERS).emit_if_changed(OBJ, old, new)
    return notes.notes


def test_an_event_has_the_message_without_the_address() -> None:
    new = build_conditions(OBJ, (), [FOUND], 0.0)
    assert new[0].message == f"{WORDS}. See {ADDRESS}"
    assert emitted((), new) == [WORDS]
    other = build_conditions(OBJ, new, [replace(FOUND, message="y")], 0.0)
    assert emitted(new, other) == ["y"]


def test_conditions_of_an_earlier_version_are_written_once_and_emit_nothing() -> None:
    new = build_conditions(OBJ, (), [FOUND], 0.0)
    old = tuple(msgspec.structs.replace(one, message=without_address(one.message)) for one in new)
    written = build_conditions(OBJ, old, [FOUND], 60.0)
    assert written == new
    assert written[0].last_transition_time == old[0].last_transition_time
    assert emitted(old, written) == []
    assert build_conditions(OBJ, written, [FOUND], 120.0) is written


def test_a_finding_that_repeats_a_condition_has_its_address_once() -> None:
    first = conditions([FOUND])[0]
    again = conditions([replace(FOUND, message=first.message)])
    assert again[0].message.count(ADDRESS) == 1
