"""Times and counters of nodes that Slurm itself does not keep.

Pure but for its own state. The durations are saved (`saved`), so that neither a time that is under
way nor those that ended are lost when the process restarts. Counters begin at 0, as Prometheus
expects of a new process: an old value that is a little too small would count as a second increase.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable
from typing import Final

from msgspec import Struct, field

from penstock.controllers.exporter import node_state
from penstock.controllers.exporter.node_state import base_state
from penstock.slurm.rest.records import NodeRecord

BUCKETS: Final = (
    30,
    60,
    300,
    600,
    1800,
    3600,
    7200,
    14400,
    28800,
    43200,
    86400,
    172800,
    259200,
    604800,
    1209600,
    2592000,
)
"""Upper bounds in seconds, from half a minute to 30 days."""
VERSION: Final = 1

StateLabels = tuple[str, str, str, str, str]


class Ended(Struct):
    """Durations of one node: their number by bucket (the last one is above all), and their sum."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    total: float = 0.0

    def observe(self, seconds: float) -> None:
        """Count one duration."""
        self.counts[bisect.bisect_left(BUCKETS, seconds)] += 1
        self.total += seconds


class Durations(Struct):
    """Times of one kind: those under way by their beginning, in Unix seconds, and ended ones."""

    since: dict[str, float] = field(default_factory=dict[str, float])
    ended: dict[str, Ended] = field(default_factory=dict[str, Ended])

    def follow(self, name: str, now: float, *, is_on: bool) -> bool:
        """Whether a time began or ended at a node."""
        if is_on:
            if name in self.since:
                return False
            self.since[name] = now
            return True
        began = self.since.pop(name, None)
        if began is None:
            return False
        self.ended.setdefault(name, Ended()).observe(max(now - began, 0.0))
        return True

    def forget(self, kept: frozenset[str]) -> bool:
        """Drop times of nodes that are gone; whether there was one."""
        gone = (self.since.keys() | self.ended.keys()) - kept
        for name in gone:
            self.since.pop(name, None)
            self.ended.pop(name, None)
        return bool(gone)


class Saved(Struct):
    """The part of the history that is saved."""

    unavailable: Durations = field(default_factory=Durations)
    draining: Durations = field(default_factory=Durations)
    version: int = VERSION


class NodeHistory:
    """Follows nodes from one collection to the next."""

    def __init__(self, saved: Saved | None = None) -> None:
        self.saved = saved or Saved()
        self.gpu_seconds: dict[StateLabels, float] = {}
        self.fails: dict[tuple[str, ...], int] = {}
        self._failed: dict[str, bool] = {}
        self._followed_at: float | None = None

    def follow(self, nodes: Iterable[NodeRecord], now: float, longest_s: float) -> bool:
        """Take the nodes of one collection; whether what is to be saved changed.

        More than `longest_s` seconds since the last one are no time in a state: nobody looked.
        """
        elapsed = 0.0 if self._followed_at is None else max(now - self._followed_at, 0.0)
        self._followed_at = now
        found = tuple(nodes)
        changed = False
        for node in found:
            changed |= self._follow_times(node, now)
            labels = state_labels(node)
            seconds = elapsed * node_state.gpus(node.tres) if elapsed <= longest_s else 0.0
            self.gpu_seconds[labels] = self.gpu_seconds.get(labels, 0.0) + seconds
            failed = node_state.is_failed(node)
            if failed and self._failed.get(node.name) is False:
                key = (*labels, node.reason)
                self.fails[key] = self.fails.get(key, 0) + 1
            self._failed[node.name] = failed
        return self._forget(frozenset(node.name for node in found)) or changed

    def _follow_times(self, node: NodeRecord, now: float) -> bool:
        rules: tuple[tuple[Durations, Callable[[NodeRecord], bool]], ...] = (
            (self.saved.unavailable, node_state.is_unavailable),
            (self.saved.draining, node_state.is_draining),
        )
        changed = [times.follow(node.name, now, is_on=rule(node)) for times, rule in rules]
        return any(changed)

    def _forget(self, kept: frozenset[str]) -> bool:
        """Series of nodes that are gone would stay for ever."""
        if self._failed.keys() != kept:
            self._failed = {k: v for k, v in self._failed.items() if k in kept}
            self.gpu_seconds = {k: v for k, v in self.gpu_seconds.items() if k[0] in kept}
            self.fails = {k: v for k, v in self.fails.items() if k[0] in kept}
        gone = [one.forget(kept) for one in (self.saved.unavailable, self.saved.draining)]
        return any(gone)


def state_labels(node: NodeRecord) -> StateLabels:
    """Name and states of a node, as labels of counters have them."""
    drain, maintenance, reserved = (
        "true" if state in node.states else "false"
        for state in ("DRAIN", "MAINTENANCE", "RESERVED")
    )
    return node.name, base_state(node), drain, maintenance, reserved
