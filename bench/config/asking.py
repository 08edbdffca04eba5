"""When slurmctld says something new: asked in its own pod, again and again."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from bench.watch import Seen
from penstock.local.node import Node

# Clients read slurm.conf before they speak: while a refused file is there, they say nothing.
LOOP = """
said=
while :; do
  now=$(COMMAND 2>/dev/null | grep -o -m 1 'PATTERN' | tr -d ' ')
  [ "$now" = "$said" ] || [ -z "$now" ] || echo "$EPOCHREALTIME $now"
  said=${now:-$said}
  sleep 0.1
done
"""


@contextmanager
def asking(node: Node, pod: Sequence[str], command: str, pattern: str) -> Generator[Seen]:
    """Ask with `command` until the block ends.

    What counts of its output is the first match of `pattern` (as for grep), without blanks. `pod`
    are kubectl's arguments that name the container.
    """
    loop = LOOP.replace("COMMAND", command).replace("PATTERN", pattern)
    seen = Seen()
    arguments = ["kubectl", "exec", *pod, "--", "bash", "-c", loop]
    with subprocess.Popen(arguments, env=node.env, stdout=subprocess.PIPE, text=True) as process:

        def read() -> None:
            for line in process.stdout or ():
                when, _, what = line.strip().partition(" ")
                seen.mark(what, float(when))

        reader = threading.Thread(target=read)
        reader.start()
        try:
            yield seen
        finally:
            process.terminate()
            reader.join()
