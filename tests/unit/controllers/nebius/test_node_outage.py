"""Outages of Kubernetes nodes by the whole operator, on simulated nodes and Slurm."""

from __future__ import annotations

import asyncio
import json

import pytest

from fault_plans import worker_sets
from fault_plans.kinds import path_of
from fault_plans.world import NODESET
from penstock.api.kubernetes.meta import Json
from penstock.api.nebius.labels import CONFIGURATOR, configurator_selector
from penstock.model import node_mark
from penstock.simulation.event_loop import simulate
from penstock.simulation.slurm.slurmctld import SimulatedJob
from unit.controllers.nebius.lab import CURRENT, SHAPES, SPACE, Lab, played

NODES = "/nodes"
REBOOT = "SlurmNodeReboot"
DRAIN = "SlurmNodeDrain"


def node(lab: Lab, name: str) -> Json:
    found = lab.world.server.find(NODES, "", name)
    assert found is not None
    return found


def status(lab: Lab, name: str, body: Json) -> None:
    """What a kubelet or a health checker writes."""
    request = f"/api/v1/nodes/{name}/status"
    lab.world.server.ask("PATCH", request, {"status": body}, user="kubelet", kind="strategic")


def condition(lab: Lab, name: str, type_: str = REBOOT) -> tuple[str, str]:
    for one in node(lab, name)["status"]["conditions"]:
        if one["type"] == type_:
            return one["status"], one.get("reason", "")
    return "", ""


def ask(lab: Lab, name: str, type_: str = REBOOT, state: str = "True", at: str = "t1") -> None:
    """`kubectl patch node --subresource=status`."""
    one = {"type": type_, "status": state, "reason": "NodeNeedReboot", "lastTransitionTime": at}
    status(lab, name, {"conditions": [one]})


def boot(lab: Lab, name: str, boot_id: str) -> None:
    status(lab, name, {"nodeInfo": {"bootID": boot_id}})


def boot_of(lab: Lab, name: str) -> str:
    found: str = node(lab, name)["status"]["nodeInfo"]["bootID"]
    return found


def add_rebooter(lab: Lab, name: str) -> None:
    pod = {
        "metadata": {"name": f"rebooter-{name}", "labels": configurator_selector(CONFIGURATOR)},
        "spec": {"nodeName": name, "containers": [{"name": "rebooter", "image": "x"}]},
    }
    lab.world.ask("POST", f"/api/v1/namespaces/{SPACE}/pods", {"kind": "Pod", **pod})


def mark(lab: Lab, name: str) -> Json:
    text = node(lab, name)["metadata"].get("annotations", {}).get(node_mark.OUT_OF_SERVICE, "{}")
    found: Json = json.loads(text)
    return found


def is_cordoned(lab: Lab, name: str) -> bool:
    return bool(node(lab, name).get("spec", {}).get("unschedulable"))


def workers_on(lab: Lab, name: str) -> list[str]:
    return [
        pod["metadata"]["name"]
        for pod in lab.world.server.objects("/pods", SPACE)
        if pod["spec"].get("nodeName") == name
        and pod["metadata"]["labels"].get("app.kubernetes.io/component") in ("nodeset", "worker")
    ]


def host_of(lab: Lab, worker: str) -> str:
    """The Kubernetes node of a worker."""
    name: str = lab.get("/pods", worker)["spec"]["nodeName"]
    return name


def with_job(lab: Lab) -> tuple[SimulatedJob, str, str]:
    """A job, its worker and the Kubernetes node of that."""
    job = lab.world.slurm.submit(1)
    assert job is not None
    (worker,) = job.nodes
    return job, worker, host_of(lab, worker)


def reason(lab: Lab, worker: str) -> str:
    found = lab.world.slurm.ctld.nodes.get(worker)
    return found.reason if found is not None else ""


@pytest.mark.parametrize("shape", SHAPES)
def test_a_node_is_rebooted_once_its_job_has_ended_and_comes_back(shape: str):
    """S115."""

    async def play(lab: Lab) -> None:
        await lab.available()
        job, worker, name = with_job(lab)
        boot(lab, name, "b1")
        add_rebooter(lab, name)
        ask(lab, name)
        await lab.until(lambda: is_cordoned(lab, name))
        await lab.until(lambda: "[compute_maintenance] node reboot process" in reason(lab, worker))
        assert reason(lab, worker).startswith("soperator: ")
        await lab.settled(60)
        assert worker in workers_on(lab, name)
        assert mark(lab, name)["step"] == "drain"
        lab.world.slurm.finish(job)
        await lab.until(lambda: mark(lab, name).get("step") == "reboot")
        assert workers_on(lab, name) == []
        boot(lab, name, "b2")
        await lab.until(lambda: condition(lab, name) == ("False", "NodeRebooted"))
        await lab.until(lambda: not is_cordoned(lab, name))
        assert mark(lab, name) == {}
        await lab.available()
        await lab.until(lambda: not reason(lab, worker))

    played(play, shape)


