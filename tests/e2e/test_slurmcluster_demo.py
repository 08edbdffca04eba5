"""`penstock demo up --cluster slurmcluster` on several Kubernetes nodes, and its scripts.

The nodes are those that the documents of the original show: a control plane that takes no pods, and
three workers with a label that the cluster's node filter selects.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import shlex
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from docs_kit.blocks import blocks_of
from docs_kit.run import run_blocks
from docs_kit.shells import on_cluster
from e2e_kit.api import Json, ready, restarts
from e2e_kit.left import left_of
from e2e_kit.site import eventually
from penstock.local import demo_slurmcluster as demo
from penstock.local import inotify
from penstock.local.components import Size
from penstock.local.demo_login import login, ssh_key
from penstock.local.errors import LocalError
from penstock.local.linux import why_not
from penstock.local.node import Node
from penstock.local.target import BuiltIn
from penstock.slurm.auth.key_rotation import named
from support.room import room

CLUSTER = "test-soperator"
CONTROL_PLANE = "soperator-demo-control-plane"
WORKERS = ("soperator-demo-worker", "soperator-demo-worker2", "soperator-demo-worker3")
GROUP, VALUE = "nebius.com/node-group-id", "node-group-id-here"
CLI = (
    *(sys.executable, "-c", "from penstock.cli.local import app; app()"),
    *("node", "exec", "--name", CLUSTER),
)
"""`penstock local node exec`, which is for this node what `docker exec` is for one of kind."""
CONNECTIONS = 20
BALANCER = 200
"""Third and fourth part of the address that the load balancer of the test has."""
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
    pytest.mark.needs_slurm("26.05", "the demo has the latest"),
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
    """S126, S129: by crictl in each node; the control plane has none."""
    addresses = {
        one["metadata"]["name"]: next(
            each["address"] for each in one["status"]["addresses"] if each["type"] == "InternalIP"
        )
        for one in json.loads(shown.kubectl("get", "nodes", "-o", "json"))["items"]
    }
    assert {one.name: one.address for one in shown.target.node.nodes()} == addresses
    found = {name: _containers(name).keys() for name in addresses}
    assert not found[CONTROL_PLANE]
    expected: dict[str, set[tuple[str, str]]] = {name: set() for name in addresses}
    for name, pod in shown.pods().items():
        statuses = pod["status"]
        every = (*statuses.get("initContainerStatuses", ()), *statuses["containerStatuses"])
        expected[pod["spec"]["nodeName"]] |= {
            (name, one["name"]) for one in every if "running" in one["state"]
        }
    assert {name: found[name] & expected[name] for name in found} == expected
    assert ("controller-0", "slurmctld") in set.union(*map(set, found.values()))


def test_crictl_shows_logs_and_details_of_a_container_and_opens_a_shell(shown: Demo) -> None:
    """S129, S131, S132: the log is that of kubectl, and `scontrol ping` answers at the prompt."""
    where = shown.places()["controller-0"]
    one = _containers(where)["controller-0", "slurmctld"]
    image = shown.pods()["controller-0"]["spec"]["containers"][0]["image"]
    assert image.rpartition(":")[0] in _crictl(where, "images")
    details = json.loads(_crictl(where, "inspect", one))["status"]
    assert (details["metadata"]["name"], details["state"]) == ("slurmctld", "CONTAINER_RUNNING")
    lines = _crictl(where, "logs", one).splitlines()
    # Without -c it is the log of the main container.
    said = shown.kubectl("logs", "controller-0").splitlines()
    assert len(lines) > 1
    assert lines == said[: len(lines)]
    kubectl = shown.target.command("exec", "-it", "-n", demo.NAMESPACE, "controller-0")
    for shell in (
        [*kubectl, "-c", "slurmctld", "--", "/bin/bash"],
        [*CLI, where, "crictl", "exec", "-it", one, "/bin/bash"],
    ):
        prompt = _at_a_terminal(shown, shell, "scontrol ping")
        assert "Slurmctld(primary) at controller-0 is UP" in prompt, prompt


def test_usage_of_nodes_and_pods_is_shown_beside_the_clusters_state(shown: Demo) -> None:
    """S127, S135: `kubectl top`, columns, conditions, logs and events."""

    def usage(of: str, *options: str) -> dict[str, list[str]]:
        rows = shown.kubectl("top", of, "--no-headers", *options).splitlines()
        return {name: rest for name, *rest in map(str.split, rows)}

    pods = {"controller-0", "login-0", "worker-0", "worker-1"}
    eventually("pods have figures", lambda: pods <= usage("pods").keys(), 90)
    nodes = usage("nodes")
    assert nodes.keys() == {one.name for one in shown.target.node.nodes()}
    figures = [*usage("pods").values(), *((cpu, memory) for cpu, _, memory, _ in nodes.values())]
    for cpu, memory in figures:
        assert (cpu[-1], memory[-2:]) == ("m", "Mi")
    head, row = shown.kubectl("get", "slurmclusters", "-A").splitlines()
    assert head.split()[2:8] == [
        *("STATUS", "CONTROLLERS", "WORKERS", "LOGIN", "SCONFIGCTRL", "ACCOUNTING")
    ]
    assert row.split()[:7] == [demo.NAMESPACE, demo.NAME, "Available", "True", "2", "1", "True"]
    described = shown.kubectl("describe", "slurmcluster", demo.NAME)
    for condition in ("JailPopulated", "ControllersAvailable", "LoginAvailable", "ConfigApplied"):
        assert condition in described
    logs = ("logs", "-l", "app.kubernetes.io/component=controller")
    assert shown.kubectl(*logs).strip()
    assert "slurmctld version" in shown.kubectl(*logs, "--tail=-1")
    command = ("exec", "login-0", "--", "scontrol", "show", "nodes")
    workers = shown.kubectl(*command).split("NodeName=")[1:]
    assert {one.split()[0] for one in workers} == {"worker-0", "worker-1"}
    for words in ("State=IDLE", "NodeAddr=", "RealMemory="):
        assert all(words in one for one in workers), workers
    times = ("get", "events", "--sort-by=.metadata.creationTimestamp", "-o", "json")
    found = json.loads(shown.kubectl(*times))["items"]
    created = [one["metadata"]["creationTimestamp"] for one in found]
    assert created == sorted(created)
    assert any("worker-0" in one["message"] for one in found)


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


def test_topology_follows_labels_of_kubernetes_nodes_and_no_pod_restarts(shown: Demo) -> None:
    """S173, D63."""
    prefix, places = "topology.nebius.com", shown.places()
    workers = ("worker-0", "worker-1", "worker-2")
    before = {name: one["metadata"]["uid"] for name, one in shown.pods().items()}

    def label(worker: str, *tiers: str) -> None:
        words = [f"{prefix}/{one}" for one in tiers]
        shown.kubectl("label", "--overwrite", "node", places[worker], *words)

    def switches() -> dict[str, str]:
        text = shown.kubectl("exec", "login-0", "--", "scontrol", "show", "topology")
        found = (dict(one.split("=", 1) for one in line.split()) for line in text.splitlines())
        return {one["SwitchName"]: one["Nodes"] for one in found if "SwitchName" in one}

    def are(wanted: dict[str, str]) -> bool:
        found = switches()
        if found != wanted:
            # What `eventually` shows at the end.
            raise LookupError(f"the switches are {found}")
        return True

    def written() -> int:
        name = "topology-config"
        found = json.loads(shown.kubectl("get", "configmap", name, "-o", "json"))
        return int(found["metadata"]["resourceVersion"])

    label("worker-0", "tier-1=leaf1", "tier-2=spine")
    label("worker-1", "tier-1=leaf1", "tier-2=spine")
    wanted = {
        "root": "worker-[0-2]",
        "spine": "worker-[0-1]",
        "leaf1": "worker-[0-1]",
        "unknown": "worker-2",
    }
    eventually("the switches are those of the labels", lambda: are(wanted), 120)
    with login(shown.target, ssh_key(), demo.NAMESPACE, demo.LOGIN, demo.USER) as ssh:
        hosts = ssh("srun -N2 --switches=1 hostname").split()
        assert sorted(hosts) == ["worker-0", "worker-1"]
        assert ssh("srun -w worker-2 hostname").strip() == "worker-2"
        job = ssh("sbatch --parsable -w worker-2 --wrap 'sleep 600'").strip()
        last = written()
        label("worker-1", "tier-1=leaf2")
        label("worker-2", "tier-1=leaf2", "tier-2=spine")
        wanted = {
            "root": "worker-[0-2]",
            "spine": "worker-[0-2]",
            "leaf1": "worker-0",
            "leaf2": "worker-[1-2]",
        }
        eventually("they follow", lambda: are(wanted), 120)
        assert written() > last
        assert ssh(f"squeue -h -j {job} -o %T").strip() == "RUNNING"
        ssh(f"scancel {job}")
        for worker in workers:
            label(worker, "tier-1-", "tier-2-")
        wanted = {"root": "worker-[0-2]", "unknown": "worker-[0-2]"}
        eventually("all are without labels", lambda: are(wanted), 120)
        assert len(ssh("srun -N3 hostname").split()) == 3
    assert {name: one["metadata"]["uid"] for name, one in shown.pods().items()} == before
    drained = shown.kubectl("exec", "login-0", "--", "sinfo", "-h", "-R")
    assert not drained.strip(), drained


ACROSS = """
cd && srun -N3 sh -c 'until [ -e changed ]; do sleep 0.2; done; hostname'
srun -N3 hostname
"""


def test_a_changed_munge_key_reaches_the_pods_of_all_nodes_and_no_job_is_lost(
    shown: Demo, figure: Callable[[str], None]
) -> None:
    """S163: the kubelet of each Kubernetes node brings it in its own time."""
    workers = ("worker-0", "worker-1", "worker-2")
    places = shown.places()
    assert len({places[one] for one in workers}) > 1
    before = _restarts(shown)
    key = secrets.token_bytes(1024)

    def is_everywhere() -> bool:
        logs = (
            shown.kubectl("logs", pod, "-c", "munge", "--tail=200")
            for pod in ("controller-0", "login-0", *workers)
        )
        return all(named(key) in one for one in logs)

    def in_use() -> str:
        found = json.loads(shown.kubectl("get", "slurmcluster", demo.NAME, "-o", "json"))
        conditions: list[Json] = found["status"]["conditions"]
        return next((one["status"] for one in conditions if one["type"] == "KeysInUse"), "")

    with login(shown.target, ssh_key(), demo.NAMESPACE, demo.LOGIN, demo.USER) as ssh:
        ssh("rm -f changed; cat >across.sh", f"#!/bin/sh{ACROSS}")
        job = ssh("sbatch --parsable -N3 --no-requeue -o across across.sh").strip()

        def state() -> str:
            (found,) = json.loads(ssh(f"scontrol show job {job} --json"))["jobs"]
            return f"{found['job_state'][0]} {found['restart_cnt']}"

        eventually("it runs", lambda: state() == "RUNNING 0")
        data = {"munge.key": base64.b64encode(key).decode()}
        secret = ("patch", "secret", f"{demo.NAME}-munge", "--type=merge", "-p")
        shown.kubectl(*secret, json.dumps({"data": data}))
        began = time.monotonic()
        eventually("munged of all pods has the key", is_everywhere, 180, every=1)
        figure(f"munge key of pods on several nodes changed: {time.monotonic() - began:.1f} s")
        eventually("it is in use", lambda: in_use() == "True", 180)
        eventually("commands are answered", lambda: bool(ssh("sinfo -h")))
        ssh("touch changed")
        eventually("the job ends", lambda: state() == "COMPLETED 0", 120)
        assert Counter(ssh("cat across").split()) == Counter(2 * workers)
    assert _restarts(shown) == before


def _restarts(shown: Demo) -> dict[str, int]:
    """By uid how often the containers of a pod were started again."""
    return {one["metadata"]["uid"]: restarts(one) for one in shown.pods().values()}


def test_a_kubernetes_node_lists_its_pods_with_their_requests(shown: Demo) -> None:
    """S127."""
    name = shown.places()["worker-2"]
    assert name in shown.kubectl("get", "nodes", "-o", "wide")
    listed = shown.kubectl("get", "pods", "-o", "name", f"--field-selector=spec.nodeName={name}")
    here = {pod for pod, place in shown.places().items() if place == name}
    assert {one.removeprefix("pod/") for one in listed.split()} == here
    described = shown.kubectl("describe", "node", name).splitlines()
    (line,) = (one.split() for one in described if " worker-2 " in one)
    # slurmd's, which the test before declares, and those of munge.
    assert line[2] == "120m"
    assert "576Mi" in line
    requests = {
        one["name"]: one.get("resources", {}).get("requests")
        for pod in shown.pods().values()
        for one in (*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"])
    }
    declared = ("slurmctld", "slurmd", "sshd", "sconfigctrl", "munge")
    assert all(requests[name] for name in declared), requests


def test_other_pods_take_the_room_of_workers_until_they_are_back(shown: Demo) -> None:
    """S125: none is left and the queue waits; nothing has to be set up for their return."""
    worker = shown.pods()["worker-2"]
    room = json.loads(shown.kubectl("get", "node", WORKERS[2], "-o", "json"))
    free = _millicores(room["status"]["allocatable"]["cpu"]) - 50
    other: Json = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "other"}}
    container: Json = {"name": "main", "image": worker["spec"]["containers"][0]["image"]}
    container |= {"command": ["sleep", "infinity"]}
    container |= {"resources": {"requests": {"cpu": f"{free}m"}}}
    other["spec"] = {
        "nodeSelector": {"kubernetes.io/hostname": WORKERS[2]},
        "terminationGracePeriodSeconds": 0,
        "containers": [container],
    }
    shown.kubectl("apply", "-f", "-", stdin=json.dumps(other))

    def no_room(pod: str) -> bool:
        return _unschedulable(shown, pod, "Insufficient cpu")

    eventually("it has no room", lambda: no_room("other"))
    shown.worker(size=0)
    eventually("it runs", lambda: ready(shown.pods()["other"]), 90)
    eventually("no worker is left", lambda: "worker-0" not in shown.pods(), 60)
    with login(shown.target, ssh_key(), demo.NAMESPACE, demo.LOGIN, demo.USER) as ssh:
        job = ssh("sbatch --parsable --wrap hostname").strip()
        assert ssh(f"squeue -h -j {job} -o %T").strip() == "PENDING"
        shown.worker(size=3)
        eventually("one has no room", lambda: any(map(no_room, shown.pods())))
        state = f"scontrol show job {job}"
        eventually("the job has run", lambda: "JobState=COMPLETED" in ssh(state), 120)
    shown.kubectl("delete", "pod", "other")
    shown.until_idle("worker-0", "worker-1", "worker-2")


def _millicores(cpu: str) -> int:
    return int(cpu[:-1]) if cpu.endswith("m") else 1000 * int(cpu)


def _unschedulable(shown: Demo, pod: str, words: str) -> bool:
    """Whether the scheduler reports these words of a pod that waits."""
    conditions = shown.pods().get(pod, {}).get("status", {}).get("conditions", ())
    return any(
        one["type"] == "PodScheduled" and one["status"] == "False" and words in one["message"]
        for one in conditions
    )


def test_a_lost_kubernetes_node_requeues_its_job_once_and_brings_its_worker_back(
    shown: Demo, figure: Callable[[str], None]
) -> None:
    """S123: the others go on, and the operator removes nothing meanwhile."""
    spec = json.loads(shown.kubectl("get", "slurmcluster", demo.NAME, "-o", "json"))["spec"]
    custom = spec["customSlurmConfig"]
    shown.patch({"customSlurmConfig": f"{custom}SlurmdTimeout=15\n"})
    config = ("exec", "controller-0", "-c", "slurmctld", "--", "scontrol", "show", "config")
    eventually("it is active", lambda: "SlurmdTimeout           = 15 sec" in shown.kubectl(*config))
    uids = {name: one["metadata"]["uid"] for name, one in shown.pods().items()}
    # The last node has nothing but a worker.
    workers = {place: name for name, place in shown.places().items() if "worker" in name}
    worker, another = workers.pop(WORKERS[2]), workers[WORKERS[0]]
    with login(shown.target, ssh_key(), demo.NAMESPACE, demo.LOGIN, demo.USER) as ssh:
        submit = "sbatch --parsable -o /dev/null --wrap 'sleep 1000' -w"
        lost, other = (ssh(f"{submit} {node}").strip() for node in (worker, another))

        def job(number: str) -> str:
            (found,) = json.loads(ssh(f"scontrol show job {number} --json"))["jobs"]
            return f"{found['job_state'][0]} {found['restart_cnt']}"

        eventually("both run", lambda: {job(lost), job(other)} == {"RUNNING 0"})
        shown.target.node.stop(WORKERS[2])
        began = time.monotonic()
        eventually("its job is requeued", lambda: job(lost) == "PENDING 1", 180)
        figure(f"the job of a lost node is requeued after {time.monotonic() - began:.0f} s")
        eventually("Kubernetes has noticed", lambda: not ready(shown.pods()[worker]), 90)
        figure(f"Kubernetes reports the lost node after {time.monotonic() - began:.0f} s")
        assert job(other) == "RUNNING 0"
        shown.target.node.start(WORKERS[2])
        eventually("its pod is ready", lambda: ready(shown.pods()[worker]), 120)
        assert job(lost).endswith(" 1")
        assert job(other) == "RUNNING 0"
        ssh(f"scancel {lost} {other}")
    shown.patch({"customSlurmConfig": custom})
    shown.until_idle("worker-0", "worker-1", "worker-2")
    assert {name: one["metadata"]["uid"] for name, one in shown.pods().items()} == uids


@dataclass
class Session:
    """A connection to a login that stays."""

    process: subprocess.Popen[str]
    host: str

    def answers(self, text: str) -> bool:
        """Whether it sends a line back."""
        if self.process.poll() is not None or not self.process.stdin or not self.process.stdout:
            return False
        self.process.stdin.write(f"{text}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip() == text

    def close(self) -> None:
        """End it."""
        with self.process as process:
            process.kill()


@dataclass
class Logins:
    """Connections to one address, whose host key must always be the one seen first."""

    address: str
    port: int
    known: Path
    sessions: list[Session] = field(default_factory=list["Session"])
    """All that were opened."""

    def open(self) -> Session:
        """A connection, once the login has printed its name. Raises LookupError without one."""
        policy = "yes" if self.known.exists() else "accept-new"
        options = (
            *("BatchMode=yes", "HostKeyAlias=logins", "ConnectTimeout=10"),
            *(f"UserKnownHostsFile={self.known}", f"StrictHostKeyChecking={policy}"),
        )
        process = subprocess.Popen(
            [
                *("ssh", "-i", str(ssh_key()), *(word for one in options for word in ("-o", one))),
                *("-p", str(self.port), f"{demo.USER}@{self.address}", "hostname; exec cat"),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        host = process.stdout.readline().strip() if process.stdout else ""
        found = Session(process, host)
        self.sessions.append(found)
        if not host:
            raise LookupError(f"ssh ended with status {process.wait()}")
        return found


def test_two_logins_share_connections_and_lost_ones_reopen_at_once(
    shown: Demo, tmp_path: Path, figure: Callable[[str], None]
) -> None:
    """S093: by the port of the node, then by a load balancer that the test stands for."""
    shown.patch({"slurmNodes": {"login": {"size": 2}}})
    eventually("both logins are ready", lambda: ready(shown.pods().get("login-1", {})), 90)
    logins = Logins(shown.target.node.address, demo.NODE_PORT, tmp_path / "known_hosts")
    network = shown.target.node.address.rpartition(".255.")[0]
    balancer = Logins(f"{network}.{BALANCER}.{BALANCER}", 22, logins.known)
    try:
        # kube-proxy learns of the second login a moment later.
        eventually("the second login answers", lambda: logins.open().host == "login-1", 60, 0)
        sessions = [logins.open() for _ in range(CONNECTIONS)]
        shares = Counter(one.host for one in sessions)
        assert shares.keys() == {"login-0", "login-1"}
        figure(f"{CONNECTIONS} connections: {dict(shares)}")
        lost = [one for one in sessions if one.host == "login-1"]
        shown.kubectl("delete", "pod", "login-1", "--wait=false")
        for one in lost:
            one.process.wait(60)
        began = time.monotonic()
        again = [eventually("it opens again", logins.open, 10, 0) for _ in lost]
        figure(f"{len(lost)} lost connections are open again in {time.monotonic() - began:.1f} s")
        assert all(one.answers("mine") for one in sessions if one not in lost)
        assert len(again) == len(lost)
        eventually("the login is back", lambda: ready(shown.pods().get("login-1", {})), 90)
        shown.patch({"slurmNodes": {"login": {"sshdServiceType": "LoadBalancer"}}})
        of_service = ("service", demo.LOGIN, "-o", "jsonpath={.spec.type}")
        eventually("it is asked for", lambda: shown.kubectl("get", *of_service) == "LoadBalancer")
        status = {"loadBalancer": {"ingress": [{"ip": balancer.address}]}}
        body = json.dumps({"status": status})
        shown.kubectl(
            *("patch", "service", demo.LOGIN, "--subresource=status", "--type=merge", "-p", body)
        )
        eventually("it answers", balancer.open, 30, 0)
        hosts = {balancer.open().host for _ in range(CONNECTIONS)}
        assert hosts == {"login-0", "login-1"}
    finally:
        for one in (*logins.sessions, *balancer.sessions):
            one.close()
        shown.patch({"slurmNodes": {"login": {"size": 1, "sshdServiceType": "NodePort"}}})
    eventually("one login is left", lambda: "login-1" not in shown.pods(), 60)


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


def _crictl(name: str, *words: str) -> str:
    """Output of crictl in a Kubernetes node."""
    command = [*CLI, name, "crictl", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr if words[0] == "logs" else done.stdout


def _containers(name: str) -> dict[tuple[str, str], str]:
    """Ids of the cluster's containers that run on a node, by pod and name."""
    found = json.loads(_crictl(name, "ps", "-o", "json"))["containers"]
    return {
        (one["labels"]["io.kubernetes.pod.name"], one["metadata"]["name"]): one["id"]
        for one in found
        if one["labels"]["io.kubernetes.pod.namespace"] == demo.NAMESPACE
    }


def _at_a_terminal(shown: Demo, command: list[str], *lines: str) -> str:
    """What a shell prints at a terminal when somebody types these lines, and exit."""
    typed = "".join(f"{line}\n" for line in (*lines, "exit"))
    done = subprocess.run(
        ["script", "-qec", shlex.join(command), "/dev/null"],
        input=typed,
        env={**os.environ, **shown.target.env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout
