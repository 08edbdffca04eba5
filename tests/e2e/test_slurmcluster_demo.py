"""`penstock demo up --cluster slurmcluster` on several Kubernetes nodes, and its scripts.

The nodes are those that the documents of the original show: a control plane that takes no pods, and
three workers with a label that the cluster's node filter selects.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

import pytest

from docs_kit.blocks import blocks_of
from docs_kit.run import run_blocks
from docs_kit.shells import on_cluster
from e2e_kit.api import Json, ready
from e2e_kit.left import left_of
from e2e_kit.site import eventually
from penstock.local import demo_slurmcluster as demo
from penstock.local import inotify, launch, process
from penstock.local.components import Size
from penstock.local.demo_login import login, ssh_key
from penstock.local.errors import LocalError
from penstock.local.layout import Layout
from penstock.local.linux import why_not
from penstock.local.node import Node
from penstock.local.target import BuiltIn
from support.room import room

CLUSTER = "test-soperator"
CONTROL_PLANE = "soperator-demo-control-plane"
WORKERS = ("soperator-demo-worker", "soperator-demo-worker2", "soperator-demo-worker3")
GROUP, VALUE = "nebius.com/node-group-id", "node-group-id-here"
ROLE = "node-role.kubernetes.io/control-plane"
SELECTED = {
    "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [
            {"matchExpressions": [{"key": GROUP, "operator": "In", "values": [VALUE]}]}
        ]
    }
}
APART = {
    "requiredDuringSchedulingIgnoredDuringExecution": [
        {
            "labelSelector": {"matchLabels": {"app.kubernetes.io/component": "worker"}},
            "topologyKey": "kubernetes.io/hostname",
        }
    ]
}
FILTERS: list[Json] = [
    {"name": "cpu", "affinity": {"nodeAffinity": SELECTED}, "tolerations": []},
    {"name": "apart", "affinity": {"nodeAffinity": SELECTED, "podAntiAffinity": APART}},
]

pytestmark = [
    pytest.mark.skipif(bool(why_not()), reason=why_not() or "can run"),
    pytest.mark.timeout(900),
    pytest.mark.long,
]


@dataclass
class Demo:
    """The node, and what the first `up` printed of its job."""

    target: BuiltIn
    output: str

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        return self.target.kubectl("-n", demo.NAMESPACE, *arguments, stdin=stdin)

    def pods(self) -> dict[str, Json]:
        items: list[Json] = json.loads(self.kubectl("get", "pods", "-o", "json"))["items"]
        return {one["metadata"]["name"]: one for one in items}

    def places(self) -> dict[str, str]:
        """Kubernetes nodes of the pods that run, by pod."""
        return {
            name: one["spec"]["nodeName"]
            for name, one in self.pods().items()
            if one["status"]["phase"] == "Running"
        }

    def patch(self, spec: dict[str, Any]) -> None:
        body = json.dumps({"spec": spec})
        self.kubectl("patch", "slurmcluster", demo.NAME, "--type=merge", "-p", body)

    def worker(self, **fields: Any) -> None:
        self.patch({"slurmNodes": {"worker": fields}})

    def states(self) -> dict[str, str]:
        sinfo = ("sinfo", "-h", "-N", "-o", "%N %t")
        said = self.kubectl("exec", "controller-0", "-c", "slurmctld", "--", *sinfo)
        return dict(line.split()[:2] for line in said.splitlines())

    def until_idle(self, *nodes: str) -> None:
        wanted = dict.fromkeys(nodes, "idle")
        eventually(f"exactly {nodes} are idle", lambda: self.states() == wanted, 120)


@pytest.fixture(scope="module")
def shown() -> Generator[Demo]:
    with room(inotify.FIRST_NODE + 3 * inotify.FURTHER_NODE), Node(CLUSTER) as node:
        names = (CONTROL_PLANE, *WORKERS[:2])
        node.up(Size.NODE, nodes=len(names), names=names)
        node.kubectl("label", "node", CONTROL_PLANE, f"{ROLE}=")
        node.kubectl("taint", "node", CONTROL_PLANE, f"{ROLE}=:NoSchedule")
        node.kubectl("label", "node", *WORKERS[:2], f"{GROUP}={VALUE}")
        target = BuiltIn(CLUSTER)
        yield Demo(target, demo.up(target))
    assert left_of(CLUSTER) == []


def test_a_user_of_the_jail_gets_the_output_of_a_job_where_it_was_submitted(shown: Demo) -> None:
    """S133."""
    assert "COMPLETED" in shown.output
    for worker in ("worker-0", "worker-1"):
        assert f"hello from {worker}" in shown.output
    assert shown.output.count("root trixie") == 2
    with login(shown.target, ssh_key(), demo.NAMESPACE, demo.LOGIN, demo.USER) as ssh:
        assert ssh.command[-3:] == ["-p", "30022", f"soperator@{shown.target.node.address}"]
        assert "job_1.out" in ssh("pwd; ls").split()


PAGES = blocks_of("slurmcluster")


@pytest.mark.parametrize("page", PAGES)
def test_commands_of_a_page_print_what_it_shows(shown: Demo, page: str) -> None:
    with login(shown.target, ssh_key(), demo.NAMESPACE, demo.LOGIN, demo.USER) as ssh:
        run_blocks(PAGES[page], on_cluster(shown.target.env, ssh.command))


def test_each_container_is_found_on_the_kubernetes_node_of_its_pod(shown: Demo) -> None:
    """S126, S129: by the container runtime's client, as there is no crictl."""
    addresses = {
        one["metadata"]["name"]: next(
            each["address"] for each in one["status"]["addresses"] if each["type"] == "InternalIP"
        )
        for one in json.loads(shown.kubectl("get", "nodes", "-o", "json"))["items"]
    }
    assert {one.name: one.address for one in shown.target.node.nodes()} == addresses
    found = {name: _containers(name) for name in addresses}
    assert found[CONTROL_PLANE] == set()
    expected: dict[str, set[tuple[str, str]]] = {name: set() for name in addresses}
    for name, pod in shown.pods().items():
        statuses = pod["status"]
        every = (*statuses.get("initContainerStatuses", ()), *statuses["containerStatuses"])
        expected[pod["spec"]["nodeName"]] |= {
            (name, one["name"]) for one in every if "running" in one["state"]
        }
    assert {name: found[name] & expected[name] for name in found} == expected
    assert ("controller-0", "slurmctld") in set.union(*found.values())


