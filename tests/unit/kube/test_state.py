"""State of one object goes with it."""

from __future__ import annotations

import re
from pathlib import Path

from penstock import controllers
from penstock.api.kubernetes.kinds import PODS, Pod
from penstock.api.kubernetes.meta import ObjectMeta
from penstock.kube import Cache, Client
from penstock.kube.runtime.state import StateByUid
from unit.controllers.stage import drop, put
from unit.kube.fake_api import FakeApi


def pod(uid: str) -> Pod:
    return Pod(metadata=ObjectMeta(name="compute-0", namespace="slurm", uid=uid))


def test_the_state_of_an_object_is_dropped_when_it_is_gone_or_replaced() -> None:
    cache = Cache(Client(FakeApi()), PODS)
    states = StateByUid(cache, list[str])
    first, second = pod("a"), pod("b")
    put(cache, first)
    states.of(first).append("one")
    assert states.of(first) == ["one"]
    drop(cache, first)
    put(cache, second)
    assert states.of(second) == []
    assert states.of(first) == []


def test_the_state_of_an_object_that_is_gone_is_not_kept() -> None:
    """A reconcile under way may ask for it once more."""
    cache = Cache(Client(FakeApi()), PODS)
    states = StateByUid(cache, list[str])
    late = pod("a")
    states.of(late).append("late")
    put(cache, late)
    assert states.of(late) == []


def test_no_controller_keeps_state_by_name() -> None:
    """D52."""
    below = Path(controllers.__file__).parent
    found = {
        str(path.relative_to(below))
        for path in below.rglob("*.py")
        if re.search(r"by_key\(|def forget\(self, key: str", path.read_text())
    }
    assert found == set(), "StateByUid drops the state of an object with it"