def test_drains_and_cordons_of_users_stay():
    """S115."""

    async def play(lab: Lab) -> None:
        await lab.available()
        job, other = lab.world.slurm.free_nodes()
        name = host_of(lab, job.name)
        lab.world.slurm.drained_by_hand(job.name, "mine")
        lab.world.slurm.drained_by_hand(other.name, "mine too")
        lab.world.server.ask("PATCH", f"/api/v1/nodes/{name}", {"spec": {"unschedulable": True}})
        boot(lab, name, "b1")
        add_rebooter(lab, name)
        ask(lab, name)
        await lab.until(lambda: mark(lab, name).get("step") == "reboot")
        boot(lab, name, "b2")
        await lab.until(lambda: condition(lab, name) == ("False", "NodeRebooted"))
        await lab.until(lambda: mark(lab, name) == {})
        await lab.settled(60)
        assert is_cordoned(lab, name)
        assert reason(lab, other.name) == "mine too"
        assert reason(lab, job.name) == "mine"

    played(play, CURRENT)


def test_a_drain_without_a_reboot_ends_with_its_condition():
    async def play(lab: Lab) -> None:
        await lab.available()
        (worker, *_) = (one.name for one in lab.world.slurm.free_nodes())
        name = host_of(lab, worker)
        ask(lab, name, DRAIN)
        await lab.until(lambda: condition(lab, name, DRAIN) == ("True", "NodeDrained"))
        assert workers_on(lab, name) == []
        ask(lab, name, DRAIN, "False", "t2")
        await lab.until(lambda: not is_cordoned(lab, name))
        await lab.available()

    played(play, CURRENT)


def test_only_a_share_of_the_nodes_is_out_at_the_same_time():
    async def play(lab: Lab) -> None:
        await lab.available()
        names = [f"machine-{number}" for number in range(3)]
        for name in names:
            boot(lab, name, "b1")
            add_rebooter(lab, name)
        await lab.settled(10)
        for name in names:
            ask(lab, name)
        for _ in names:
            await lab.until(lambda: any(mark(lab, one).get("step") == "reboot" for one in names))
            out = [one for one in names if mark(lab, one)]
            assert len(out) == 1
            boot(lab, out[0], "b2")
            await lab.until(lambda one=out[0]: condition(lab, one)[0] == "False")
        await lab.until(lambda: not any(is_cordoned(lab, one) for one in names))

    played(play, CURRENT)


def test_an_operator_that_is_killed_after_any_write_reboots_no_node_twice():
    """S115."""

    async def play() -> None:
        lab = Lab(CURRENT)
        lab.world.declare(2)
        name, rebooted = "machine-0", 0
        boot(lab, name, "b1")
        add_rebooter(lab, name)
        for number in range(40):
            process = lab.world.operator()
            if not number:
                await lab.available()
                ask(lab, name)
            before = len(lab.world.writes)
            for _ in range(300):
                await asyncio.sleep(0.1)
                written = [what for _, what in lab.world.writes[before:]]
                if any("/nodes/" in what for what in written):
                    break
            await lab.world.crash(process)
            is_down = mark(lab, name).get("boot") == boot_of(lab, name)
            if mark(lab, name).get("step") == "reboot" and is_down:
                rebooted += 1
                assert workers_on(lab, name) == []
                boot(lab, name, f"b{rebooted + 1}")
        assert lab.world.promises.broken == []
        assert rebooted == 1
        assert condition(lab, name) == ("False", "NodeRebooted")
        assert not is_cordoned(lab, name)
        assert mark(lab, name) == {}

    simulate(play())


def test_a_worker_that_would_come_back_at_once_is_drained_and_not_deleted():
    async def play(lab: Lab) -> None:
        await lab.available()
        path = path_of(SPACE, worker_sets.OF_NEBIUS, NODESET)
        lab.world.ask("PATCH", path, {"spec": {"tolerations": [{"operator": "Exists"}]}})
        await lab.settled(120)
        await lab.available()
        worker = lab.world.slurm.free_nodes()[0].name
        name = host_of(lab, worker)
        boot(lab, name, "b1")
        add_rebooter(lab, name)
        ask(lab, name)
        await lab.until(lambda: reason(lab, worker))
        uid = lab.get("/pods", worker)["metadata"]["uid"]
        await lab.settled(120)
        assert lab.get("/pods", worker)["metadata"]["uid"] == uid
        assert mark(lab, name)["step"] == "drain"
        ask(lab, name, state="False", at="t2")
        await lab.until(lambda: not is_cordoned(lab, name))
        await lab.until(lambda: not reason(lab, worker))

    played(play, CURRENT)
