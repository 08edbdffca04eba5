"""Workers on several Kubernetes nodes: where one comes back to, and what moves with it.

Feature rows 23, 35, 43 and 46; defect D9.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass

import pytest

from e2e_kit import manifests
from e2e_kit.api import Json, condition, ready
from e2e_kit.cluster import Cluster
from e2e_kit.site import Site, eventually

LONG_S = 180.0
MACHINES = ("worker-a", "worker-b")
EXTRA_CONF = manifests.EXTRA_CONF + "SlurmdTimeout=10\nPartitionName=all Nodes=ALL Default=YES\n"
LABEL = "test.penstock.dev/for"

pytestmark = pytest.mark.timeout(600)


@dataclass(frozen=True)
class Place:
    """A cluster with workers on two Kubernetes nodes of their own."""

    site: Site
    cluster: Cluster

    def join(self, machine: str) -> None:
        """Add a Kubernetes node for workers."""
        self.site.node.add(machine)
        self.site.kubectl("label", "node", machine, f"{LABEL}=workers", "--overwrite")

    def pod(self, name: str, *, but: str = "") -> Json:
        """A worker once it is ready, which has another uid than `but`."""

        def found(pods: dict[str, Json]) -> Json | None:
            pod = pods.get(name)
            right = pod is not None and ready(pod) and pod["metadata"]["uid"] != but
            return pod if right else None

        return self.cluster.until("pods", found, f"{name} is another pod and ready", LONG_S)

    def runs(self, node: str) -> bool:
        """Whether a job runs on a Slurm node."""
        return self.cluster.run("srun", "-w", node, "hostname").strip() == node


def nodeset(name: str, replicas: int, **spec: Json | str | bool) -> Json:
    """Workers on the two Kubernetes nodes."""
    found = manifests.nodeset(replicas, name, partition={"enabled": False}, **spec)
    found["spec"]["template"] = {"spec": {"nodeSelector": {LABEL: "workers"}}}
    return found


@pytest.fixture(scope="module")
def place(site: Site, clusters: Callable[[str], Cluster]) -> Generator[Place]:
    cluster = clusters("machines")
    found = Place(site, cluster)
    for machine in MACHINES:
        found.join(machine)
    cluster.create(
        manifests.controller(EXTRA_CONF),
        manifests.restapi(),
        nodeset("pinned", 1, pinToNode=True),
        nodeset("moving", 1),
        nodeset("each", 1, scalingMode="DaemonSet", pruneSlurmNodeRecords="NodeNotFound"),
    )
    cluster.until_idle("pinned-0", "moving-0", *MACHINES, timeout=LONG_S)
    yield found
    for machine in MACHINES:
        site.kubectl("uncordon", machine)
    cluster.kubectl("delete", "nodesets,restapis,controllers", "--all", "--timeout=120s")
    cluster.until("pods", lambda pods: not pods, "no pod is left")
    for machine in MACHINES:
        site.node.delete(machine)


def test_a_pinned_worker_waits_for_its_kubernetes_node(place: Place) -> None:
    """Feature row 43: though another one has room."""
    cluster = place.cluster
    pod = place.pod("pinned-0")
    home = pod["spec"]["nodeName"]
    place.site.kubectl("cordon", home)
    cluster.kubectl("delete", "pod", "pinned-0")

    def waits(pods: dict[str, Json]) -> bool:
        found = condition(pods["pinned-0"], "PodScheduled") if "pinned-0" in pods else {}
        return found.get("status") == "False" and "unschedulable" in found["message"]

    cluster.until("pods", waits, "its next pod has no Kubernetes node", LONG_S)
    place.site.kubectl("uncordon", home)
    assert place.pod("pinned-0", but=pod["metadata"]["uid"])["spec"]["nodeName"] == home
    eventually("it is idle", lambda: cluster.states()["pinned-0"] == {"IDLE"}, LONG_S)
    assert place.runs("pinned-0")


def test_a_drain_by_hand_moves_with_its_worker_to_another_kubernetes_node(place: Place) -> None:
    """D9, feature row 35; and without a drain the node takes jobs there (D10)."""
    cluster = place.cluster
    pod = place.pod("moving-0")
    cluster.run("scontrol", "update", "nodename=moving-0", "state=drain", "reason=bad disk")
    moved = _moved(place, pod)
    eventually("drained", lambda: cluster.states()["moving-0"] == {"IDLE", "DRAIN"}, LONG_S)
    cluster.kubectl("annotate", "--overwrite", "nodeset", "moving", "test.penstock.dev/poke=1")
    cluster.until("pods", _tells("bad disk"), "its pod has the reason", LONG_S)
    assert cluster.states()["moving-0"] == {"IDLE", "DRAIN"}
    assert cluster.node("moving-0")["reason"] == "bad disk"
    cluster.run("scontrol", "update", "nodename=moving-0", "state=resume")
    eventually("it is idle", lambda: cluster.states()["moving-0"] == {"IDLE"}, LONG_S)
    _moved(place, moved)
    eventually("it is idle", lambda: cluster.states()["moving-0"] == {"IDLE"}, LONG_S)
    assert place.runs("moving-0")


def _moved(place: Place, pod: Json) -> Json:
    """Delete a worker's pod whose Kubernetes node takes no new one; its pod on the other one."""
    before = pod["spec"]["nodeName"]
    place.site.kubectl("cordon", before)
    try:
        place.cluster.kubectl("delete", "pod", pod["metadata"]["name"])
        found = place.pod(pod["metadata"]["name"], but=pod["metadata"]["uid"])
    finally:
        place.site.kubectl("uncordon", before)
    assert found["spec"]["nodeName"] != before
    return found


def _tells(reason: str) -> Callable[[dict[str, Json]], bool]:
    def holds(pods: dict[str, Json]) -> bool:
        return condition(pods["moving-0"], "SlurmNodeStateDrain").get("message") == reason

    return holds


def test_a_kubernetes_node_that_joins_gets_a_worker_and_one_that_leaves_loses_its_record(
    place: Place,
) -> None:
    """Feature rows 23 and 46: a stopped one keeps its record until it is deleted."""
    cluster, name = place.cluster, "worker-c"
    place.join(name)
    try:
        eventually("it has a worker", lambda: cluster.states().get(name) == {"IDLE"}, LONG_S)
        assert place.runs(name)
        # The operator marks a record once its pod is Ready. An unmarked one has no owner.
        eventually("its record is marked", lambda: cluster.node(name)["comment"], LONG_S)
        place.site.node.stop(name)
        eventually("Slurm has noticed", lambda: "DOWN" in cluster.states()[name], LONG_S)
        cluster.kubectl("annotate", "--overwrite", "nodeset", "each", "test.penstock.dev/poke=1")
        assert name in cluster.states()
    finally:
        place.site.node.delete(name)
    # Kubernetes does so itself, a minute after the Kubernetes node is gone.
    for pod, found in cluster.pods().items():
        if found["spec"]["nodeName"] == name:
            cluster.kubectl("delete", "pod", pod, "--force", "--grace-period=0")

    def record_gone() -> bool:
        if record := cluster.node(name):
            pods = {pod: found["spec"].get("nodeName") for pod, found in cluster.pods().items()}
            raise LookupError(f"{record['state']}, {record['comment']}, of {pods}")
        return True

    eventually("its record is gone", record_gone, LONG_S)
    assert set(MACHINES) <= set(cluster.states())
