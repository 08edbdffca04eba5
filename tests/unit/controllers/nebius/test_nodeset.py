"""NodeSets of a SlurmCluster."""

from __future__ import annotations

import asyncio

from fault_plans import worker_sets
from fault_plans.kinds import path_of
from penstock.controllers.runtime.metrics import POD_DELETES
from unit.controllers.nebius.lab import CLUSTERS, CORE, NODESETS, SPACE, Lab, played

NAME = "compute"
PATH = path_of(SPACE, worker_sets.OF_NEBIUS, NAME)


def condition(lab: Lab, type_: str = "Ready") -> tuple[str, str, str]:
    return lab.condition(type_, NODESETS, NAME)


def test_workers_wait_for_the_jail() -> None:
    async def play(lab: Lab) -> None:
        lab.world.jobs.failing.add(SPACE)
        await lab.until(lambda: "Job slurm-populate-jail failed" in condition(lab)[2])
        assert condition(lab)[1] == "JailNotPopulated"
        await asyncio.sleep(20)
        assert lab.pods(NAME) == []
        assert lab.phase(NODESETS, NAME) == "Provisioning"

    played(play)


def test_a_ready_nodeset_reports_phase_counts_and_selector() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        status = lab.of_kind(NODESETS, NAME)["status"]
        assert (status["phase"], status["replicas"]) == ("Ready", 2)
        assert "slurm.nebius.ai/nodeset=compute" in status["labelSelector"]
        assert condition(lab, "PodsReady")[:2] == ("True", "NodeSetReady")
        # A status is written twice while the cache does not show the first one yet.
        await lab.settled(1)
        assert await lab.settled() == []

    played(play)


def test_an_unknown_cluster_is_named_and_a_corrected_name_recovers() -> None:
    async def play(lab: Lab) -> None:
        lab.world.ask("PATCH", PATH, {"spec": {"clusterName": "slrum"}})
        await lab.until(lambda: condition(lab)[1] == "SlurmClusterNotFound")
        assert "there is no SlurmCluster slrum" in condition(lab)[2]
        lab.world.ask("PATCH", PATH, {"spec": {"clusterName": "slurm"}})
        await lab.available()

    played(play)


def test_a_nodeset_without_a_cluster_name_is_invalid() -> None:
    async def play(lab: Lab) -> None:
        lab.world.ask("PATCH", PATH, {"spec": {"clusterName": ""}})
        await lab.until(lambda: "spec.clusterName" in condition(lab)[2])
        assert condition(lab)[:2] == ("False", "Invalid")

    played(play)


def test_a_nodeset_is_gone_together_with_its_cluster() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        lab.delete(CLUSTERS)
        lab.delete(NODESETS, NAME)
        await lab.until(lambda: lab.of_kind(NODESETS, NAME) == {} and lab.pods() == [])

    played(play)


def test_workers_and_their_jobs_outlive_a_cluster_that_is_made_again() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        old = {pod["metadata"]["uid"] for pod in workers(lab)}
        assert lab.world.slurm.submit(2) is not None
        lab.delete(CLUSTERS)
        await lab.until(lambda: condition(lab)[1] == "SlurmClusterNotFound")
        assert lab.phase(NODESETS, NAME) in {"Provisioning", "Ready"}
        lab.world.declare_cluster(SPACE)
        await lab.available()
        assert {pod["metadata"]["uid"] for pod in workers(lab)} == old
        assert lab.world.slurm.lost_jobs == []

    played(play)


def test_a_nodeset_waits_for_a_cluster_that_comes_later() -> None:
    async def play(lab: Lab) -> None:
        lab.world.prepare(SPACE)
        lab.world.declare_nodeset(1)
        await lab.until(lambda: condition(lab)[1] == "SlurmClusterNotFound")
        lab.world.declare_cluster(SPACE)
        await lab.available()

    played(play, replicas=-1)


def test_a_deleted_nodeset_is_kept_until_its_workers_are_drained() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        job = lab.world.slurm.submit(1)
        assert job is not None
        lab.delete(NODESETS, NAME)
        await lab.until(lambda: len(lab.pods(NAME)) == 1)
        await asyncio.sleep(60)
        assert lab.pods(NAME) == job.nodes
        assert lab.phase(NODESETS, NAME) == "Terminating"
        lab.world.slurm.finish(job)
        await lab.until(lambda: lab.of_kind(NODESETS, NAME) == {})
        assert lab.world.slurm.lost_jobs == []
        assert lab.world.slurm.ctld.nodes == {}
        await lab.until(lambda: lab.find("/services", "slurm-nodeset-compute-svc") is None)

    played(play)


def test_workers_that_go_with_their_cluster_are_counted_under_a_ground_of_its_kind() -> None:
    def counted(ground: str) -> float:
        (family,) = POD_DELETES.collect()
        return sum(
            one.value
            for one in family.samples
            if one.name.endswith("_total") and one.labels["ground"] == ground
        )

    async def play(lab: Lab) -> None:
        await lab.available()
        before = counted("SlurmClusterGone"), counted("ControllerGone")
        lab.world.slurm.submit(1)
        lab.delete(CLUSTERS)
        lab.delete(NODESETS, NAME)
        await lab.until(lambda: lab.of_kind(NODESETS, NAME) == {})
        now = counted("SlurmClusterGone"), counted("ControllerGone")
        assert now == (before[0] + 2, before[1])

    played(play)


def test_a_field_of_the_cluster_that_pods_have_replaces_workers() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        old = {pod["metadata"]["uid"] for pod in workers(lab)}
        lab.world.edit_cluster(SPACE, {"secrets": {"sshdKeysName": "others"}})
        secret = {"kind": "Secret", "metadata": {"name": "others"}, "data": {"key": "a2V5"}}
        lab.world.ask("POST", f"{CORE}/secrets", secret)
        await lab.until(lambda: old.isdisjoint(pod["metadata"]["uid"] for pod in workers(lab)))
        await lab.until(lambda: len(workers(lab)) == 2)
        assert all("'secretName': 'others'" in str(pod["spec"]) for pod in workers(lab))
        # Logins mount it as well.
        lab.world.promises.broken.remove("the pods of slurm-login are made anew for nothing")

    played(play)


def test_workers_of_a_cluster_in_maintenance_go_and_return() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        lab.world.edit_cluster(SPACE, {"maintenance": "downscale"})
        await lab.until(lambda: lab.pods(NAME) == [])
        counts = lab.of_kind(NODESETS, NAME)["status"]["workers"]
        assert counts["desired"] == 0
        lab.world.edit_cluster(SPACE, {"maintenance": "none"})
        await lab.available()

    played(play)


def workers(lab: Lab) -> list[worker_sets.Json]:
    return [
        pod
        for pod in lab.world.server.objects("/pods", SPACE)
        if pod["metadata"]["name"].startswith(NAME)
    ]
