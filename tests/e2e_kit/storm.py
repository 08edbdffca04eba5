"""Faults on a real node: processes of the cluster are killed or frozen at random moments.

Processes are found in /proc, never by asking Kubernetes: it may be what is broken. Only processes
of the storm's own node are touched.
"""

from __future__ import annotations

import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from e2e_kit.undying import COMMAND
from penstock.local import record
from penstock.local.layout import Layout
from penstock.local.node import Node
from penstock.local.process import Process

PAUSE = (2.0, 9.0)
"""Seconds between the end of a fault and the next."""
FROZEN = (0.5, 25.0)
"""Seconds that a process stays frozen. A node counts as lost after 50."""
CALM_AFTER_KILL = 100.0
"""Seconds before the same container is killed again: the kubelet's back-off doubles each time."""


@dataclass(frozen=True)
class Target:
    """A process that may be hit."""

    name: str
    find: Callable[[], list[Process]]
    container: bool
    """Whether it is the main process of a container, so that its end is the container's."""


def targets(node: Node) -> list[Target]:
    """What a node has to break."""

    def part(name: str) -> Target:
        return Target(name, lambda: [p for p in (node.processes().get(name),) if p], False)

    def contained(name: str, words: str) -> Target:
        return Target(name, lambda: _in_pods(node, words), True)

    return [
        part("kube-apiserver"),
        part("etcd"),
        part("kubelet"),
        part("kube-controller-manager"),
        Target("operator", lambda: _in_pods(node, COMMAND), False),
        contained("slurmctld", "/slurmctld "),
        contained("slurmrestd", "/slurmrestd "),
        # Its container starts it again while a job of it runs.
        contained("slurmd", "/slurmd "),
    ]


@dataclass
class Storm:
    """Hits one target after the other until stopped; then everything runs again."""

    targets: list[Target]
    random: random.Random
    say: Callable[[str], None] = print
    counts: Counter[str] = field(default_factory=Counter[str])
    kills: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])
    """What was killed, and when (Unix seconds)."""
    _stop: threading.Event = field(default_factory=threading.Event)
    _killed: dict[str, float] = field(default_factory=dict[str, float])

    def run(self) -> None:
        """Break things until `stop`."""
        began = time.monotonic()
        while not self._stop.wait(self.random.uniform(*PAUSE)):
            target = self.random.choice(self.targets)
            seconds = self.random.uniform(*FROZEN)
            kill = self.random.random() < 0.5 and self._may_kill(target)
            found = target.find()
            if not found:
                continue
            if target.container:
                found = [self.random.choice(found)]
            what = f"{'kill' if kill else 'freeze'} {target.name}"
            length = "" if kill else f" for {seconds:.1f} s"
            self.say(f"{time.monotonic() - began:7.1f} s  {what}{length}")
            self.counts[what] += 1
            if kill:
                self._killed[target.name] = time.monotonic()
                self.kills.append((target.name, time.time()))
                _signal(found, signal.SIGKILL)
            else:
                self._freeze(found, seconds)

    def stop(self) -> None:
        """Break nothing more; what is frozen goes on at once."""
        self._stop.set()

    def _may_kill(self, target: Target) -> bool:
        last = self._killed.get(target.name, float("-inf"))
        return not target.container or time.monotonic() - last > CALM_AFTER_KILL

    def _freeze(self, found: list[Process], seconds: float) -> None:
        try:
            _signal(found, signal.SIGSTOP)
            self._stop.wait(seconds)
        finally:
            _signal(found, signal.SIGCONT)


def _signal(found: list[Process], number: signal.Signals) -> None:
    for process in found:
        process.signal(number)


def _in_pods(node: Node, words: str) -> list[Process]:
    """Main processes of containers of this node whose command line has `words`."""
    there = record.load(Layout(node.name))
    if there is None:
        return []
    found: list[Process] = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            if words not in command or there.cgroup not in (folder / "cgroup").read_text():
                continue
        except OSError:
            continue
        process = Process.of(int(folder.name))
        if process is not None:
            found.append(process)
    return found
