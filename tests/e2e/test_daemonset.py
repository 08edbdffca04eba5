"""One worker on each machine: with a claim of its own, and in the network of the machine.

Scenario S069: real kubelet, storage, budget and Slurm.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator

import pytest

from e2e_kit import manifests
from e2e_kit.api import Json, condition, ready
from e2e_kit.cluster import Cluster
from e2e_kit.site import Site, eventually
from penstock.api.slinky import labels as slinky_labels

WAITS = "until [ -e /shared/told-{0} ]; do sleep 0.2; done; echo the end"
"""A job that ends when it is told to."""
SECONDS = 120.0
"""For what takes seconds on a machine with nothing else to do."""


class Machine:
    """The node's only machine, and its annotations."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.name = site.kubectl("get", "nodes", "-o", "name").strip().removeprefix("node/")
        self.host = self.name.partition(".")[0]

    def note(self, key: str, value: str | None) -> None:
        """Set an annotation, or take it away."""
        words = f"{key}{'-' if value is None else f'={value}'}"
        self._site.kubectl("annotate", "--overwrite", "node", self.name, words)


@pytest.fixture(scope="module")
def machine(site: Site) -> Generator[Machine]:
    found = Machine(site)
    yield found
    for key in (slinky_labels.HOSTNAME_OVERRIDE, slinky_labels.FEATURES):
        found.note(key, None)


@pytest.fixture(scope="module")
def cluster(clusters: Callable[[str], Cluster], machine: Machine) -> Cluster:
    cluster = clusters("daemonset")
    claim: Json = {
        "metadata": {"name": "cache"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Mi"}},
        },
    }
    # The number means nothing here; Kubernetes' own count of workers goes by it.
    nodeset = manifests.nodeset(
        0,
        scalingMode="DaemonSet",
        pruneSlurmNodeRecords="NodeNotFound",
        volumeClaimTemplates=[claim],
        persistentVolumeClaimRetentionPolicy={"whenScaled": "Delete"},
    )
    nodeset = manifests.on_shared_disk(nodeset, cluster.shared)
    nodeset["spec"]["slurmd"]["volumeMounts"].append({"name": "cache", "mountPath": "/cache"})
    cluster.create(manifests.controller(), manifests.restapi(), nodeset)
    cluster.until_ready("nodesets", "compute")
    cluster.until_idle(machine.host)
    return cluster


def the_pod(cluster: Cluster) -> Json:
    (pod,) = cluster.pods().values()
    return pod


def claims(cluster: Cluster) -> set[str]:
    found = cluster.kubectl("get", "persistentvolumeclaims", "-o", "name").split()
    return {one.partition("/")[2] for one in found}


def begin(cluster: Cluster, name: str) -> int:
    """A job that waits to be told to end."""
    job = cluster.submit(WAITS.format(name), f"--output=/shared/{name}")
    cluster.until_job(job, "RUNNING")
    return job


def end(cluster: Cluster, job: int, name: str) -> None:
    """Tell it, and see that it ended as it should."""
    cluster.site.node.run("touch", f"{cluster.shared}/told-{name}")
    done = cluster.until_job(job, "COMPLETED")
    assert done["ExitCode"] == "0:0"
    assert cluster.output(name) == "the end\n"


def test_a_kubernetes_node_gets_its_worker_again_with_what_its_pvc_had(
    cluster: Cluster, machine: Machine
) -> None:
    """D10, feature row 42: its node, which went DOWN with the former pod, takes jobs again."""
    pod = the_pod(cluster)
    name = pod["metadata"]["name"]
    assert cluster.run("srun", "hostname").strip() == machine.host
    assert claims(cluster) == {f"cache-compute-{machine.host}"}
    cluster.on(name, "echo kept >/cache/file")
    cluster.kubectl("delete", "pod", name, "--wait=false")

    def another(pods: dict[str, Json]) -> bool:
        return name in pods and pods[name]["metadata"]["uid"] != pod["metadata"]["uid"]

    cluster.until("pods", another, "there is another pod of that name", SECONDS)
    cluster.until_ready("nodesets", "compute")
    cluster.until_idle(machine.host)
    assert cluster.on(name, "cat /cache/file") == "kept\n"
    assert cluster.run("srun", "hostname").strip() == machine.host


