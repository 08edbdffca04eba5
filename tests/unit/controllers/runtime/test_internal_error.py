"""An unexpected failure in the reconcile of one object is that object's condition, no more."""

from __future__ import annotations

import asyncio

import pytest

from penstock.api.kubernetes.meta import Json
from penstock.api.slinky.token import TokenSpec
from penstock.controllers.runtime.report import LONGEST_WORDS, internal_error
from penstock.decide.auth import token as decide
from unit.controllers.slinky.test_token import REF, Lab, played


class Broken:
    """A function that fails for one user as long as it is told to."""

    def __init__(self) -> None:
        self.judge = decide.judge
        self.fails = True

    def __call__(self, spec: TokenSpec, *rest: object) -> decide.Verdict:
        if spec.username == "eve" and self.fails:
            raise RuntimeError("maximum\nrecursion \udcff depth " + "x" * 1000)
        return self.judge(spec, *rest)  # pyright: ignore[reportArgumentType]


def eve(lab: Lab) -> dict[str, Json]:
    found = lab.world.find("slinky.slurm.net/tokens", "eve") or {}
    status: Json = found.get("status") or {}
    return {one["type"]: one for one in status.get("conditions", ())}


def test_a_failure_is_a_condition_and_an_event_of_that_object_and_goes_by_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken = Broken()
    monkeypatch.setattr(decide, "judge", broken)

    async def play(lab: Lab) -> None:
        lab.token({"name": "eve"}, username="eve", jwtKeyRef=REF)
        await lab.until(lambda: "Ready" in eve(lab))
        found = eve(lab)
        assert (found["Ready"]["status"], found["Ready"]["reason"]) == ("False", "InternalError")
        assert found["Stalled"]["status"] == "True"
        words = found["Ready"]["message"]
        assert "Token eve" in words
        assert "RuntimeError: maximum recursion ? depth" in words
        assert len(words) < 2 * LONGEST_WORDS
        await lab.until(lambda: _events(lab))
        assert [one["type"] for one in _events(lab)] == ["Warning"]
        # The others go on meanwhile.
        lab.token()
        await lab.valid()
        # It is tried again, ever more rarely, without another write.
        before = lab.world.find("slinky.slurm.net/tokens", "eve")
        await asyncio.sleep(300)
        assert lab.world.find("slinky.slurm.net/tokens", "eve") == before
        broken.fails = False
        await lab.until(lambda: eve(lab)["Ready"]["status"] == "True", 130)
        assert "Stalled" not in eve(lab)

    played(play)


def _events(lab: Lab) -> list[Json]:
    every = lab.world.server.objects("events.k8s.io/events")
    return [one for one in every if one.get("reason") == "InternalError"]


def test_the_words_of_a_failure_are_one_line_of_good_characters() -> None:
    finding = internal_error("NodeSet", "a", ValueError("\udc80\n\n" + "y" * 10_000))
    assert "\n" not in finding.message
    assert len(finding.message.encode()) < 3 * LONGEST_WORDS
