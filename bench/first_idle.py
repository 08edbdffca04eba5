"""When slurmctld listens, answers and has its first idle worker, asked for in its own pod."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from bench.watch import FirstSeen
from penstock.local.node import Node

FIRST_IDLE = "apply to first idle worker"
ASKER = "reconfigure"
"""The container in which sinfo runs: it runs beside slurmctld and before it."""

# One line for each thing that is true for the first time. The port is tried first: sinfo itself
# tries again only once a second.
_SINFO = """
until (exec 3<>/dev/tcp/127.0.0.1/6817) 2>/dev/null; do sleep 0.05; done
echo listens $EPOCHREALTIME
said=
while :; do
  if states=$(sinfo -h -N -o %T 2>/dev/null); then
    for what in answers ${states:+registered} $(grep -x -m 1 idle <<<"$states"); do
      case " $said " in *" $what "*) ;; *) echo "$what $EPOCHREALTIME"; said="$said $what" ;; esac
    done
    case " $said " in *" idle "*) exit 0 ;; esac
  fi
  sleep 0.1
done
"""
_NAMES = {
    "listens": "slurmctld listens",
    "answers": "slurmctld answers sinfo",
    "registered": "a worker registered",
    "idle": FIRST_IDLE,
}


def ask(node: Node, asker: Sequence[str], seen: FirstSeen) -> None:
    """Mark each moment; returns after the last one. `asker` names the container to kubectl."""
    command = ["kubectl", "exec", *asker, "--", "bash", "-c", _SINFO]
    with subprocess.Popen(command, env=node.env, stdout=subprocess.PIPE, text=True) as asking:
        for line in asking.stdout or ():
            what, at = line.split()
            seen.mark(_NAMES[what], float(at))
