"""The Job that fills the jail of a SlurmCluster."""

from __future__ import annotations

import asyncio

import pytest

from unit.controllers.nebius.lab import CORE, JOB, JOBS, SHAPES, SPACE, Lab, played


@pytest.mark.parametrize("shape", SHAPES)
def test_no_daemon_is_created_before_the_jail_is_filled(shape: str) -> None:
    async def play(lab: Lab) -> None:
        lab.stop_kubelets()
        await lab.until(lambda: lab.find(JOBS, JOB))
        await asyncio.sleep(20)
        daemons = ("statefulsets/", "deployments/")
        assert [one for one in lab.made if one.startswith(daemons)] == []
        assert lab.condition("JailPopulated")[:2] == ("Unknown", "PopulateJailRunning")
        lab.complete_job()
        prefix = lab.world.prefix
        wanted = {f"statefulsets/{prefix}{one}" for one in ("controller", "login")}
        wanted |= {f"deployments/{prefix}{one}" for one in ("rest", "sconfigcontroller")}
        await lab.until(lambda: wanted <= set(lab.made))

    played(play, shape)


def test_a_job_that_failed_is_reported_with_its_words_and_repeated_once_it_is_deleted() -> None:
    async def play(lab: Lab) -> None:
        lab.world.jobs.failing.add(SPACE)
        # The Job may be seen before the pod with its words, or after it.
        failed = ("False", "PopulateJailFailed")
        await lab.until(
            lambda: (
                lab.condition("JailPopulated")[:2] == failed
                and "No space left" in lab.condition("JailPopulated")[2]
            )
        )
        words = lab.condition("JailPopulated")[2]
        assert "rsync: No space left on device" in words
        assert "delete the Job" in words
        assert lab.condition()[0] == "False"
        assert lab.pods("compute") == []
        uid = lab.get(JOBS, JOB)["metadata"]["uid"]
        await asyncio.sleep(60)
        assert lab.get(JOBS, JOB)["metadata"]["uid"] == uid
        lab.world.jobs.failing.clear()
        lab.world.ask("DELETE", f"/apis/batch/v1/namespaces/{SPACE}/jobs/{JOB}", {})
        await lab.available()
        assert lab.get(JOBS, JOB)["metadata"]["uid"] != uid

    played(play)


def test_a_corrected_image_replaces_a_job_that_cannot_start() -> None:
    async def play(lab: Lab) -> None:
        spec = {"populateJail": {"image": "missing:1"}}
        lab.world.edit_cluster(SPACE, spec)
        await lab.until(lambda: "missing:1" in str(lab.find(JOBS, JOB)))
        await asyncio.sleep(20)
        assert lab.condition("JailPopulated")[0] != "True"
        lab.world.edit_cluster(SPACE, {"populateJail": {"image": "populate-jail:2"}})
        await lab.available()
        assert "populate-jail:2" in str(lab.get(JOBS, JOB))

    played(play)


def test_a_deleted_job_of_a_jail_in_use_is_not_created_again() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        lab.world.ask("DELETE", f"/apis/batch/v1/namespaces/{SPACE}/jobs/{JOB}", {})
        await lab.until(lambda: lab.condition("JailPopulated")[1] == "JailInUse")
        await asyncio.sleep(60)
        assert lab.find(JOBS, JOB) is None
        assert lab.condition()[0] == "True"

    played(play)


def test_a_jail_is_overwritten_only_once_no_pod_uses_it() -> None:
    mode = "downscaleAndOverwritePopulateJail"

    async def play(lab: Lab) -> None:
        await lab.available()
        job = lab.world.slurm.submit(1)
        assert job is not None
        lab.world.edit_cluster(SPACE, {"maintenance": mode})
        await lab.until(lambda: f"jobs/{JOB}" in lab.gone)
        await asyncio.sleep(30)
        assert lab.find(JOBS, JOB) is None
        assert lab.condition("JailPopulated")[1] == "JailInUse"
        lab.world.slurm.finish(job)
        await lab.until(lambda: lab.find(JOBS, JOB))
        assert lab.pods("compute") == []
        assert "'OVERWRITE', 'value': '1'" in str(lab.get(JOBS, JOB))
        await lab.until(lambda: lab.condition("JailPopulated")[0] == "True")
        lab.world.edit_cluster(SPACE, {"maintenance": "none"})
        await lab.available()

    played(play)


def test_pods_of_the_job_are_not_of_another_one() -> None:
    """A failure of an older Job's pod is no failure of the present one."""

    async def play(lab: Lab) -> None:
        lab.stop_kubelets()
        await lab.until(lambda: lab.find(JOBS, JOB))
        labels = lab.get(JOBS, JOB)["spec"]["template"]["metadata"]["labels"]
        meta = {"name": "older", "labels": labels}
        spec = {"containers": [{"name": "populate-jail", "image": "missing:1"}]}
        lab.world.ask("POST", f"{CORE}/pods", {"kind": "Pod", "metadata": meta, "spec": spec})
        ended = {"terminated": {"exitCode": 1, "message": "of another one"}}
        status = {"containerStatuses": [{"name": "populate-jail", "state": ended}]}
        lab.world.server.ask("PATCH", f"{CORE}/pods/older/status", {"status": status})
        await asyncio.sleep(10)
        assert "of another one" not in lab.condition("JailPopulated")[2]

    played(play)
