"""Events of one pass: the few each, the many together."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.api.slinky.nodeset import NODESETS
from penstock.controllers.runtime.event_batch import EventBatch
from penstock.controllers.runtime.report import Events
from penstock.kube import Client, Recorder
from support import nodesets
from unit.kube.fake_api import FakeApi


class Noted(Recorder):
    def __init__(self) -> None:
        super().__init__(Client(FakeApi()), "test", "test")
        self.notes: list[str] = []

    def event(self, *_: Any, note: str, **__: Any) -> None:
        self.notes.append(note)


@pytest.fixture
def noted() -> Noted:
    return Noted()


def test_a_few_events_are_told_each(noted: Noted):
    with EventBatch(Events(noted, NODESETS), nodesets.nodeset()) as told:
        for number in range(5):
            told.normal("SuccessfulCreate", f"Created pod compute-{number}", "Create")
    assert noted.notes == [f"Created pod compute-{number}" for number in range(5)]


def test_many_events_of_one_kind_are_told_as_one(noted: Noted):
    """Feature row 66."""
    with EventBatch(Events(noted, NODESETS), nodesets.nodeset()) as told:
        for number in range(1000):
            told.normal("SuccessfulCreate", f"Created pod compute-{number}", "Create")
        told.warning("SlurmRefused", "Node compute-3: no", "DrainNode")
    assert len(noted.notes) == 2
    assert noted.notes[0].startswith("Created pod compute-0; Created pod compute-1; ")
    assert noted.notes[0].endswith("and 995 more")


def test_what_was_done_before_an_error_is_told(noted: Noted):
    def fail() -> None:
        with EventBatch(Events(noted, NODESETS), nodesets.nodeset()) as told:
            told.normal("SuccessfulCreate", "Created pod compute-0", "Create")
            raise ValueError

    with pytest.raises(ValueError):
        fail()
    assert noted.notes == ["Created pod compute-0"]
