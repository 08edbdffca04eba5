"""Watches for a new answer of slurmctld: asked in its own pod, again and again."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from bench.watch import FirstSeen
from penstock.local.node import Node

# Clients read slurm.conf before they connect: while a rejected file is there, they print nothing.
# It ends with its standard input: kubectl leaves commands behind in the container.
LOOP = """
said=
while :; do
  now=$(COMMAND </dev/null 2>/dev/null | grep -o -m 1 'PATTERN' | tr -d ' ')
  [ "$now" = "$said" ] || [ -z "$now" ] || echo "$EPOCHREALTIME $now"
  said=${now:-$said}
  read -r -t 0.1
  [ $? -gt 128 ] || exit 0
done
"""


@contextmanager
def asking(node: Node, pod: Sequence[str], command: str, pattern: str) -> Generator[FirstSeen]:
    """Ask with `command` until the block ends.

    What counts of its output is the first match of `pattern` (as for grep), without blanks. `pod`
    are kubectl's arguments that name the container.
    """
    loop = LOOP.replace("COMMAND", command).replace("PATTERN", pattern)
    seen = FirstSeen()
    arguments = ["kubectl", "exec", "-i", *pod, "--", "bash", "-c", loop]
    with subprocess.Popen(
        arguments, env=node.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:

        def read() -> None:
            for line in process.stdout or ():
                when, _, what = line.strip().partition(" ")
                seen.mark(what, float(when))

        reader = threading.Thread(target=read)
        reader.start()
        try:
            yield seen
        finally:
            if process.stdin:
                process.stdin.close()
            reader.join(timeout=5)
            process.terminate()  # a container that hangs
            reader.join()