def test_a_cordoned_kubernetes_node_has_its_worker_drained_and_kept(
    site: Site, cluster: Cluster, machine: Machine
) -> None:
    """D32, feature rows 23, 33 and 34: for the reason of its annotation; a new pod comes."""
    pod = the_pod(cluster)["metadata"]

    def drained(reason: str) -> bool:
        node = cluster.node(machine.host)
        return "DRAIN" in node["state"] and node["reason"] == f"slurm-operator: {reason}"

    try:
        site.kubectl("cordon", machine.name)
        usual = f"Node ({machine.name}) was cordoned, Pod ({cluster.namespace}/{pod['name']})"
        eventually("it drains", lambda: drained(f"{usual} must be cordoned"), SECONDS)
        site.kubectl("uncordon", machine.name)
        cluster.until_idle(machine.host, timeout=SECONDS)
        machine.note(slinky_labels.NODE_CORDON_REASON, "the fan is broken")
        site.kubectl("cordon", machine.name)
        eventually("it drains", lambda: drained("the fan is broken"), SECONDS)
        cluster.poke(2)
        assert the_pod(cluster)["metadata"]["uid"] == pod["uid"]
        cluster.kubectl("delete", "pod", pod["name"])

        def another(pods: dict[str, Json]) -> bool:
            found = pods.get(pod["name"])
            return found is not None and ready(found) and found["metadata"]["uid"] != pod["uid"]

        cluster.until("pods", another, "there is another pod on it", SECONDS)
        assert "DRAIN" in cluster.states()[machine.host]
    finally:
        site.kubectl("uncordon", machine.name)
        machine.note(slinky_labels.NODE_CORDON_REASON, None)
    cluster.until_idle(machine.host, timeout=SECONDS)
    assert cluster.run("srun", "hostname").strip() == machine.host


def test_a_busy_worker_is_not_evicted(cluster: Cluster) -> None:
    """D8, feature row 36: Kubernetes expects as many as `spec.replicas`: of these two, one."""
    cluster.apply(manifests.nodeset(1, "other", partition={"enabled": True}))
    cluster.until_ready("nodesets", "other")
    other = cluster.submit("sleep 600", "--partition=other", "--output=/dev/null")
    cluster.until_job(other, "RUNNING", timeout=SECONDS)
    job = begin(cluster, "evicted")
    (pod,) = (name for name in cluster.pods() if name != "other-0")

    def protected(pods: dict[str, Json]) -> bool:
        labels = (pods[one]["metadata"]["labels"] for one in (pod, "other-0"))
        return all(one.get(slinky_labels.POD_PROTECT) == "true" for one in labels)

    def counted(found: dict[str, Json]) -> bool:
        return any(one.get("status", {}).get("currentHealthy") == 2 for one in found.values())

    cluster.until("pods", protected, "the pods are protected")
    cluster.until("poddisruptionbudgets", counted, "Kubernetes has counted them", SECONDS)
    eviction: Json = {"apiVersion": "policy/v1", "kind": "Eviction"}
    for one in (pod, "other-0"):
        eviction["metadata"] = {"name": one, "namespace": cluster.namespace}
        path = f"/api/v1/namespaces/{cluster.namespace}/pods/{one}/eviction"
        words = cluster.site.rejected(
            "create", "--raw", path, "-f", "-", stdin=json.dumps(eviction)
        )
        assert "disruption budget" in words
    end(cluster, job, "evicted")
    cluster.run("scancel", str(other))
    cluster.kubectl("delete", "nodeset", "other", "--timeout=120s")


