"""topology.conf of a SlurmCluster in simulated time: bursts, refused labels, a user's file."""

from __future__ import annotations

import pytest

from fault_plans.api_names import CLUSTER
from penstock.api.nebius import names
from penstock.decide.topology.burst import MOST_S, QUIET_S
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


@pytest.mark.parametrize("shape", SHAPES)
def test_a_burst_of_labels_is_one_write_and_restarts_no_pod(shape: str) -> None:
    """S173, D63."""
    workers = [f"{'worker' if shape == OLDER else 'compute'}-{n}" for n in range(2)]

    async def play(lab: Lab) -> None:
        await settled(lab)
        uids = {name: lab.get("/pods", name)["metadata"]["uid"] for name in lab.pods()}
        before = len(lab.world.writes)
        for name in workers:
            label(lab, host(lab, name), tier_1="leaf", tier_2="spine")
            await lab.settled(QUIET_S / 2)
        await lab.until(lambda: file(lab), 60)
        placed = sorted({name for name in workers})
        assert lines(lab) == [
            f"SwitchName=leaf Nodes={','.join(placed)}",
            "SwitchName=root Switches=spine",
            "SwitchName=spine Switches=leaf",
        ]
        await lab.settled(MOST_S)
        writes = [what for _, what in lab.world.writes[before:]]
        assert len([one for one in writes if f"/configmaps/{CONFIGS}" in one and "PATCH" in one
                    and not one.endswith("-candidate")]) >= 1
        assert file(lab, OWN[shape]) == file(lab)
        assert {name: lab.get("/pods", name)["metadata"]["uid"] for name in lab.pods()} == uids

    played(play, shape)
