"""Workers that a SlurmCluster of the older shape declares itself."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fault_plans import nebius_specs as specs
from penstock.api.nebius.labels import POD_PROTECT
from penstock.controllers.nodeset import actor
from penstock.decide.action import DeletionGround
from penstock.decide.drain.deletion_guard import DeletionVerdict, can_delete
from penstock.simulation.event_loop import VirtualLoop
from penstock.simulation.faults import Fault
from unit.controllers.nebius.lab import CLUSTERS, CORE, OLDER, SPACE, Lab, played

APPS = f"/apis/apps/v1/namespaces/{SPACE}"
REFUSED = 429
"""Of an eviction: a budget forbids it."""
KEYS = f"{CORE}/secrets/{specs.HOST_KEYS}"


def images(lab: Lab) -> set[str]:
    return {
        container["image"]
        for pod in lab.world.server.objects("/pods", SPACE)
        if pod["metadata"]["name"].startswith("worker-")
        for container in pod["spec"]["containers"]
    }


def test_workers_have_plain_names_and_their_counts_are_in_the_status() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        assert lab.pods("worker-") == ["worker-0", "worker-1"]
        status = lab.cluster["status"]
        assert status["readyWorkers"] == 2
        counts = status["workers"]
        assert (counts["desired"], counts["ready"], counts["idle"]) == (2, 2, 2)
        assert sorted(lab.world.slurm.ctld.nodes) == ["worker-0", "worker-1"]

    played(play, OLDER)


def test_first_workers_start_though_slurm_has_not_answered_a_new_process() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        await lab.world.crash(lab.world.processes[-1])
        lab.world.slurm_fault(Fault.HANG, SPACE)
        lab.world.operator()
        lab.world.scale(2)
        # Before its first question is given up.
        await lab.until(lambda: lab.pods("worker-") == ["worker-0", "worker-1"], 3)
        lab.world.slurm_fault(Fault.NONE, SPACE)
        await lab.available()

    played(play, OLDER, replicas=0)


def test_scale_in_waits_for_the_job_of_the_worker_that_goes() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        job = lab.world.slurm.submit(2)
        assert job is not None
        lab.world.scale(1)
        await asyncio.sleep(60)
        assert lab.pods("worker-") == ["worker-0", "worker-1"]
        lab.world.slurm.finish(job)
        await lab.until(lambda: len(lab.pods("worker-")) == 1)
        await lab.available()

    played(play, OLDER)


def test_a_worker_is_evicted_only_without_a_job() -> None:
    """D66."""

    async def play(lab: Lab) -> None:
        await lab.available()
        job = lab.world.slurm.submit(2)
        assert job is not None
        of_workers = [f"{CORE}/pods/{name}" for name in lab.pods("worker-")]

        def labelled() -> list[bool]:
            return [
                POD_PROTECT in pod["metadata"]["labels"]
                for pod in lab.world.server.objects("/pods", SPACE)
                if pod["metadata"]["name"].startswith("worker-")
            ]

        await lab.until(lambda: labelled() == [True, True])
        for path in of_workers:
            assert lab.world.ask("POST", f"{path}/eviction", {"metadata": {}}).status == REFUSED
        lab.world.slurm.finish(job)
        await lab.until(lambda: labelled() == [False, False])
        answer = lab.world.ask("POST", f"{of_workers[0]}/eviction", {"metadata": {}})
        assert answer.status != REFUSED
        await lab.available()

    played(play, OLDER)


def test_a_deleted_cluster_is_kept_until_its_workers_are_drained() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        job = lab.world.slurm.submit(1)
        assert job is not None
        lab.delete(CLUSTERS)
        await asyncio.sleep(60)
        assert len(lab.pods("worker-")) == 1
        assert lab.condition()[1] == "Deleting"
        # Whoever runs a job needs them.
        assert {"controller-0", "rest-0"} <= set(lab.pods())
        lab.world.slurm.finish(job)
        await lab.until(lambda: lab.find("slurm.nebius.ai/slurmclusters", "slurm") is None)
        assert lab.world.slurm.lost_jobs == []
        await lab.until(lambda: lab.pods() == [])

    played(play, OLDER)


def test_a_cluster_whose_slurmctld_goes_first_is_gone_with_its_last_pod() -> None:
    """As when its namespace is deleted: records of Slurm nodes go with slurmctld."""

    async def play(lab: Lab) -> None:
        await lab.available()
        lab.world.slurm_fault(Fault.HANG, SPACE)
        lab.delete(CLUSTERS)
        for plural in ("statefulsets", "deployments"):
            for one in lab.world.server.objects(f"apps/{plural}", SPACE):
                lab.world.ask("DELETE", f"{APPS}/{plural}/{one['metadata']['name']}", {})
        for name in lab.pods():
            lab.world.ask("DELETE", f"{CORE}/pods/{name}", {})
        await lab.until(lambda: lab.find("slurm.nebius.ai/slurmclusters", "slurm") is None, 90)

    played(play, OLDER)


def test_what_ends_the_wait_for_a_slurmctld_that_never_answers_is_in_the_status() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        lab.world.slurm_fault(Fault.HANG, SPACE)
        lab.delete(CLUSTERS)
        command = f"To end the wait, and their jobs, at once: kubectl delete pods -n {SPACE} -l "
        await lab.until(lambda: command in lab.condition()[2])
        chosen = lab.condition()[2].partition(command)[2]
        for name in lab.pods("worker-"):
            labels = lab.get("/pods", name)["metadata"]["labels"]
            assert dict(one.split("=") for one in chosen.split(",")).items() <= labels.items()
            lab.world.ask("DELETE", f"{CORE}/pods/{name}", {})
        await lab.until(lambda: lab.find("slurm.nebius.ai/slurmclusters", "slurm") is None)

    played(play, OLDER)


def test_a_new_image_is_rolled_out_though_the_status_was_written_before_workers_were_planned() -> (
    None
):
    async def play(lab: Lab) -> None:
        await lab.available()
        secret = lab.get("/secrets", specs.HOST_KEYS)
        lab.world.objects.forgives.add(specs.HOST_KEYS)
        lab.world.ask("DELETE", KEYS, {})
        await lab.until(lambda: lab.condition()[1] == "SecretNotFound")
        lab.world.edit_nodeset(0, {"spec": {"slurmd": {"image": "slurmd:2"}}})
        generation = lab.cluster["metadata"]["generation"]
        await lab.until(lambda: lab.cluster["status"]["observedGeneration"] == generation)
        body = {"kind": "Secret", "metadata": {"name": specs.HOST_KEYS}, "data": secret["data"]}
        lab.world.ask("POST", f"{CORE}/secrets", body)
        await lab.until(lambda: images(lab) == {"slurmd:2"})
        await lab.available()

    played(play, OLDER)


def test_no_worker_is_deleted_on_an_answer_that_grew_old_while_all_cores_were_busy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While the operator waits for a core, somebody undrains the node and a job begins there."""
    late = [5.0]

    async def play(lab: Lab) -> None:
        await lab.available()
        slurm, loop = lab.world.slurm, asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)

        def judged(*given: Any, **named: Any) -> DeletionVerdict:
            found = can_delete(*given, **named)
            if found.ground is DeletionGround.DRAINED and late:
                loop.spend(late.pop())
                slurm.resumed_by_hand("worker-1")
                assert slurm.submit(2) is not None
            return found

        monkeypatch.setattr(actor, "can_delete", judged)
        lab.world.scale(1)
        await asyncio.sleep(60)
        assert not late
        assert slurm.lost_jobs == []

    played(play, OLDER)


def test_a_worker_whose_job_ended_a_moment_ago_is_as_idle_as_the_others() -> None:
    """By the last answer of Slurm it has its job, and would stay where a lower one goes."""

    async def play(lab: Lab) -> None:
        await lab.available()
        slurm = lab.world.slurm
        job = slurm.ctld.run("worker-1")
        await asyncio.sleep(32)  # Between two questions of the operator.
        slurm.finish(job)
        lab.world.scale(1)
        await lab.until(lambda: lab.pods("worker-") == ["worker-0"], 10)

    played(play, OLDER)


def test_a_worker_whose_job_began_a_moment_ago_stays() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        slurm = lab.world.slurm
        await asyncio.sleep(32)  # Between two questions of the operator.
        slurm.ctld.run("worker-1")
        lab.world.scale(1)
        await lab.until(lambda: lab.pods("worker-") == ["worker-1"], 10)
        events = lab.world.server.objects("events.k8s.io/events", SPACE)
        taken = {one["note"] for one in events if one["reason"] == "ScaleIn"}
        assert taken == {f"Pod ({SPACE}/worker-0) is pending termination for scale-in"}

    played(play, OLDER)
