"""topology.conf of a SlurmCluster in simulated time: bursts, rejected labels, a user's file."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fault_plans import worker_sets
from fault_plans.api_names import CLUSTER
from fault_plans.kinds import path_of
from penstock.api.kubernetes.conditions import Finding
from penstock.api.nebius import names
from penstock.controllers.nebius.exporter import ClusterExporter
from penstock.decide.topology.burst import MOST_S, QUIET_S
from penstock.simulation.apiserver import Change
from unit.controllers.nebius.lab import CORE, CURRENT, OLDER, SHAPES, SPACE, Lab, played

CONFIGS = names.slurm_configs(CLUSTER)
OWN = {OLDER: "topology-config", CURRENT: f"{CLUSTER}-topology-config"}


def label(lab: Lab, node: str, **tiers: str | None) -> None:
    labels = {f"topology.nebius.com/{key.replace('_', '-')}": tiers[key] for key in tiers}
    lab.world.ask("PATCH", f"/api/v1/nodes/{node}", {"metadata": {"labels": labels}})


def host(lab: Lab, pod: str) -> str:
    found: str = lab.get("/pods", pod)["spec"]["nodeName"]
    return found


def file(lab: Lab, name: str = CONFIGS) -> str:
    found = lab.find("/configmaps", name) or {"data": {}}
    text: str = found["data"].get("topology.conf", "")
    return text


def lines(lab: Lab) -> list[str]:
    return [one for one in file(lab).splitlines() if not one.startswith("#")]


async def apart(lab: Lab, shape: str) -> None:
    """Have the first two workers on two Kubernetes nodes. The cluster has one worker before."""
    await lab.available()
    first, second = workers(shape, 2)
    taken = host(lab, first)
    lab.world.machines.silent.add(taken)
    lab.world.scale(2)
    await lab.until(
        lambda: lab.find("/pods", second) and "nodeName" in lab.get("/pods", second)["spec"]
    )
    lab.world.machines.silent.discard(taken)


async def settled(lab: Lab) -> None:
    """Wait until the cluster works and nothing of its files is on the way."""
    await lab.available()
    await lab.settled(MOST_S)


@pytest.mark.parametrize("shape", SHAPES)
def test_without_labels_there_is_no_file_and_no_plug_in(shape: str) -> None:
    """S173."""

    async def play(lab: Lab) -> None:
        await settled(lab)
        assert file(lab) == ""
        assert lab.find("/configmaps", OWN[shape]) is None
        data = lab.get("/configmaps", CONFIGS)["data"]
        assert not any("TopologyPlugin=" in text for text in data.values())

    played(play, shape)


def written(lab: Lab) -> list[str]:
    """Each topology.conf in force from now on."""
    found: list[str] = []

    def changed(change: Change) -> None:
        if change.new is not None and change.key[1] == CONFIGS:
            text = change.new.obj["data"].get("topology.conf", "")
            if text != (found[-1] if found else before):
                found.append(text)

    before = file(lab)
    lab.world.server.store.listeners.append(changed)
    return found


def workers(shape: str, count: int) -> list[str]:
    return [f"{'worker' if shape == OLDER else 'compute'}-{n}" for n in range(count)]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_burst_of_labels_is_one_write_and_restarts_no_pod(shape: str) -> None:
    """S173, D63."""
    first, second = workers(shape, 2)

    async def play(lab: Lab) -> None:
        await apart(lab, shape)
        await settled(lab)
        uids = {name: lab.get("/pods", name)["metadata"]["uid"] for name in lab.pods()}
        files = written(lab)
        for name in (first, second):
            label(lab, host(lab, name), tier_1="leaf", tier_2="spine")
            await lab.settled(QUIET_S / 2)
        await lab.until(lambda: files, 60)
        assert lines(lab) == [
            f"SwitchName=leaf Nodes={first},{second}",
            "SwitchName=root Switches=spine",
            "SwitchName=spine Switches=leaf",
        ]
        data = lab.get("/configmaps", CONFIGS)["data"]
        assert any("TopologyPlugin=topology/tree\n" in text for text in data.values())
        await lab.settled(MOST_S)
        assert len(files) == 1
        assert file(lab, OWN[shape]) == file(lab)

        # One label of several, and one that goes.
        label(lab, host(lab, second), tier_2="other", tier_1="leaf2")
        label(lab, host(lab, first), tier_1=None, tier_2=None)
        await lab.until(lambda: len(files) > 1, 60)
        assert lines(lab) == [
            f"SwitchName=leaf2 Nodes={second}",
            "SwitchName=other Switches=leaf2",
            "SwitchName=root Switches=other,unknown",
            f"SwitchName=unknown Nodes={first}",
        ]
        await lab.settled(MOST_S)
        assert len(files) == 2
        assert {name: lab.get("/pods", name)["metadata"]["uid"] for name in lab.pods()} == uids

    played(play, shape, replicas=1)


def test_a_burst_that_comes_due_while_a_reconcile_is_on_its_way_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """S173: with a busy operator, nothing else may happen for hours."""
    takes = 0.0
    unpatched = ClusterExporter.reconcile

    async def slow(*given: Any, **named: Any) -> list[Finding]:
        await asyncio.sleep(takes)
        return await unpatched(*given, **named)

    monkeypatch.setattr(ClusterExporter, "reconcile", slow)
    first, second = workers(OLDER, 2)

    async def play(lab: Lab) -> None:
        nonlocal takes
        await apart(lab, OLDER)
        await settled(lab)
        takes = 1.0
        label(lab, host(lab, first), tier_1="leaf")
        await asyncio.sleep(0.5)
        label(lab, host(lab, second), tier_1="leaf")
        await lab.until(lambda: f"SwitchName=leaf Nodes={first},{second}" in lines(lab), 60)

    played(play, OLDER, replicas=1)


def test_workers_that_register_later_are_read_by_a_reconfigure() -> None:
    """S173: slurmctld has no place for a new worker until it reads the file again."""

    async def play(lab: Lab) -> None:
        await settled(lab)
        label(lab, host(lab, "compute-0"), tier_1="leaf")
        await lab.until(lambda: file(lab), 60)
        await lab.settled(MOST_S)
        files = written(lab)
        scale = {"spec": {"replicas": 3}}
        lab.world.ask("PATCH", path_of(SPACE, worker_sets.OF_NEBIUS, "compute"), scale)
        await lab.until(lambda: "compute-2" in lab.pods(), 60)
        # It registers some time after its pod runs.
        await lab.until(lambda: "compute-2" in file(lab), 2 * MOST_S)
        assert "registered: 3," in files[-1]

    played(play, CURRENT)


def test_labels_that_contradict_others_are_reported_until_they_are_corrected() -> None:
    """S173."""

    async def play(lab: Lab) -> None:
        await apart(lab, CURRENT)
        await settled(lab)
        label(lab, host(lab, "compute-0"), tier_1="leaf", tier_2="leaf")
        label(lab, host(lab, "compute-1"), tier_1="leaf")
        await lab.until(lambda: file(lab), 60)
        assert lines(lab)[-1] == "SwitchName=unknown Nodes=compute-0"
        await lab.until(lambda: "switch leaf is above itself" in lab.condition()[2])
        label(lab, host(lab, "compute-0"), tier_2=None)
        await lab.until(lambda: "unknown" not in file(lab), 60)
        await lab.until(lambda: "above itself" not in lab.condition()[2])

    played(play, CURRENT, replicas=1)


def test_a_users_file_is_used_and_a_missing_one_is_reported() -> None:
    """The field `slurmTopologyConfigMapRefName`, up to version 1.21."""

    def declare(lab: Lab) -> None:
        lab.world.declare(1)
        body = {"spec": {"slurmTopologyConfigMapRefName": "mine"}}
        lab.world.ask("PATCH", path_of(SPACE, worker_sets.OF_CLUSTER, CLUSTER), body)

    async def play(lab: Lab) -> None:
        await lab.until(lambda: "ConfigMap mine has no key" in lab.condition()[2])
        text = "SwitchName=s0 Nodes=compute-0\n"
        lab.make(f"{CORE}/configmaps", "ConfigMap", "mine", data={"topology.conf": text})
        await lab.until(lambda: file(lab) == text, 60)
        await lab.until(lambda: "ConfigMap mine" not in lab.condition()[2])

    played(play, CURRENT, replicas=-1, before=declare)
