"""S163: the key of a SlurmCluster by spec.authType, on simulated Kubernetes nodes."""

from __future__ import annotations

import asyncio
import base64

from fault_plans import nebius_specs as specs
from fault_plans import worker_sets
from fault_plans.api_names import CLUSTER
from fault_plans.kinds import path_of
from penstock.api.kubernetes.meta import Json
from unit.controllers.nebius.lab import CORE, CURRENT, SPACE, Lab, played

OF_CLUSTER = path_of(SPACE, worker_sets.OF_CLUSTER)
OF_NODESET = path_of(SPACE, worker_sets.OF_NEBIUS)
SECRETS = f"{CORE}/secrets"
KEY = f"{CLUSTER}-auth-slurm", "slurm.key"


def data(key: str, size: int) -> Json:
    return {key: base64.b64encode(b"k" * size).decode()}


def make(lab: Lab) -> None:
    lab.world.prepare(SPACE)
    spec = {**specs.slurm_cluster(CURRENT, 1), "authType": "auth/slurm"}
    lab.make(OF_CLUSTER, "SlurmCluster", CLUSTER, spec=spec)
    lab.make(OF_NODESET, "NodeSet", "compute", spec=specs.node_set(1))


def test_with_auth_slurm_another_secret_is_made_and_no_munged_runs() -> None:
    async def play(lab: Lab) -> None:
        await lab.until(lambda: lab.phase() == "Available", 300)
        name, key = KEY
        made = lab.get("/secrets", name)
        assert len(base64.b64decode(made["data"][key])) == 1024
        assert lab.find("/secrets", f"{CLUSTER}-munge") is None
        for pod in lab.world.server.objects("/pods", SPACE):
            every = pod["spec"].get("initContainers", [])
            assert "munge" not in {one["name"] for one in every}, pod["metadata"]["name"]
        await asyncio.sleep(60)
        assert await lab.settled() == []

    played(play, CURRENT, replicas=-1, before=lambda lab: make(lab))


def test_no_daemon_starts_with_a_key_that_is_too_short() -> None:
    (name, key), size = KEY, 15

    def before(lab: Lab) -> None:
        make(lab)
        lab.make(SECRETS, "Secret", name, data=data(key, size))

    async def play(lab: Lab) -> None:
        await lab.until(lambda: lab.condition()[1] == "KeyUnusable")
        assert f"key {key} of Secret {name} has {size} bytes" in lab.condition()[2]
        await asyncio.sleep(30)
        assert lab.pods() == []
        lab.world.ask("PATCH", f"{SECRETS}/{name}", {"data": data(key, 64)})
        await lab.until(lambda: lab.phase() == "Available", 300)
        assert lab.condition()[1] != "KeyUnusable"

    played(play, CURRENT, replicas=-1, before=before)


def test_a_cluster_that_works_keeps_on_while_its_key_is_replaced_by_a_short_one() -> None:
    name, key = KEY

    async def play(lab: Lab) -> None:
        await lab.until(lambda: lab.phase() == "Available", 300)
        lab.world.ask("PATCH", f"{SECRETS}/{name}", {"data": data(key, 3)})
        await lab.until(lambda: lab.condition()[1] == "KeyUnusable")
        lab.world.edit_cluster(SPACE, {"customSlurmConfig": "KillWait=31\n"})
        await asyncio.sleep(60)
        assert lab.deletes() == []
        assert "compute-0" in lab.pods()

    played(play, CURRENT, replicas=-1, before=lambda lab: make(lab))
