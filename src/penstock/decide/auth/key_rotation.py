"""A changed slurm.key: the next step of its way to all daemons, none of which may be locked out.

What a step needs as proof comes from Slurm: a slurmd that was told to read its keys again is a new
process, which registers with the time of its start. A step after which one of them does not come
back is taken back long before slurmctld calls the node DOWN (SlurmdTimeout, 300 s by default), and
tried again later: the kubelet may not have refreshed its file yet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.base.text import list_some
from penstock.decide.observed.pod import SKEW_S
from penstock.slurm.auth.key_rotation import SHORTEST, Phase, Ring, named

REFRESH_S = 5.0
"""For so long kubelets are given to refresh the workers' files; doubled after each failure."""
LONGEST_S = 320.0
PASS_S = 120.0
"""Within which a kubelet that misses a hint brings a file up to date, by its full pass."""
AHEAD_S = 60.0
"""By so much the clock that a step was begun by may be ahead of ours."""
BACK_S = 60.0
"""Within which a slurmd has to be back after slurmctld told it to read its keys."""

_TAKEN_BACK = {Phase.LEARN: Phase.LEARN, Phase.SWITCH: Phase.LEARN, Phase.FORGET: Phase.SWITCH}


@dataclass(frozen=True, slots=True)
class Seen:
    """What the decision depends on. Times are Unix seconds."""

    now: float
    key: bytes
    """What the Secret of slurm.key has."""
    applied: bool = False
    """Whether slurmctld runs with all that it was given."""
    unable: Sequence[str] = ()
    """Pods that do not show the key ring, as an earlier version or another operator made them."""
    starts: Mapping[str, int] | None = None
    """When the slurmd of each worker that is ready was started; None while Slurm is silent."""
    waiting: Sequence[str] = ()
    """Pods of slurmdbd and logins that do not work with the key which they are to begin with."""


@dataclass(frozen=True, slots=True)
class Step:
    """The ring as it is to be, what is waited for, and whether somebody has to act."""

    ring: Ring
    words: str = ""
    stuck: bool = False
    taken_back: bool = False


def step(ring: Ring, seen: Seen) -> Step:
    """The next step, or the same ring with what it waits for."""
    if ring.phase is Phase.SETTLED:
        return _begin(ring, seen)
    if ring.since > seen.now + AHEAD_S:
        # No slurmd could be younger, for as long as the clock was ahead.
        return Step(replace(ring, since=seen.now), "the clock was set back: the step begins anew")
    if ring.phase is Phase.CLIENTS:
        if seen.waiting:
            return Step(ring, f"{list_some(seen.waiting)} has to begin with the new key")
        return _give(ring, Phase.SWITCH, seen.now)
    if not ring.handed:
        return _hand(ring, seen)
    if not seen.applied:
        return Step(ring, "slurmctld has not taken over its keys yet")
    if seen.starts is None:
        return Step(ring, "what the workers run with is not known: Slurm does not answer")
    late = [n for n, began in sorted(seen.starts.items()) if began < ring.since - SKEW_S]
    if not late:
        return _done(ring, seen.now)
    if seen.now - ring.since < BACK_S:
        return Step(ring, f"{list_some(late)} has not read its keys again yet")
    taken_back = replace(
        ring,
        phase=_TAKEN_BACK[ring.phase],
        since=seen.now,
        turn=ring.turn + 1,
        tries=ring.tries + 1,
    )
    words = f"{list_some(late)} did not come back with the keys of this step"
    return Step(taken_back, words, taken_back=True)


def _begin(ring: Ring, seen: Seen) -> Step:
    if seen.key == ring.current:
        return Step(ring)
    if min(len(seen.key), len(ring.current)) < SHORTEST:
        words = (
            f"slurm.key was changed, and one of the two has less than {SHORTEST} bytes: Slurm does "
            "not take both at once. Give a longer one, or stop the cluster for the change"
        )
        return Step(ring, words, stuck=True)
    return _give(replace(ring, next=seen.key, used=True), Phase.LEARN, seen.now)


def _give(ring: Ring, phase: Phase, now: float) -> Step:
    """Give the workers the file of a phase."""
    return Step(replace(ring, phase=phase, handed=False, since=now), "workers get their keys")


def _hand(ring: Ring, seen: Seen) -> Step:
    """Give slurmctld its file, upon which everybody reads theirs."""
    if seen.unable:
        words = (
            f"{list_some(seen.unable)} cannot be given two keys at once: an earlier version or "
            "another operator made it. The new key waits until it has been replaced"
        )
        return Step(ring, words, stuck=True)
    if seen.now - ring.since < _refresh(ring):
        return Step(ring, "workers get their keys")
    return Step(replace(ring, handed=True, since=seen.now), "slurmctld gets its keys")


def _refresh(ring: Ring) -> float:
    """Seconds that kubelets are given.

    Nothing tells whether a slurmd that reads its keys again has been shown the file without the
    former one. Where a kubelet was late before, that step takes the time of its full pass.
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