def test_logs_of_the_runtime_are_those_of_kubectl(shown: Demo) -> None:
    """S129."""
    where = shown.places()["controller-0"]
    uid = shown.pods()["controller-0"]["metadata"]["uid"]
    file = f"/var/log/pods/{demo.NAMESPACE}_controller-0_{uid}/slurmctld/0.log"
    lines = _inside(where, "cat", file).splitlines()
    said = shown.kubectl("logs", "controller-0", "-c", "slurmctld").splitlines()
    assert [line.split(" ", 3)[3] for line in lines][: len(said)] == said[: len(lines)]


def test_pods_are_on_the_nodes_of_their_filter_and_stay_when_a_label_goes(shown: Demo) -> None:
    """S118."""
    resources = {"cpu": "100m", "memory": "512Mi"}
    shown.patch(
        {
            "k8sNodeFilters": FILTERS,
            "slurmNodes": {
                "worker": {"k8sNodeFilterName": "apart", "slurmd": {"resources": resources}}
            },
        }
    )

    def moved() -> bool:
        pods = shown.pods()
        return all(
            "podAntiAffinity" in pods[name]["spec"]["affinity"] and ready(pods[name])
            for name in ("worker-0", "worker-1")
        )

    eventually("workers have the filter", moved, 120)
    shown.until_idle("worker-0", "worker-1")
    places = shown.places()
    assert {places["worker-0"], places["worker-1"]} == set(WORKERS[:2])
    assert CONTROL_PLANE not in places.values()
    with login(shown.target, ssh_key(), demo.NAMESPACE, demo.LOGIN, demo.USER) as ssh:
        job = ssh("sbatch --parsable -w worker-0 --wrap 'sleep 600'").strip()
        query = f"squeue -h -j {job} -o %T"
        eventually("the job runs", lambda: ssh(query).strip() == "RUNNING")
        uid = shown.pods()["worker-0"]["metadata"]["uid"]
        shown.kubectl("label", "node", places["worker-0"], f"{GROUP}-")
        # The operator reconciles for another change of the workers, and has seen the node by then.
        shown.worker(size=3)
        eventually("the third worker exists", lambda: "worker-2" in shown.pods())
        assert shown.pods()["worker-0"]["metadata"]["uid"] == uid
        assert ssh(query).strip() == "RUNNING"
        ssh(f"scancel {job}")
    shown.kubectl("label", "node", places["worker-0"], f"{GROUP}={VALUE}")


