"""SlurmClusters with jailMode None: no Job, no sconfigcontroller, the same configuration."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from fault_plans import nebius_specs as specs
from fault_plans import worker_sets
from fault_plans.api_names import CLUSTER
from fault_plans.kinds import path_of
from penstock.api.kubernetes.meta import Json
from penstock.api.nebius import names
from unit.controllers.nebius.lab import CURRENT, NODESETS, OLDER, SPACE, Lab, played

OF_CLUSTER = path_of(SPACE, worker_sets.OF_CLUSTER)
OF_NODESET = path_of(SPACE, worker_sets.OF_NEBIUS)
JAILED = f"/apis/slurm.nebius.ai/v1alpha1/namespaces/{SPACE}/jailedconfigs"
LABELS = {"app.kubernetes.io/instance": CLUSTER}
PREFIXES = {OLDER: "", CURRENT: f"{CLUSTER}-"}


def slurm_cluster(shape: str, replicas: int) -> Json:
    spec = specs.slurm_cluster(shape, replicas)
    del spec["populateJail"], spec["sConfigController"]
    spec["volumeSources"] = spec["volumeSources"][1:]
    for node in spec["slurmNodes"].values():
        node.get("volumes", {}).pop("jail", None)
    return {**spec, "jailMode": "None"}


def node_set(replicas: int, volumes: Json | None = None) -> Json:
    spec = specs.node_set(replicas)
    return {**spec, "slurmd": {**spec["slurmd"], "volumes": {"spool": {}, **(volumes or {})}}}


def run(
    play: Callable[[Lab], Awaitable[None]],
    shape: str,
    *,
    volumes: Json | None = None,
) -> None:
    """Play a story with one worker."""

    def before(lab: Lab) -> None:
        lab.world.machines.mounts.jails.clear()
        lab.world.prepare(SPACE)
        lab.make(OF_CLUSTER, "SlurmCluster", CLUSTER, spec=slurm_cluster(shape, 1))
        if shape == CURRENT:
            lab.make(OF_NODESET, "NodeSet", "compute", spec=node_set(1, volumes))

    played(play, shape, replicas=-1, before=before)


@pytest.mark.parametrize("shape", [OLDER, CURRENT])
def test_it_is_available_without_a_job_and_a_writer(shape: str) -> None:
    """S177."""

    async def play(lab: Lab) -> None:
        await lab.until(lambda: lab.phase() == "Available")
        worker = "worker-0" if shape == OLDER else "compute-0"
        await lab.until(lambda: {worker, f"{PREFIXES[shape]}login-0"} <= set(lab.pods()))
        made = {one for one in lab.made if "populate-jail" in one or "sconfigcontroller" in one}
        assert made == set()
        assert not [one for one in lab.made if one.startswith("jailedconfigs/")]
        assert lab.condition("JailPopulated")[:2] == ("True", "NoJail")
        status, reason, message = lab.condition("SConfigControllerAvailable")
        assert (status, reason) == ("False", "NoJail")
        assert names.slurm_configs(CLUSTER) in message
        await asyncio.sleep(60)
        assert await lab.settled() == []

    run(play, shape)


@pytest.mark.parametrize("shape", [OLDER, CURRENT])
def test_a_good_configuration_is_active_and_a_bad_one_never_in_force(shape: str) -> None:
    """S177."""

    def conf(lab: Lab) -> str:
        found = lab.get("/configmaps", names.slurm_configs(CLUSTER))
        return "".join(found["data"].values())

    def change(lab: Lab, text: str) -> None:
        lab.world.ask("PATCH", f"{OF_CLUSTER}/{CLUSTER}", {"spec": {"customSlurmConfig": text}})

    async def play(lab: Lab) -> None:
        await lab.until(lambda: lab.phase() == "Available")
        change(lab, "KillWait=44\n")
        await lab.until(lambda: "KillWait=44" in conf(lab))
        await lab.until(lambda: lab.condition("ConfigApplied")[0] == "True")
        change(lab, "BogusKey=1\n")
        await lab.until(lambda: "BogusKey" in lab.condition("ConfigValid")[2])
        assert "BogusKey" not in conf(lab)
        change(lab, "KillWait=45\n")
        await lab.until(lambda: "KillWait=45" in conf(lab))
        await lab.until(lambda: lab.condition("ConfigApplied")[0] == "True")

    run(play, shape)


def test_jailed_configs_are_named_until_they_are_gone() -> None:
    async def play(lab: Lab) -> None:
        # The phase does not wait for slurmrestd.
        await lab.until(lambda: lab.condition()[0] == "True")
        assert lab.condition("JailedConfigsDelivered") == ("", "", "")
        for name, labels in (("motd", LABELS), ("other", {})):
            body: Json = {
                "kind": "JailedConfig",
                "metadata": {"name": name, "labels": labels},
                "spec": {"configMap": {"name": name}, "items": []},
            }
            lab.world.ask("POST", JAILED, body)
        await lab.until(lambda: lab.condition("JailedConfigsDelivered")[0] == "False")
        message = lab.condition("JailedConfigsDelivered")[2]
        assert "motd" in message
        assert "other" not in message
        assert lab.condition()[0] == "True"
        lab.world.ask("DELETE", f"{JAILED}/motd", {})
        await lab.until(lambda: lab.condition("JailedConfigsDelivered") == ("", "", ""))

    run(play, CURRENT)


def test_workers_with_a_volume_of_a_jail_are_not_created_and_the_field_is_named() -> None:
    jail = {"persistentVolumeClaim": {"claimName": specs.JAIL}}

    async def play(lab: Lab) -> None:
        await lab.until(lambda: lab.condition("Ready", NODESETS, "compute")[1])
        await asyncio.sleep(30)
        assert lab.pods("compute-") == []
        status, _, message = lab.condition("Ready", NODESETS, "compute")
        assert status == "False"
        assert "spec.slurmd.volumes.jail" in message
        lab.world.ask("PATCH", f"{OF_NODESET}/compute", {"spec": node_set(1, {"jail": None})})
        await lab.until(lambda: lab.pods("compute-") == ["compute-0"])

    run(play, CURRENT, volumes={"jail": jail})
