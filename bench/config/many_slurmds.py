"""Many real slurmds in one pod, each a node of its own: a cluster that is large for slurmctld."""

from __future__ import annotations

import json
from typing import Any

from penstock.local.node import Node

NAME = "crowd"
# One after the other, a moment apart: registrations at once would time out on two cores. Each has a
# /run and a spool of its own, as in a pod of its own. A setting in slurm.conf (SlurmdSpoolDir with
# %n) is no way: the two workers, whose host gives them their name, leave it out when they start and
# put it in when they reconfigure; then they look for their slurm.conf for a minute, answer nobody,
# and the next reconfigure of slurmctld waits for them.
START = """
import ctypes, os, subprocess, time
MS_REC, MS_PRIVATE = 0x4000, 0x40000
libc = ctypes.CDLL(None, use_errno=True)

def mount(where, kind, flags):
    if libc.mount(kind, where, kind, flags, None):
        raise OSError(ctypes.get_errno(), where)

def apart():
    os.unshare(os.CLONE_NEWNS)
    mount(b"/", None, MS_REC | MS_PRIVATE)
    mount(b"/run", b"tmpfs", 0)
    mount(b"/var/spool/slurmd", b"tmpfs", 0)
    os.mkdir("/run/slurm")

for number in range(1, {count} + 1):
    conf = f"Features=compute CPUs=1 RealMemory=100 Port={{17000 + number}}"
    own = ["-N", f"{name}-{{number}}", "--conf", conf]
    arguments = ["-D", "-Z", "--conf-server", "{server}", *own]
    subprocess.Popen(["/usr/sbin/slurmd", *arguments], preexec_fn=apart)
    time.sleep(0.2)
while True:
    os.wait()
"""

Json = dict[str, Any]


def begin(node: Node, namespace: str, worker: str, count: int) -> None:
    """Start the pod, made from the one of a worker."""
    pod: Json = json.loads(node.kubectl("get", "pod", worker, "-n", namespace, "-o", "json"))
    slurmd = next(one for one in pod["spec"]["containers"] if one["name"] == "slurmd")
    server = slurmd["args"][slurmd["args"].index("--conf-server") + 1]
    shared = {one["name"] for one in slurmd["volumeMounts"]}
    container: Json = {
        "name": NAME,
        "image": slurmd["image"],
        "command": ["python3", "-c", START.format(count=count, name=NAME, server=server)],
        "securityContext": {"privileged": True},
        "volumeMounts": slurmd["volumeMounts"],
    }
    spec: Json = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 0,
        "containers": [container],
        "volumes": [one for one in pod["spec"]["volumes"] if one["name"] in shared],
    }
    metadata: Json = {"name": NAME, "namespace": namespace}
    made: Json = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    node.kubectl("apply", "-f", "-", stdin=json.dumps(made))
