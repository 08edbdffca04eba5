"""What pods ask of a namespace that enforces a pod security level.

Source: Kubernetes documentation, "Pod Security Standards", Baseline.
"""

from __future__ import annotations

from typing import Any

import pytest

from penstock.render.slinky.cluster import slurmctld as controller
from penstock.render.slinky.cluster import slurmrestd as restapi
from penstock.render.slinky.nodeset import worker_pod as worker

ADDED = frozenset(
    [
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    ]
)
"""Capabilities that the level `baseline` lets containers add."""
WITHOUT: dict[str, Any] = {
    "slurmd": {"securityContext": {"privileged": False, "capabilities": {"add": []}}}
}


def refused(spec: dict[str, Any]) -> list[str]:
    """What of a pod's spec that level refuses."""
    found = [key for key in ("hostNetwork", "hostPID", "hostIPC") if spec.get(key)]
    found += [f"hostPath {one['name']}" for one in spec["volumes"] if "hostPath" in one]
    for one in (*spec["containers"], *spec.get("initContainers", ())):
        context: dict[str, Any] = one.get("securityContext", {})
        if context.get("privileged"):
            found.append(f"privileged {one['name']}")
        added = set(context.get("capabilities", {}).get("add") or ()) - ADDED
        found += [f"{name} {one['name']}" for name in sorted(added)]
        found += [f"hostPort {one['name']}" for p in one.get("ports", ()) if p.get("hostPort")]
    return found


@pytest.mark.parametrize("daemon", ["slurmctld", "slurmrestd", "slurmd"])
def test_a_cluster_without_privilege_asks_for_nothing_that_baseline_rejects(
    daemon: str, load: Any
) -> None:
    """D30."""
    bundle = load("minimal", nodeset=WITHOUT)
    match daemon:
        case "slurmctld":
            made = controller.stateful_set(bundle.cluster)["spec"]["template"]
        case "slurmrestd":
            every = restapi.objects(bundle.cluster, bundle.restapi)
            (made,) = (one["spec"]["template"] for one in every if one["kind"] == "Deployment")
        case _:
            made = worker.pod(bundle.cluster, bundle.cluster.nodesets[0], 0)
    assert refused(made["spec"]) == []


def test_a_worker_without_any_facts_is_rejected(load: Any) -> None:
    """D30: Slurm's control groups need it."""
    bundle = load("minimal")
    made = worker.pod(bundle.cluster, bundle.cluster.nodesets[0], 0)
    assert "privileged slurmd" in refused(made["spec"])
