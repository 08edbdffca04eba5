"""A Kubernetes node that is rebooted by a stub: a NodeConfigurator, and what a kubelet reports."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager

from e2e_kit.api import Json, condition
from e2e_kit.chart_rights import cluster_rights
from e2e_kit.site import OPERATOR, Site
from e2e_kit.slurmcluster import SlurmClusterSite
from penstock.local import install
from penstock.model import node_mark

REBOOT = "SlurmNodeReboot"
MAINTENANCE = "NebiusMaintenanceScheduled"
NAME = "slurm-rebooter"
STUB = "stub called"
COMMAND = f"sh -c 'echo {STUB} >> /proc/$PPID/fd/1'"
"""Instead of `systemctl reboot`: a line in the log of the rebooter's container."""


class RebootedNode:
    """A Kubernetes node of a site, the first one unless it is named, and the NodeConfigurator of a
    SlurmCluster on it."""

    def __init__(self, site: Site, cluster: SlurmClusterSite, name: str = "") -> None:
        self._site, self._cluster = site, cluster
        first = ("get", "nodes", "-o", "jsonpath={.items[0].metadata.name}")
        self.name = name or site.kubectl(*first)

    @contextmanager
    def allowed(self) -> Generator[None]:
        """The rights of the operator's chart while the block runs; no mark is left after it."""
        space = self._cluster.namespace
        self._cluster.kubectl("create", "serviceaccount", "rebooter")
        bound = (
            ("outages", {"name": OPERATOR, "namespace": install.SYSTEM}),
            ("rebooter", {"name": "rebooter", "namespace": space}),
        )
        made = [one for part, account in bound for one in cluster_rights(part, account, space)]
        self._site.apply(*made)
        try:
            yield
        finally:
            self._site.kubectl("uncordon", self.name)
            keys = (node_mark.OUT_OF_SERVICE, node_mark.REBOOT_STARTED, node_mark.REBOOT_DONE)
            self._site.kubectl("annotate", "node", self.name, *(f"{key}-" for key in keys))
            gone = [{"$patch": "delete", "type": one} for one in (REBOOT, MAINTENANCE)]
            self._status({"conditions": gone})
            for one in made:
                self._site.kubectl("delete", one["kind"], one["metadata"]["name"])

    def configure(self, *, enabled: bool) -> None:
        """Apply the NodeConfigurator, with the rebooter on or off."""
        env = [{"name": "REBOOTER_COMMAND", "value": COMMAND}]
        rebooter = {"enabled": enabled, "serviceAccountName": "rebooter", "env": env}
        self._cluster.apply(
            {
                "apiVersion": "slurm.nebius.ai/v1alpha1",
                "kind": "NodeConfigurator",
                "metadata": {"name": NAME},
                "spec": {"rebooter": rebooter, "hostNetwork": False},
            }
        )

    def pods(self) -> list[str]:
        """Names of the rebooter's pods."""
        selector = "slurm.nebius.ai/node-configurator=true"
        return self._cluster.kubectl("get", "pods", "-l", selector, "-o", "name").split()

    def is_ready(self) -> bool:
        """Whether the NodeConfigurator reports that all pods are ready."""
        found = json.loads(self._cluster.kubectl("get", "nodeconfigurator", NAME, "-o", "json"))
        return condition(found, "Ready").get("status") == "True" and bool(self.pods())

    def processes(self) -> str:
        """Names of all processes that the rebooter sees: those of its Kubernetes node."""
        files = "glob.glob('/proc/*/comm')"
        script = f"import glob; print([open(one).read().strip() for one in {files}])"
        return self._cluster.kubectl("exec", self.pods()[0], "--", "python3", "-c", script)

    def reboots(self) -> int:
        """How often the stub was called."""
        return self._cluster.kubectl("logs", self.pods()[0]).splitlines().count(STUB)

    def ask(self) -> None:
        """Set the condition that asks for a reboot."""
        asked = {"type": REBOOT, "status": "True", "reason": "NodeNeedReboot", "message": "a test"}
        self._status({"conditions": [asked]})

    def maintain(self, *, planned: bool) -> None:
        """Set the condition by which a provider announces its maintenance, or end it."""
        status = "True" if planned else "False"
        asked = {"type": MAINTENANCE, "status": status, "reason": "Provider", "message": "a test"}
        self._status({"conditions": [asked]})

    def boot(self, boot_id: str) -> None:
        """Report another boot ID, until the kubelet reports its own again."""
        self._status({"nodeInfo": {"bootID": boot_id}})

    def answer(self) -> str:
        """Status and reason of the condition."""
        found = condition(self._get(), REBOOT)
        return f"{found.get('status')}/{found.get('reason')}"

    def is_cordoned(self) -> bool:
        """Whether no new pod comes to it."""
        return bool(self._get()["spec"].get("unschedulable"))

    def _get(self) -> Json:
        return json.loads(self._site.kubectl("get", "node", self.name, "-o", "json"))

    def _status(self, body: Json) -> None:
        patch = ("--subresource=status", "--type=strategic", "-p", json.dumps({"status": body}))
        self._site.kubectl("patch", "node", self.name, *patch)
