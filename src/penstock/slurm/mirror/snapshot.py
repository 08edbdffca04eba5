"""What is known of one cluster at one moment, and when a list from slurmrestd is believed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from penstock.slurm.known import Fact, Known, Unknown
from penstock.slurm.state import Job, Node

T = TypeVar("T")

NOT_ASKED = "slurmrestd has not been asked yet"
LATE = "slurmrestd has not answered for too long"
NO_NODES = "slurmrestd listed no nodes"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that is known. `asked_at` is when the answers were asked for (monotonic seconds).

    Known nodes may be none: slurmctld itself answers, runs for long enough to have read its saved
    state, and lists none. See `NodeListFilter`.
    """

    nodes: Fact[Mapping[str, Node]]
    jobs: Fact[tuple[Job, ...]]
    asked_at: float | None = None

    @property
    def known(self) -> bool:
        """Whether both nodes and jobs are known."""
        return isinstance(self.nodes, Known) and isinstance(self.jobs, Known)

    def node(self, name: str) -> Fact[Node]:
        """One node; Unknown too when slurmctld's list does not have it."""
        if isinstance(self.nodes, Unknown):
            return self.nodes
        found = self.nodes.value.get(name)
        if found is None:
            return Unknown(f"slurmctld has no node record {name}")
        return Known(found, self.nodes.as_of)

    def jobs_on(self, name: str) -> Fact[tuple[Job, ...]]:
        """The jobs that hold this node."""
        if isinstance(self.jobs, Unknown):
            return self.jobs
        return Known(tuple(j for j in self.jobs.value if j.uses(name)), self.jobs.as_of)


class ListCache(Generic[T]):
    """One list as last believed. Times are monotonic seconds."""

    def __init__(self, stale: float) -> None:
        self._stale = stale
        self._value: T | None = None
        self._as_of = float("-inf")
        self._failure = NOT_ASKED
        self._denied = False
        self._failing = False
        self._doubt: str | None = None
        self.update_time: int | None = None
        """What to ask changes since; None asks for everything."""

    @property
    def value(self) -> T | None:
        """The last believed value, however old."""
        return self._value

    def store(self, value: T, update_time: int, asked_at: float) -> None:
        """Believe a whole list."""
        self._value, self.update_time = value, update_time or None
        self._as_of, self._failure, self._doubt = asked_at, LATE, None
        self._failing = self._denied = False

    def unchanged(self, asked_at: float) -> None:
        """Slurm answered that nothing changed since the cached list."""
        if self._value is not None and self._doubt is None:
            self._as_of, self._failure = asked_at, LATE
            self._failing = self._denied = False

    def fail(self, why: str, *, denied: bool = False) -> None:
        """Asking failed: what is believed holds until it is stale."""
        self._failure, self._failing, self._denied = why, True, denied

    def doubt(self, why: str) -> None:
        """The answer contradicts what is believed: neither holds, and changes are no help."""
        self._doubt, self._failing, self.update_time = why, False, None

    def fact(self, now: float, *, fresh: bool = False, grace: float = 0.0) -> Fact[T]:
        """The value, if it was asked for lately; with `fresh` only if asking last succeeded.

        It may be `grace` seconds older than otherwise.
        """
        if self._doubt is not None:
            return Unknown(self._failure if self._failing else self._doubt)
        if (
            self._value is None
            or (fresh and self._failing)
            or now - self._as_of > self._stale + grace
        ):
            return Unknown(self._failure, self._denied)
        return Known(self._value, self._as_of)


@dataclass(frozen=True, slots=True)
class Uptime:
    """Uptime of slurmctld in seconds, at least, by its own clock; proof that it answered itself.

    An empty node list is trusted only with it. Without, the list may come from a slurmctld that
    has just started, or from a proxy.
    """

    seconds: float