def test_a_worker_without_a_kubernetes_node_waits_and_runs_once_there_is_one(shown: Demo) -> None:
    """S124."""

    def reported() -> bool:
        events = shown.kubectl(
            "get", "events", "--field-selector=involvedObject.name=worker-2", "-o", "json"
        )
        found = json.loads(events)["items"]
        return any(
            one["reason"] == "FailedScheduling" and "anti-affinity" in one["message"]
            for one in found
        )

    eventually("the scheduler reports why", reported)
    assert shown.pods()["worker-2"]["status"]["phase"] == "Pending"
    shown.target.node.add(WORKERS[2])
    shown.kubectl("label", "node", WORKERS[2], f"{GROUP}={VALUE}")
    shown.until_idle("worker-0", "worker-1", "worker-2")
    assert shown.places()["worker-2"] == WORKERS[2]


def test_a_kubernetes_node_lists_its_pods_with_their_requests(shown: Demo) -> None:
    """S127."""
    name = shown.places()["worker-2"]
    assert name in shown.kubectl("get", "nodes", "-o", "wide")
    listed = shown.kubectl("get", "pods", "-o", "name", f"--field-selector=spec.nodeName={name}")
    here = {pod for pod, place in shown.places().items() if place == name}
    assert {one.removeprefix("pod/") for one in listed.split()} == here
    described = shown.kubectl("describe", "node", name).splitlines()
    (line,) = (one.split() for one in described if " worker-2 " in one)
    assert line[2] == "100m"
    assert "512Mi" in line


def test_a_missing_pod_is_named_while_no_operator_runs_and_jobs_go_on(shown: Demo) -> None:
    """S139, S087."""
    scale = ("scale", "deployment/soperator-manager", "-n", "soperator")
    manager = "control-plane=controller-manager"
    shown.target.kubectl(*scale, "--replicas=0")
    try:
        eventually(
            "no operator runs",
            lambda: (
                not shown.target.kubectl(
                    "get", "pods", "-n", "soperator", "-l", manager, "-o", "name"
                ).strip()
            ),
        )
        shown.kubectl("delete", "pod", "worker-2", "--grace-period=1")
        with pytest.raises(LocalError, match="worker-2 is missing"):
            demo.run_script(shown.target, demo.scripts()[0])
        with login(shown.target, ssh_key(), demo.NAMESPACE, demo.LOGIN, demo.USER) as ssh:
            assert ssh("srun --quiet -w worker-0 hostname").strip() == "worker-0"
    finally:
        shown.target.kubectl(*scale, "--replicas=1")
    # Slurm counts the former pod's node as idle for a while.
    eventually("another pod is ready", lambda: ready(shown.pods().get("worker-2", {})), 120)
    shown.until_idle("worker-0", "worker-1", "worker-2")


def test_up_again_keeps_changes_and_all_five_scripts_succeed_again(
    shown: Demo, figure: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """S140, S141, S142, S143, S144: the scripts run in each `up`."""
    uids = {name: one["metadata"]["uid"] for name, one in shown.pods().items()}
    capsys.readouterr()
    began = time.monotonic()
    assert "COMPLETED" in demo.up(shown.target)
    figure(f"the demo of a SlurmCluster again: {time.monotonic() - began:.1f} s")
    printed = capsys.readouterr().out
    assert {name: one["metadata"]["uid"] for name, one in shown.pods().items()} == uids
    assert len(demo.scripts()) == 5
    assert "FAILED" not in printed
    for words in (
        "the jail is filled",
        "worker-2:6818 is reached",
        "slurmd in worker-2",
        "3 nodes, as spec.slurmNodes.worker.size",
        "all nodes printed",
        "the SlurmCluster is available",
    ):
        assert words in printed


def _inside(name: str, *command: str) -> str:
    """Output of a command in a Kubernetes node."""
    layout = Layout(CLUSTER) if name == CONTROL_PLANE else Layout(CLUSTER, name)
    first = process.load(layout.pid)
    assert first is not None
    return launch.inside(first, command)


def _containers(name: str) -> set[tuple[str, str]]:
    """Pods and names of the cluster's containers that the runtime of a node has."""
    ctr = ("/usr/bin/ctr", "--namespace", "k8s.io", "containers")
    mine = f'labels."io.kubernetes.pod.namespace"=={demo.NAMESPACE}'
    found: set[tuple[str, str]] = set()
    for one in _inside(name, *ctr, "list", "--quiet", mine).split():
        labels = json.loads(_inside(name, *ctr, "info", one))["Labels"]
        if labels["io.cri-containerd.kind"] == "container":
            found.add((labels["io.kubernetes.pod.name"], labels["io.kubernetes.container.name"]))
    return found
