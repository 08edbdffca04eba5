"""What is told of an outside slurmctld: S079, S080."""

from __future__ import annotations

import msgspec

from penstock.api.kubernetes.kinds import Pod
from penstock.api.kubernetes.meta import Json
from penstock.api.slinky.controller import Controller
from penstock.decide.auth import rejected_key
from penstock.decide.cluster import external as outside
from penstock.decide.cluster.connectivity import End
from penstock.slurm.known import Known, Unknown
from penstock.slurm.state import Node
from penstock.translate.slinky.cluster import cluster

CONTROLLER = msgspec.convert(
    {
        "metadata": {"name": "metal", "namespace": "slurm"},
        "spec": {"external": True, "externalConfig": {"host": "ctl.example.com"}},
    },
    Controller,
)
CLUSTER = cluster(CONTROLLER)
DENIED = "[2026-11-22T15:02:42.477] error: _fetch_child: failed to fetch remote configs: "
LOG = f"{DENIED}Protocol authentication error\nerror: failed to load configs. Retrying\n"


def worker(name: str, *, ready: bool, running: bool = True) -> Pod:
    state: Json = {"running": {}} if running else {"waiting": {"reason": "ContainerCreating"}}
    container = {"name": "slurmd", "ready": ready, "restartCount": 0, "state": state}
    said = {"type": "Ready", "status": "True" if ready else "False"}
    status = {"conditions": [said], "containerStatuses": [container], "podIP": "10.1.2.3"}
    return msgspec.convert({"metadata": {"name": name}, "spec": {}, "status": status}, Pod)


def test_a_slurmd_with_another_key_is_told_though_slurmctld_answers_tokens() -> None:
    found = rejected_key.find_rejection(worker("burst-0", ready=False), LOG)
    finding = outside.answers(CLUSTER, Known((), 0.0), End.OPEN, found)
    assert (finding.ok, finding.reason) == (False, "AuthenticationFailed")
    assert "ctl.example.com:6817" in finding.message
    assert "burst-0" in finding.message


def test_a_slurmd_that_has_started_since_is_believed() -> None:
    pod = worker("burst-0", ready=False)
    assert rejected_key.find_rejection(pod, LOG + "slurmd started on Sun, 22 Nov\n") is None
    silent = DENIED + "Unable to contact slurm controller (connect failure)\n"
    assert rejected_key.find_rejection(pod, LOG + silent) is None
    assert (
        rejected_key.find_rejection(pod, "waiting for slurmctld at ctl.example.com:6817\n") is None
    )


def test_only_a_worker_that_runs_and_is_not_ready_has_a_log_that_says_why() -> None:
    pods = [worker("a", ready=True), worker("b", ready=False, running=False)]
    assert rejected_key.starting(pods) is None
    assert rejected_key.starting([*pods, worker("c", ready=False)]) is not None


def test_an_answer_counts_more_than_a_way_that_seems_closed() -> None:
    finding = outside.answers(CLUSTER, Known((), 0.0), End.SILENT)
    assert finding.ok
    finding = outside.answers(CLUSTER, Unknown("error", denied=True), End.SILENT)
    assert finding.reason == "AuthenticationFailed"


def test_workers_that_slurmctld_does_not_reach_are_told_with_their_addresses() -> None:
    node = Node("burst-0", frozenset({"IDLE", "NOT_RESPONDING"}))
    nodes = Known({"burst-0": node}, 0.0)
    found = outside.unreached(CLUSTER, [worker("burst-0", ready=True)], nodes)
    assert [one.reason for one in found] == ["WorkersUnreachable"]
    assert "port 6818 of burst-0 (10.1.2.3)" in found[0].message
    assert outside.unreached(CLUSTER, [worker("burst-0", ready=False)], nodes) == []
    assert outside.unreached(CLUSTER, [worker("burst-0", ready=True)], Unknown("x")) == []


def test_a_worker_in_the_hosts_network_is_known_by_its_machines_name() -> None:
    """S069."""
    status = msgspec.to_builtins(worker("burst-0", ready=True).status)
    spec = {"nodeName": "machine", "hostNetwork": True}
    body = {"metadata": {"name": "burst-0"}, "spec": spec, "status": status}
    node = Node("machine", frozenset({"IDLE", "NOT_RESPONDING"}))
    nodes = Known({"machine": node}, 0.0)
    found = outside.unreached(CLUSTER, [msgspec.convert(body, Pod)], nodes)
    assert "machine (10.1.2.3)" in found[0].message
