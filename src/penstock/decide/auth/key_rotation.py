"""Key rotation: the next step of a changed slurm.key to all daemons, none of which is locked out.

Slurm proves each step: a slurmd that reads its keys again is a new process, which registers with
the time of its start. When one of them does not register, the step is reverted long before
slurmctld marks the node DOWN (SlurmdTimeout, 300 s by default). It is tried again later: the
kubelet may not have refreshed its file yet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.base.text import list_some
from penstock.decide.observed.pod import SKEW_S
from penstock.slurm.auth.key_rotation import SHORTEST, Phase, Ring, named

REFRESH_S = 5.0
"""Seconds that kubelets have to refresh the workers' files; doubled after each failure."""
LONGEST_S = 320.0
PASS_S = 120.0
"""Seconds within which a kubelet that misses a change of an annotation refreshes a file."""
AHEAD_S = 60.0
"""By so much the clock that a step was begun by may be ahead of ours."""
BACK_S = 60.0
"""Seconds within which a slurmd registers after slurmctld has it read its keys again."""

_TAKEN_BACK = {Phase.LEARN: Phase.LEARN, Phase.SWITCH: Phase.LEARN, Phase.FORGET: Phase.SWITCH}


@dataclass(frozen=True, slots=True)
class RotationView:
    """Observed state that the decision depends on. Times are Unix seconds."""

    now: float
    key: bytes
    """Content of the Secret of slurm.key."""
    applied: bool = False
    """Whether slurmctld runs with its last configuration and keys."""
    unable: Sequence[str] = ()
    """Pods that do not show the key ring, as an earlier version or another operator made them."""
    starts: Mapping[str, int] | None = None
    """When the slurmd of each worker that is ready was started; None while Slurm is silent."""
    waiting: Sequence[str] = ()
    """Pods of slurmdbd and logins that do not work with the key which they are to begin with."""


@dataclass(frozen=True, slots=True)
class Step:
    """The next key ring, the reason for waiting, and whether a user has to act."""

    ring: Ring
    words: str = ""
    stuck: bool = False
    taken_back: bool = False


def step(ring: Ring, view: RotationView) -> Step:
    """Return the next step, or the same ring with the reason for waiting."""
    if ring.phase is Phase.SETTLED:
        return _begin(ring, view)
    if ring.since > view.now + AHEAD_S:
        # No slurmd could be younger, for as long as the clock was ahead.
        return Step(replace(ring, since=view.now), "the clock went back: the step starts again")
    if ring.phase is Phase.CLIENTS:
        if view.waiting:
            return Step(ring, f"{list_some(view.waiting)} has to begin with the new key")
        return _give(ring, Phase.SWITCH, view.now)
    if not ring.handed:
        return _hand(ring, view)
    if not view.applied:
        return Step(ring, "slurmctld has not taken over its keys yet")
    if view.starts is None:
        return Step(ring, "what the workers run with is not known: Slurm does not answer")
    late = [n for n, began in sorted(view.starts.items()) if began < ring.since - SKEW_S]
    if not late:
        return _done(ring, view.now)
    if view.now - ring.since < BACK_S:
        return Step(ring, f"{list_some(late)} has not read its keys again yet")
    taken_back = replace(
        ring,
        phase=_TAKEN_BACK[ring.phase],
        since=view.now,
        turn=ring.turn + 1,
        tries=ring.tries + 1,
    )
    words = f"{list_some(late)} did not come back with the keys of this step"
    return Step(taken_back, words, taken_back=True)


def _begin(ring: Ring, view: RotationView) -> Step:
    if view.key == ring.current:
        return Step(ring)
    if min(len(view.key), len(ring.current)) < SHORTEST:
        words = (
            f"slurm.key was changed, and one of the two has less than {SHORTEST} bytes: Slurm does "
            "not take both at once. Give a longer one, or stop the cluster for the change"
        )
        return Step(ring, words, stuck=True)
    return _give(replace(ring, next=view.key, used=True), Phase.LEARN, view.now)


def _give(ring: Ring, phase: Phase, now: float) -> Step:
    """Give the workers the file of a phase."""
    return Step(replace(ring, phase=phase, handed=False, since=now), "workers get their keys")


def _hand(ring: Ring, view: RotationView) -> Step:
    """Give slurmctld its file, upon which everybody reads theirs."""
    if view.unable:
        words = (
            f"{list_some(view.unable)} cannot be given two keys at once: an earlier version or "
            "another operator made it. The new key waits until it has been replaced"
        )
        return Step(ring, words, stuck=True)
    if view.now - ring.since < _refresh(ring):
        return Step(ring, "workers get their keys")
    return Step(replace(ring, handed=True, since=view.now), "slurmctld gets its keys")


def _refresh(ring: Ring) -> float:
    """Seconds that kubelets are given.

    No signal shows whether a slurmd that reads its keys again had a file without the former key.
    Where a kubelet was late before, that step waits for its full sync.
    """
    wait = min(REFRESH_S * 2**ring.tries, LONGEST_S)
    return max(wait, PASS_S) if ring.phase is Phase.FORGET and ring.tries else wait


def _done(ring: Ring, now: float) -> Step:
    """All have the keys of a phase."""
    if ring.phase is Phase.LEARN:
        upcoming = replace(ring, phase=Phase.CLIENTS, since=now, clients=named(ring.next))
        return Step(upcoming, "logins and slurmdbd begin with the new key")
    if ring.phase is Phase.SWITCH:
        return _give(ring, Phase.FORGET, now)
    return Step(replace(ring, current=ring.next, next=b"", phase=Phase.SETTLED, since=now, tries=0))
