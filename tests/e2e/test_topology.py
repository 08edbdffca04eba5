"""A machine's topology annotation on real Slurm: at the start, live, refused, put right, gone."""

from __future__ import annotations

from collections.abc import Callable, Generator

import pytest

from e2e_kit import manifests
from e2e_kit.api import Json, condition
from e2e_kit.cluster import Cluster
from e2e_kit.site import Site, eventually
from penstock.api.slinky import labels as slinky_labels

YAML = """\
- topology: topo-switch
  cluster_default: true
  tree:
    switches:
      - switch: root
        children: s[1-2]
      - switch: s1
      - switch: s2
"""


class Machine:
    """The node's only machine, and its annotation."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.name = site.kubectl("get", "nodes", "-o", "name").strip().removeprefix("node/")

    def at(self, place: str | None) -> None:
        """Set the annotation, or take it away."""
        note = f"{slinky_labels.TOPOLOGY}{'-' if place is None else f'={place}'}"
        self._site.kubectl("annotate", "--overwrite", "node", self.name, note)


@pytest.fixture(scope="module")
def machine(site: Site) -> Generator[Machine]:
    found = Machine(site)
    yield found
    found.at(None)


@pytest.fixture(scope="module")
def cluster(clusters: Callable[[str], Cluster], machine: Machine) -> Cluster:
    machine.at("topo-switch:s1")
    cluster = clusters("topology")
    files = manifests.slurm_files()
    files["data"]["topology.yaml"] = YAML
    cluster.create(files, manifests.controller(), manifests.restapi(), manifests.nodeset(1))
    cluster.until_ready("nodesets", "compute")
    cluster.until_idle("compute-0")
    return cluster


def topology(cluster: Cluster, name: str = "compute-0") -> str:
    return cluster.node(name).get("topology", "")


def copied(cluster: Cluster) -> str | None:
    return cluster.pods()["compute-0"]["metadata"]["annotations"].get(slinky_labels.TOPOLOGY)


def refused(cluster: Cluster) -> Json | None:
    found = condition(cluster.get("nodesets", "compute"), "Stalled")
    return found if found.get("reason") == "TopologyRefused" else None


def missing(cluster: Cluster) -> Json | None:
    found = condition(cluster.get("nodesets", "compute"), "Stalled")
    return found if found.get("reason") == "TopologyMissing" else None


def test_a_node_follows_its_kubernetes_node_under_a_running_job(
    cluster: Cluster, machine: Machine
) -> None:
    """Feature row 49."""
    eventually("it starts there", lambda: topology(cluster) == "topo-switch:s1", 60)
    eventually("its pod says so", lambda: copied(cluster) == "topo-switch:s1", 60)
    job = cluster.submit("sleep 600", "--output=/dev/null")
    cluster.until_job(job, "RUNNING")
    before = cluster.uids("")
    machine.at("topo-switch:s2")
    eventually("it is moved", lambda: topology(cluster) == "topo-switch:s2", 60)
    eventually("its pod says so", lambda: copied(cluster) == "topo-switch:s2", 60)

    machine.at("nosuch:s1")
    told = eventually("the refusal is told", lambda: refused(cluster), 60)
    assert "compute-0: nosuch:s1" in told["message"]
    assert "topology" in told["message"].lower()
    assert topology(cluster) == copied(cluster) == "topo-switch:s2"
    cluster.site.until_event(cluster.namespace, "", "TopologyRefused")

    machine.at("topo-switch:s1")
    eventually("it is put right", lambda: topology(cluster) == "topo-switch:s1", 60)
    cluster.until_ready("nodesets", "compute")
    machine.at(None)
    eventually("it is nowhere in particular", lambda: topology(cluster) == "", 60)
    told = eventually("no job can use it", lambda: missing(cluster), 60)
    assert f"kubectl annotate node {machine.name} " in told["message"]
    assert cluster.job(job)["JobState"] == "RUNNING"
    assert cluster.uids("") == before
    cluster.run("scancel", str(job))


def test_a_worker_starts_though_its_kubernetes_node_is_wrong(
    cluster: Cluster, machine: Machine
) -> None:
    """D3."""
    machine.at("nosuch:s1")
    cluster.apply(manifests.nodeset(2))
    eventually("it is told", lambda: refused(cluster), 60)
    eventually("it has come", lambda: "IDLE" in cluster.states().get("compute-1", set()), 90)
    machine.at("topo-switch:s2")
    cluster.until_ready("nodesets", "compute")
    eventually("it is there", lambda: topology(cluster, "compute-1") == "topo-switch:s2", 60)
