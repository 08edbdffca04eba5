"""A proxy that misbehaves between the operator and a cluster's slurmrestd.

The oldest RestApi speaks for its cluster. So the first one, `slurm`, is given no pods, and a pod
with the labels and the port name that its Service selects by stands in for them; the proxy in it
asks the second RestApi, `slurm-real`. The proxy's modules come from the tests' checkout by a
ConfigMap: the operator's image does not have them.
"""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

import penstock.simulation
from e2e_kit import manifests
from e2e_kit.api import Json
from e2e_kit.cluster import Cluster
from penstock.simulation.faults import Fault

REAL = "slurm-real"
NAME = "faultproxy"
CONTROL = 6821
FILES = ("__init__.py", "faults.py", "fault_proxy.py")
PACKAGE = "/opt/simulation"
RUN = (
    "import penstock, runpy; penstock.__path__.append('/opt');"
    "runpy.run_module('penstock.simulation.fault_proxy', run_name='__main__')"
)


class Proxy:
    """The proxy of one cluster: `switch` makes it misbehave."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    @staticmethod
    def objects(image: str) -> list[Json]:
        """What to create beside Controller and NodeSets; the first RestApi comes first."""
        folder = Path(penstock.simulation.__path__[0])
        files = {name: (folder / name).read_text() for name in FILES}
        return [
            manifests.restapi(replicas=0),
            manifests.config_map(NAME, **files),
            _pod(image),
        ]

    def switch(self, fault: Fault) -> None:
        """Misbehave in this way from now on."""
        self._control("PUT", f"mode/{fault.value}")

    def calls(self) -> int:
        """How often it was asked so far."""
        return int(self._control("GET", "calls")["calls"])

    def _control(self, method: str, path: str) -> dict[str, Any]:
        address = self.cluster.get("pods", NAME)["status"]["podIP"]
        request = urllib.request.Request(f"http://{address}:{CONTROL}/{path}", method=method)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.loads(answer.read())


def _pod(image: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": NAME,
            "labels": {
                "app.kubernetes.io/name": "slurmrestd",
                "app.kubernetes.io/instance": manifests.NAME,
            },
        },
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {
                    "name": NAME,
                    "image": image,
                    "command": ["/usr/bin/python3", "-c", RUN],
                    "args": [
                        "--listen=0.0.0.0:6820",
                        f"--upstream=http://{REAL}-restapi:6820",
                        f"--control-port={CONTROL}",
                    ],
                    "ports": [{"name": "slurmrestd", "containerPort": 6820}],
                    "readinessProbe": {"tcpSocket": {"port": CONTROL}, "periodSeconds": 1},
                    "volumeMounts": [{"name": "code", "mountPath": PACKAGE}],
                }
            ],
            "volumes": [{"name": "code", "configMap": {"name": NAME}}],
        },
    }
