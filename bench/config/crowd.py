"""Many real slurmds in one pod, each a node of its own: a cluster that is large for slurmctld."""

from __future__ import annotations

import json
from typing import Any

from penstock.local.node import Node

NAME = "crowd"
CONF = "SlurmdPidFile=/run/slurmd.%n.pid\nSlurmdSpoolDir=/var/spool/slurmd.%n\n"
"""Lines of slurm.conf with which they do not get in each other's way."""
# One after the other, a moment apart: registrations at once would time out on two cores.
START = """
for i in $(seq {count}); do
  /usr/sbin/slurmd -D -N {name}-$i -Z --conf-server {server} \\
    --conf "Features=compute CPUs=1 RealMemory=100 Port=$((17000+i))" &
  sleep 0.2
done
wait
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
        "command": ["bash", "-c", START.format(count=count, name=NAME, server=server)],
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