def test_features_of_the_kubernetes_node_are_its_nodes(cluster: Cluster, machine: Machine) -> None:
    """Feature row 50: those of others stay."""

    def features() -> set[str]:
        return {one for one in cluster.node(machine.host)["features"] if one.startswith("k8s/")}

    machine.note(slinky_labels.FEATURES, "a100,nvlink")
    eventually("it has them", lambda: features() == {"k8s/a100", "k8s/nvlink"}, SECONDS)
    assert cluster.run("srun", "-C", "k8s/a100", "hostname").strip() == machine.host
    machine.note(slinky_labels.FEATURES, None)
    eventually("they are gone", lambda: not features(), SECONDS)
    assert "compute" in cluster.node(machine.host)["features"]


def test_a_kubernetes_node_is_renamed_after_its_job(cluster: Cluster, machine: Machine) -> None:
    """Feature rows 45 and 46: the record of its former name is gone."""
    job = begin(cluster, "renamed")
    before = the_pod(cluster)["metadata"]["uid"]
    machine.note(slinky_labels.HOSTNAME_OVERRIDE, "node07")
    eventually("it drains", lambda: "DRAIN" in cluster.states()[machine.host], SECONDS)
    cluster.poke(3)
    assert the_pod(cluster)["metadata"]["uid"] == before
    end(cluster, job, "renamed")
    cluster.until_idle("node07", timeout=SECONDS)
    cluster.until_ready("nodesets", "compute")
    assert cluster.run("srun", "hostname").strip() == "node07"


def test_the_scaling_mode_is_changed_under_a_job(cluster: Cluster) -> None:
    """Feature row 23."""
    job = begin(cluster, "switched")
    cluster.patch("nodeset", "compute", {"spec": {"scalingMode": "StatefulSet", "replicas": 1}})
    eventually("the new one is there", lambda: "compute-0" in cluster.states(), SECONDS)
    assert cluster.job(job)["JobState"] == "RUNNING"
    assert cluster.job(job)["NodeList"] == "node07"
    end(cluster, job, "switched")
    cluster.until_idle("compute-0", timeout=SECONDS)
    cluster.until_ready("nodesets", "compute")
    assert set(cluster.pods()) == {"compute-0"}


def test_a_pvc_is_deleted_with_scale_in(cluster: Cluster) -> None:
    """Feature row 42: as its policy says."""
    before = claims(cluster)
    assert "cache-compute-0" in before
    cluster.kubectl("scale", "nodeset/compute", "--replicas=0")
    eventually("it is gone", lambda: claims(cluster) == before - {"cache-compute-0"}, SECONDS)
    assert cluster.pods() == {}


OLDER: Json = {"spec": {"hostNetwork": True, "dNSPolicy": "ClusterFirstWithHostNet"}}
NEWER: Json = {"spec": {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}}
UNSAID: Json = {"spec": {"hostNetwork": True}}


def exposed(cluster: Cluster, resource: str, name: str) -> str:
    """What the object's condition says of the machine's network; empty when it does not warn."""
    found = condition(cluster.get(resource, name), "HostNetworkExposed")
    return found["message"] if found.get("status") == "True" else ""


def in_hosts_network(cluster: Cluster, role: str) -> Json:
    """The one pod of a daemon once it is ready and in the network of its machine."""

    def found(pods: dict[str, Json]) -> Json | None:
        right = [
            one
            for one in pods.values()
            if ready(one) and one["metadata"]["labels"].get("app.kubernetes.io/name") == role
        ]
        alone = len(right) == 1 and right[0]["spec"].get("hostNetwork")
        return right[0] if alone else None

    pod = cluster.until("pods", found, f"one {role} in the machine's network", SECONDS)
    assert pod["status"]["podIP"] == pod["status"]["hostIP"]
    assert pod["spec"]["dnsPolicy"] == "ClusterFirstWithHostNet"
    return pod


