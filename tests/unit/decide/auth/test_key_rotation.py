"""A changed slurm.key on its way: who can speak to whom at each moment, whoever is late.

Feature row 10, defect D17.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.decide.auth.key_rotation import BACK_S, PASS_S, REFRESH_S, RotationView, step
from penstock.simulation.slurm.auth_keys import Keys
from penstock.simulation.slurm.auth_keys import read as keys_in
from penstock.slurm.auth.key_files import SLURM_JWKS, SLURM_KEY
from penstock.slurm.auth.key_rotation import Phase, Ring, read

OLD, NEW = b"o" * 64, b"n" * 64


@dataclass
class Daemon:
    """What a process has read; before there is a slurm.jwks, slurm.key."""

    keys: Keys = field(default_factory=lambda: Keys(OLD))
    started: int = 0

    def reads(self, text: str | None, key: bytes, now: float) -> None:
        self.started = int(now)
        keys = keys_in({SLURM_KEY: key.decode(), SLURM_JWKS: text or ""})
        assert keys is not None
        self.keys = keys

    def takes(self, other: Daemon) -> bool:
        return self.keys.believes(other.keys)


@dataclass
class Cluster:
    """Daemons, and what their kubelets show them of a ring, which may be an older one."""

    ring: Ring = field(default_factory=lambda: Ring(OLD, "o", "o"))
    key: bytes = NEW
    now: float = 1000.0
    slurmctld: Daemon = field(default_factory=Daemon)
    workers: list[Daemon] = field(default_factory=lambda: [Daemon(), Daemon()])
    shown: list[str | None] = field(default_factory=lambda: [None, None])
    registered: list[int] = field(default_factory=lambda: [0, 0])
    login: Daemon = field(default_factory=Daemon)
    begun: str = "o"
    has: str | None = None

    def every(self) -> list[Daemon]:
        return [self.slurmctld, *self.workers, self.login]

    def act(self, late: frozenset[int] = frozenset()) -> None:
        """One look: what was decided happens, and the kubelets of `late` workers do nothing."""
        for number, one in enumerate(self.workers):
            # A slurmd that slurmctld does not believe cannot register.
            if number not in self.locked_out():
                self.registered[number] = one.started
        starts = {f"w{n}": began for n, began in enumerate(self.registered)}
        waiting = () if self.begun == self.ring.clients else ("login",)
        applied = self.has == self.ring.slurmctld
        self.ring = step(
            self.ring, RotationView(self.now, self.key, applied, starts=starts, waiting=waiting)
        ).ring
        self.now += 3
        for number in range(len(self.workers)):
            if number not in late:
                self.shown[number] = self.ring.workers
        if self.has != self.ring.slurmctld:
            self.has = self.ring.slurmctld
            self.slurmctld.reads(self.has, self.key, self.now)
            for number, one in enumerate(self.workers):
                if one.takes(self.slurmctld):
                    one.reads(self.shown[number], OLD, self.now)
        if self.begun != self.ring.clients:
            self.begun = self.ring.clients
            self.login.reads(self.ring.login, self.key, self.now)

    def locked_out(self) -> list[int]:
        return [
            number
            for number, one in enumerate(self.workers)
            if not (one.takes(self.slurmctld) and self.slurmctld.takes(one))
        ]


def test_everybody_can_speak_to_everybody_at_each_step_until_only_the_new_key_is_good() -> None:
    cluster = Cluster()
    for _ in range(60):
        cluster.act()
        assert all(a.takes(b) for a, b in itertools.permutations(cluster.every(), 2))
        if cluster.ring.phase is Phase.SETTLED:
            break
    assert cluster.ring.phase is Phase.SETTLED
    assert cluster.ring.current == NEW
    assert (cluster.ring.next, cluster.ring.tries) == (b"", 0)
    outsider = Daemon()
    assert not any(one.takes(outsider) for one in [cluster.slurmctld, *cluster.workers])


@given(st.lists(st.frozensets(st.integers(0, 1)), max_size=120))
def test_a_late_kubelet_costs_a_minute_and_never_a_worker(lates: list[frozenset[int]]) -> None:
    cluster, out = Cluster(), [0.0, 0.0]
    for late in itertools.chain(lates, [frozenset[int]()] * 400):
        before = cluster.now
        cluster.act(late)
        for number in (0, 1):
            away = number in cluster.locked_out()
            out[number] = out[number] + cluster.now - before if away else 0.0
            assert out[number] < 2 * BACK_S
        if cluster.ring.phase is Phase.SETTLED:
            break
    assert cluster.ring.phase is Phase.SETTLED
    assert not cluster.locked_out()
    assert cluster.slurmctld.keys.signs == NEW


def test_nothing_happens_while_the_key_is_the_same() -> None:
    ring = Ring(OLD, "o", "o")
    assert step(ring, RotationView(0, OLD)).ring == ring
    assert ring.workers is ring.slurmctld is ring.login is None


@pytest.mark.parametrize(("old", "new"), [(b"short", NEW), (OLD, b"short")])
def test_a_key_too_short_for_slurm_is_refused_with_what_to_do(old: bytes, new: bytes) -> None:
    """slurmctld ends on one, with all that is in its file."""
    ring = Ring(old)
    found = step(ring, RotationView(0, new))
    assert (found.ring, found.stuck) == (ring, True)
    assert "16 bytes" in found.words


def test_slurmctld_waits_for_the_kubelets_and_for_pods_that_do_not_show_the_ring() -> None:
    ring = step(Ring(OLD), RotationView(100.0, NEW)).ring
    assert (ring.phase, ring.handed) == (Phase.LEARN, False)
    assert ring.slurmctld != ring.workers
    assert not step(ring, RotationView(100.0 + REFRESH_S - 1, NEW)).ring.handed
    held = step(ring, RotationView(200.0, NEW, unable=("old-0",)))
    assert (held.ring, held.stuck) == (ring, True)
    assert "old-0" in held.words
    assert step(ring, RotationView(100.0 + REFRESH_S, NEW)).ring.handed


def test_while_slurm_is_silent_both_keys_stay_good() -> None:
    ring = Ring(OLD, next=NEW, phase=Phase.SWITCH, since=100.0, used=True)
    found = step(ring, RotationView(10_000.0, NEW, applied=True, starts=None))
    assert found.ring == ring
    assert "does not answer" in found.words


@pytest.mark.parametrize(("tries", "seconds"), [(0, REFRESH_S), (1, PASS_S), (2, PASS_S)])
def test_a_late_kubelet_has_its_full_pass_before_the_former_key_counts_as_forgotten(
    tries: int, seconds: float
) -> None:
    """Else a worker would go on to believe it, and nothing would tell."""
    ring = Ring(OLD, next=NEW, phase=Phase.FORGET, handed=False, since=100.0, tries=tries)
    assert not step(ring, RotationView(100.0 + seconds - 0.1, NEW)).ring.handed
    assert step(ring, RotationView(100.0 + seconds, NEW)).ring.handed


@pytest.mark.parametrize("handed", [False, True])
def test_a_step_of_a_clock_that_was_ahead_begins_anew_when_that_is_set_back(handed: bool) -> None:
    """It would be waited for until that time comes."""
    ring = Ring(OLD, next=NEW, phase=Phase.LEARN, handed=handed, since=7300.0, used=True)
    view = RotationView(100.0, NEW, applied=True, starts={"w": 99})
    assert step(ring, view).ring == replace(ring, since=100.0)


def test_a_key_that_changes_again_follows_after_the_first() -> None:
    cluster = Cluster()
    cluster.act()
    cluster.key = third = b"t" * 64
    for _ in range(120):
        cluster.act()
        assert not cluster.locked_out()
    assert (cluster.ring.phase, cluster.ring.current) == (Phase.SETTLED, third)


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("handed", [True, False])
def test_a_secret_says_all_that_a_process_after_us_has_to_know(phase: Phase, handed: bool) -> None:
    handed = handed or phase in {Phase.SETTLED, Phase.CLIENTS}
    upcoming = b"" if phase is Phase.SETTLED else NEW
    ring = Ring(OLD, "o", "c", upcoming, phase, handed, 12.0, 3, 2, used=True)
    assert read(ring.data) == ring
    assert read({**ring.data, "state": "bm8="}) is None
    if upcoming:
        assert read({k: v for k, v in ring.data.items() if k != "next"}) is None


def test_a_step_that_is_repeated_is_another_file_for_slurmctld_alone() -> None:
    """Else nobody would be told to read again what the kubelet brought late."""
    ring = Ring(OLD, next=NEW, phase=Phase.LEARN, since=100.0, used=True)
    late = {"w": 1}
    found = step(ring, RotationView(100.0 + BACK_S, NEW, applied=True, starts=late))
    assert found.taken_back
    assert found.ring.slurmctld != ring.slurmctld
    assert found.ring.workers == ring.workers
    switched = replace(ring, phase=Phase.SWITCH)
    back = step(switched, RotationView(200.0, NEW, applied=True, starts=late)).ring
    assert back.phase is Phase.LEARN