class NodeListFilter(ListCache[Mapping[str, Node]]):
    """The node list, which slurmctld may have lost wholly or in part without knowing it."""

    def __init__(self, stale: float, confirm_s: float) -> None:
        super().__init__(stale)
        self._confirm_s = confirm_s
        self._short_since: float | None = None
        self._empty_since: float | None = None
        self._forgotten: set[str] = set()

    def forget(self, names: Iterable[str]) -> None:
        """These records were deleted by us: their absence is no surprise."""
        self._forgotten.update(names)

    def needs_uptime(self, nodes: Collection[Node], asked_at: float) -> bool:
        """Whether this list is believed only together with the `Uptime` of its slurmctld."""
        if nodes or self._all_forgotten() or self._empty_since is None:
            return False
        return asked_at - self._empty_since >= self._confirm_s

    def accept(
        self,
        nodes: Mapping[str, Node],
        update_time: int,
        asked_at: float,
        uptime: Uptime | None = None,
    ) -> None:
        """Take a whole list, unless it suddenly lacks half of what was known, or is empty.

        An empty list is taken at once when the list was empty before, or when we ourselves deleted
        the last record that was believed. Else it has to repeat itself for `confirm_s` seconds,
        and `uptime` has to show that slurmctld runs for as long.
        """
        if nodes:
            self._empty_since = None
        elif not self._all_forgotten():
            if self._empty_since is None:
                self._empty_since = asked_at
            self._short_since = None
            repeated = asked_at - self._empty_since >= self._confirm_s
            if not repeated or uptime is None or uptime.seconds < self._confirm_s:
                self.doubt(NO_NODES)
                return
            self._empty_since = None
            self._forgotten.clear()
            self.store(nodes, update_time, asked_at)
            return
        known = (self._value or {}).keys() - self._forgotten
        missing = known - nodes.keys()
        if len(missing) > 1 and 2 * len(missing) >= len(known):
            if self._short_since is None:
                self._short_since = asked_at
            if asked_at - self._short_since < self._confirm_s:
                listed = len(known) - len(missing)
                self.doubt(f"slurmrestd listed only {listed} of {len(known)} known nodes")
                return
        self._short_since = None
        self._forgotten &= nodes.keys()
        self.store(nodes, update_time, asked_at)

    def _all_forgotten(self) -> bool:
        return self._value is not None and self._value.keys() <= self._forgotten


def with_reused_records(old: Mapping[str, Node] | None, nodes: Iterable[Node]) -> dict[str, Node]:
    """Records by name; those equal to what was known are the very same objects.

    Thousands of records come again with every answer. Who compares by identity finds the few that
    changed at once.
    """
    known = old or {}
    found: dict[str, Node] = {}
    for node in nodes:
        before = known.get(node.name)
        found[node.name] = before if before is not None and before == node else node
    return found


def changed_nodes(old: Snapshot, new: Snapshot) -> frozenset[str] | None:
    """Names of the nodes whose record or jobs differ; None when none does.

    When a list turned from known to unknown or back, that is all names of both, perhaps none.
    """
    turned = False
    names: set[str] = set()
    if isinstance(old.nodes, Known) and isinstance(new.nodes, Known):
        before, after = old.nodes.value, new.nodes.value
        if before is not after:
            names.update(before.keys() ^ after.keys())
            names.update(
                name
                for name, node in after.items()
                # Mostly the same object, as `reusing` has it; comparing fields costs ten times it.
                if (had := before.get(name)) is not node and had is not None and had != node
            )
    elif old.nodes != new.nodes:
        turned = True
    if isinstance(old.jobs, Known) and isinstance(new.jobs, Known):
        if old.jobs.value is not new.jobs.value:
            jobs = set(old.jobs.value).symmetric_difference(new.jobs.value)
            names.update(name for job in jobs for name in job.nodes)
            turned = any(job.everywhere for job in jobs)
    elif old.jobs != new.jobs:
        turned = True
    if turned:
        for snapshot in (old, new):
            if isinstance(snapshot.nodes, Known):
                names.update(snapshot.nodes.value)
    return frozenset(names) if names or turned else None