def test_one_worker_has_the_network_of_a_kubernetes_node_and_the_surplus_reports_why_it_has_none(
    cluster: Cluster, machine: Machine
) -> None:
    """S069, D28: by the older spelling; the cluster's DNS resolves, and a job runs."""
    cluster.apply(manifests.nodeset(2, "host", template=OLDER, partition={"enabled": True}))
    eventually("its node", lambda: cluster.states() == {machine.host: {"IDLE"}}, SECONDS)

    def surplus(nodesets: dict[str, Json]) -> str | None:
        found = condition(nodesets["host"], "Ready")
        return found["message"] if "free ports" in found.get("message", "") else None

    words = cluster.until("nodesets", surplus, "what the second one lacks", SECONDS)
    assert "slurmd listens on 6818" in exposed(cluster, "nodesets", "host")
    worker = in_hosts_network(cluster, "slurmd")
    one = worker["metadata"]["name"]
    (other,) = set(cluster.pods()) - {one}
    assert f"{other} has no Kubernetes node" in words
    for pod in cluster.pods().values():
        assert slinky_labels.POD_HOSTNAME not in pod["metadata"]["labels"]
    assert cluster.get("pods", other)["status"]["phase"] == "Pending"
    name = f"{manifests.NAME}-controller.{cluster.namespace}"
    assert cluster.on(one, f"getent hosts {name}")
    assert cluster.run("srun", "-p", "host", "hostname").strip() == machine.host
    cluster.kubectl("scale", "nodeset/host", "--replicas=1")
    cluster.until_ready("nodesets", "host")
    assert cluster.uids("app.kubernetes.io/name=slurmd") == {one: worker["metadata"]["uid"]}
    assert cluster.states() == {machine.host: {"IDLE"}}


def test_a_slurmrestd_and_a_login_have_it_as_well_and_give_its_ports_to_their_successors(
    cluster: Cluster, machine: Machine
) -> None:
    """S069, D14: by the newer spelling, and by none; sackd has options of the user besides."""
    cluster.patch("restapi", manifests.NAME, {"spec": {"template": NEWER}})
    env = [{"name": "SACKD_OPTIONS", "value": "-vvv"}]
    cluster.apply(manifests.loginset(template=UNSAID, login={"env": env}))
    rest = in_hosts_network(cluster, "slurmrestd")
    login = in_hosts_network(cluster, "login")
    assert "slurmrestd listens on 6820" in exposed(cluster, "restapis", manifests.NAME)
    assert exposed(cluster, "loginsets", "login")
    command = (
        "exec",
        login["metadata"]["name"],
        "-c",
        "login",
        "--",
        "srun",
        "-p",
        "host",
        "hostname",
    )
    assert cluster.kubectl(*command).strip() == machine.host
    shown = ("sh", "-c", "tr '\\0' ' ' </proc/$(pgrep -o -x sackd)/cmdline")
    words = cluster.kubectl(*command[:5], *shown).split()
    assert "-vvv" in words
    assert f"{manifests.NAME}-controller.{cluster.namespace}:6817" in words
    mark = {"spec": {"template": {"metadata": {"annotations": {"test.penstock.dev/mark": "1"}}}}}
    cluster.patch("restapi", manifests.NAME, mark)
    cluster.until(
        "pods",
        lambda pods: rest["metadata"]["name"] not in pods,
        "the older slurmrestd is gone",
        SECONDS,
    )
    in_hosts_network(cluster, "slurmrestd")
    # A worker that goes is drained through it.
    eventually("it answers", lambda: cluster.states() == {machine.host: {"IDLE"}}, SECONDS)
    cluster.kubectl("scale", "nodeset/host", "--replicas=0")
    eventually("the worker is gone", lambda: not cluster.pods(), SECONDS)
    eventually("its node too", lambda: cluster.states() == {}, SECONDS)
    cluster.patch("restapi", manifests.NAME, {"spec": {"template": None}})
    eventually(
        "it warns no more", lambda: not exposed(cluster, "restapis", manifests.NAME), SECONDS
    )
