"""The start of a job step in the jail beside one in the container, within one allocation.

Both are steps of the same slurmd, asked for beside it. Every second one has a plugstack.conf
without the line of the jail's plug-in, by a mount that only this worker has: the files of the jail
stay as they are.
"""

from __future__ import annotations

import json
import statistics
from dataclasses import dataclass

from bench.config.rest import Cluster
from bench.figures import Figure

PAIRS = 40
WORKER = "worker-0"
_PLUGIN = "chroot.so"

# What is timed begins with srun's own start, and ends with what the step's program prints, or with
# srun. The file of the step without the plug-in is below /run, which is the container's own.
_PAIRS = """
import json, pathlib, subprocess, time
conf, plain = pathlib.Path("/etc/slurm/plugstack.conf").resolve(), pathlib.Path("/run/plain.conf")
lines = conf.read_text().splitlines(keepends=True)
kept = [line for line in lines if "{plugin}" not in line]
assert len(kept) == len(lines) - 1, lines
plain.write_text("".join(kept))
step = ["srun", "-Q", "-n1", "--overlap", "--chdir=/", "date", "+%s.%N"]

def run():
    began = time.time()
    said = subprocess.run(step, check=True, capture_output=True, text=True).stdout
    return float(said) - began, time.time() - began

def run_plain():
    subprocess.run(["mount", "--bind", plain, conf], check=True)
    try:
        return run()
    finally:
        subprocess.run(["umount", conf], check=True)

found = []
run_plain(), run()
for number in range({pairs}):
    if number % 2:
        without, inside = run_plain(), run()
    else:
        inside, without = run(), run_plain()
    found.append([*without, *inside])
print(json.dumps(found))
"""


@dataclass(frozen=True)
class Pair:
    """Milliseconds of a step without the plug-in and of one with it, one after the other."""

    start: float
    whole: float
    jail_start: float
    jail_whole: float


def measure(cluster: Cluster) -> list[Pair]:
    """Alternating steps in one allocation on one worker."""
    script = _PAIRS.format(plugin=_PLUGIN, pairs=PAIRS)
    pod = (WORKER, "-n", cluster.namespace, "-c", "slurmd")
    command = ("salloc", "-Q", "--immediate=60", "-N1", "-w", WORKER, "python3", "-c", script)
    said: list[list[float]] = json.loads(cluster.node.kubectl("exec", *pod, "--", *command))
    return [Pair(*(1000 * seconds for seconds in one)) for one in said]


def figures(pairs: list[Pair]) -> list[Figure]:
    """With the differences of pairs, and the ratio of the medians."""
    starts, jail = [one.start for one in pairs], [one.jail_start for one in pairs]
    ratio = statistics.median(jail) / statistics.median(starts)
    more = [one.jail_start - one.start for one in pairs]
    whole = [one.jail_whole - one.whole for one in pairs]
    return [
        Figure("step without the plug-in: srun to the program", "ms", tuple(starts)),
        Figure("step in the jail: srun to the program", "ms", tuple(jail)),
        Figure("step: more in the jail", "ms", tuple(more)),
        Figure("step: more in the jail until srun ends", "ms", tuple(whole)),
        Figure("step: in the jail over without the plug-in", "x", (ratio,)),
    ]
