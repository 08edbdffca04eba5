"""When slurmctld says something new: asked in its own pod, again and again."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from penstock.local.node import Node

TIMEOUT_S = 120.0
# Clients read slurm.conf before they speak: while a refused file is there, they say nothing.
LOOP = """
said=
while :; do
  now=$(COMMAND 2>/dev/null | grep -o -m 1 'PATTERN' | tr -d ' ')
  [ "$now" = "$said" ] || [ -z "$now" ] || echo "$EPOCHREALTIME $now"
  said=${now:-$said}
  sleep 0.02
done
"""


@dataclass
class Answers:
    """What was said, with the moment (Unix seconds) at which it was said first."""

    said: dict[str, float] = field(default_factory=dict[str, float])
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def note(self, line: str) -> None:
        """A line of the loop."""
        when, _, what = line.strip().partition(" ")
        with self._changed:
            self.said.setdefault(what, float(when))
            self._changed.notify_all()

    def when(self, what: str) -> float:
        """Wait until it was said. Raises TimeoutError with what was said instead."""
        with self._changed:
            if not self._changed.wait_for(lambda: what in self.said, TIMEOUT_S):
                raise TimeoutError(f"{what!r} was not said in {TIMEOUT_S:g} s, but {self.said}")
            return self.said[what]


@contextmanager
def asking(node: Node, pod: Sequence[str], command: str, pattern: str) -> Generator[Answers]:
    """Ask with `command` until the block ends.

    What counts of its output is the first match of `pattern` (as for grep), without blanks. `pod`
    are kubectl's arguments that name the container.
    """
    loop = LOOP.replace("COMMAND", command).replace("PATTERN", pattern)
    answers = Answers()
    arguments = ["kubectl", "exec", *pod, "--", "bash", "-c", loop]
    with subprocess.Popen(arguments, env=node.env, stdout=subprocess.PIPE, text=True) as process:

        def read() -> None:
            for line in process.stdout or ():
                answers.note(line)

        reader = threading.Thread(target=read)
        reader.start()
        try:
            yield answers
        finally:
            process.terminate()
            reader.join()
