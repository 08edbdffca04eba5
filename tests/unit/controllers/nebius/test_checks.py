"""ActiveChecks of a SlurmCluster, by the whole operator on a simulated Slurm."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from penstock.api.kubernetes.meta import Json
from penstock.controllers.nebius.checks.results import FOR_SLURM_S, MOST_ASKED
from penstock.controllers.nebius.clusters import NebiusClusters
from penstock.controllers.slurm_node.actor import SlurmActor
from penstock.decide.action import SetNodeComment
from penstock.decide.check.results import decode
from penstock.decide.observed.check_comment import with_check_comment
from penstock.simulation.apiserver import Change
from penstock.simulation.event_loop import simulate
from penstock.simulation.faults import Fault
from penstock.simulation.slurm.slurmctld import SlurmctldError
from unit.controllers.nebius.lab import CLUSTER, CURRENT, JOBS, OLDER, SPACE, Lab, operated, played

GROUP = "slurm.nebius.ai"
CHECKS = f"/apis/{GROUP}/v1alpha1/namespaces/{SPACE}/activechecks"
CRON_JOBS = "batch/cronjobs"
FINALIZER = f"{GROUP}/activecheck-finalizer"
GPU, NET = "gpu-checks", "net-checks"
FIRST = f"{GPU}-initial-run"
DRAINS = {"drainSlurmNode": {"drainReasonPrefix": "[node_problem]"}}
EACH: Json = {"eachWorkerJobs": True, "sbatchScript": "#!/bin/bash\ntrue\n"}


OF_KUBERNETES = {
    "checkType": "k8sJob",
    "k8sJobSpec": {"jobContainer": {"image": "check", "command": ["true"]}},
}
ALONE = {"slurmJobSpec": {**EACH, "eachWorkerJobs": False}}
RESULTS = "check.penstock.dev/results"


def declare(
    lab: Lab, name: str = GPU, type_: str = "slurmJob", *, called: str = "", **spec: Any
) -> None:
    """`kubectl create` of a check."""
    given: Json = {
        "name": called or name,
        "slurmClusterRefName": CLUSTER,
        "checkType": type_,
        "schedule": "0 0 1 1 *",
        "suspend": True,
        "runAfterCreation": True,
    }
    if type_ == "slurmJob":
        given |= {"slurmJobSpec": EACH, "failureReactions": DRAINS}
    else:
        given["k8sJobSpec"] = {"jobContainer": {"image": "check", "command": ["true"]}}
    lab.make(CHECKS, "ActiveCheck", name, spec={**given, **spec})


def check(lab: Lab, name: str = GPU) -> Json:
    return lab.find(f"{GROUP}/activechecks", name) or {}


def run_status(lab: Lab, name: str = GPU) -> str:
    return check(lab, name).get("status", {}).get("slurmJobsStatus", {}).get("lastRunStatus", "")


def condition(lab: Lab, type_: str, name: str = GPU) -> Json:
    found: list[Json] = check(lab, name).get("status", {}).get("conditions", [])
    none: Json = {}
    return next((one for one in found if one["type"] == type_), none)


def accounted(*_: object) -> bool:
    """Every cluster has accounting."""
    return True


def calls(lab: Lab, *words: str) -> list[str]:
    """Requests to slurmrestd with one of these words."""
    every = [one for process in lab.world.processes for one in process.lines[SPACE].rest.calls]
    return [one for one in every if any(word in one for word in words)]


def submit(lab: Lab, name: str = GPU, *, job: str = "") -> list[Any]:
    """One Slurm job on each worker, which the run of this name reports."""
    ctld = lab.world.slurm.ctld
    jobs = [ctld.run(node, name=name) for node in sorted(ctld.nodes)]
    ids = ",".join(str(one.id) for one in jobs)
    lab.world.jobs.reports[job or f"{name}-initial-run"] = f"slurm-job-id={ids}\n"
    return jobs


def again(lab: Lab, name: str, job: str, annotations: dict[str, str] | None = None) -> None:
    """`kubectl create job --from=cronjob/NAME`."""
    cron = lab.get(CRON_JOBS, name)
    owner = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "name": name,
        "uid": cron["metadata"]["uid"],
        "controller": True,
    }
    template = cron["spec"]["jobTemplate"]
    meta = {**template["metadata"], "name": job, "ownerReferences": [owner]}
    meta["annotations"] = annotations or {}
    body = {"kind": "Job", "metadata": meta, "spec": template["spec"]}
    lab.world.ask("POST", f"/apis/batch/v1/namespaces/{SPACE}/jobs", body)


def reasons(lab: Lab) -> dict[str, str]:
    """Reasons of the drained nodes."""
    nodes = lab.world.slurm.ctld.nodes
    return {name: one.reason for name, one in nodes.items() if "DRAIN" in one.flags}


def finish(lab: Lab, job: Any, state: str = "COMPLETED") -> None:
    lab.world.slurm.ctld.finish(job, state)


def test_a_failed_job_drains_its_worker_and_a_completed_one_takes_the_drain_back():
    """S113."""

    async def play(lab: Lab) -> None:
        await lab.available()
        good, bad = submit(lab)
        declare(lab)
        await lab.until(lambda: lab.find(JOBS, FIRST))
        await lab.until(lambda: run_status(lab) == "InProgress")
        finish(lab, good)
        finish(lab, bad, "FAILED")
        await lab.until(lambda: run_status(lab) == "Failed")
        (node,) = bad.nodes
        mark = f"[node_problem] {GPU}: job {bad.id} [slurm_job]"
        assert reasons(lab) == {node: mark}
        status = check(lab)["status"]["slurmJobsStatus"]
        assert status["lastRunId"] == f"{good.id},{bad.id}"
        (failed,) = status["lastRunFailJobsAndReasons"]
        assert failed["jobID"] == str(bad.id)
        assert node in failed["reason"]
        assert condition(lab, "LastRunPassed")["reason"] == "CheckFailed"
        assert node in condition(lab, "LastRunPassed")["message"]
        assert condition(lab, "LastRunPassed")["lastUpdateTime"]
        annotations = lab.get(JOBS, FIRST)["metadata"]["annotations"]
        assert annotations["slurm-job-id"] == f"{good.id},{bad.id}"
        assert annotations["unhandled-slurm-job-id"] == ""
        ctld = lab.world.slurm.ctld
        later = ctld.run(node, name=GPU)
        lab.world.jobs.reports["now"] = f"slurm-job-id={later.id}\n"
        again(lab, GPU, "now")
        await lab.until(lambda: run_status(lab) == "InProgress")
        finish(lab, later)
        await lab.until(lambda: run_status(lab) == "Complete")
        assert reasons(lab) == {}
        assert condition(lab, "LastRunPassed")["status"] == "True"
        await lab.settled(60)
        assert await lab.settled() == []

    played(play)


def test_a_users_drain_and_another_checks_stand():
    async def play(lab: Lab) -> None:
        await lab.available()
        mine, theirs = sorted(lab.world.slurm.ctld.nodes)
        lab.world.slurm.drained_by_hand(mine, "bad cable")
        lab.world.slurm.drained_by_hand(theirs, f"[node_problem] {NET}: job 1 [slurm_job]")
        before = reasons(lab)
        jobs = submit(lab)
        declare(lab)
        await lab.until(lambda: run_status(lab) == "InProgress")
        finish(lab, jobs[0], "FAILED")
        finish(lab, jobs[1])
        await lab.until(lambda: run_status(lab) == "Failed")
        assert reasons(lab) == before

    played(play)


@pytest.mark.parametrize("accounting", [False, True])
def test_jobs_that_ended_while_the_operator_was_away_are_not_lost(
    accounting: bool, monkeypatch: pytest.MonkeyPatch
):
    """slurmctld has them still, or has forgotten both and only slurmdbd has records of them."""

    async def run() -> None:
        lab = Lab(CURRENT)
        lab.world.declare(2)
        async with operated(lab):
            await lab.available()
            early, late = submit(lab)
            declare(lab)
            await lab.until(lambda: run_status(lab) == "InProgress")
        finish(lab, early, "FAILED")
        finish(lab, late)
        ctld = lab.world.slurm.ctld
        if accounting:
            monkeypatch.setattr(NebiusClusters, "has_slurmdbd", accounted)
            ctld.accounted = True
            ctld.forget_jobs()
        async with operated(lab):
            await lab.until(lambda: run_status(lab) == "Failed")
        (node,) = early.nodes
        assert reasons(lab) == {node: f"[node_problem] {GPU}: job {early.id} [slurm_job]"}

    simulate(run())


def test_a_job_that_slurmctld_forgot_is_an_error_without_accounting():
    async def run() -> None:
        lab = Lab(CURRENT)
        lab.world.declare(2)
        async with operated(lab):
            await lab.available()
            jobs = submit(lab)
            declare(lab)
            await lab.until(lambda: run_status(lab) == "InProgress")
        for one in jobs:
            finish(lab, one, "FAILED")
        lab.world.slurm.ctld.forget_jobs()
        async with operated(lab):
            await lab.until(lambda: run_status(lab) == "Error")
            message = condition(lab, "LastRunPassed")["message"]
            assert "slurmctld has forgotten the job" in message
            assert reasons(lab) == {}

    simulate(run())


def test_an_end_that_is_seen_late_counts_beside_one_that_was_seen_early():
    """D58: the original remembers the time of the last end, and so skips the earlier one."""

    async def play(lab: Lab) -> None:
        await lab.available()
        first, second = submit(lab)
        declare(lab)
        await lab.until(lambda: run_status(lab) == "InProgress")
        finish(lab, second)
        annotation = "check.penstock.dev/results"
        await lab.until(
            lambda: annotation in lab.get(JOBS, FIRST)["metadata"].get("annotations", {})
        )
        rows = json.loads(lab.get(JOBS, FIRST)["metadata"]["annotations"][annotation])
        assert [row[0] for row in rows] == [second.id]
        finish(lab, first, "FAILED")
        first.end = second.end - 60
        await lab.until(lambda: run_status(lab) == "Failed")
        assert [*reasons(lab)] == first.nodes

    played(play)


def test_a_check_waits_for_its_cluster_and_for_the_checks_before_it():
    async def play(lab: Lab) -> None:
        declare(lab, NET, dependsOn=[GPU])
        declare(lab, GPU, "k8sJob")
        await lab.until(lambda: condition(lab, "Ready").get("reason") == "ClusterNotAvailable")
        assert lab.find(CRON_JOBS, GPU) is None
        waits = list[str]()

        def changed(_: Change) -> None:
            found = condition(lab, "Ready", NET)
            # The CronJob is created first, and its condition follows.
            if found.get("reason") == "WaitsForChecks" and not lab.find(CRON_JOBS, NET):
                waits.append(found["message"])

        lab.world.server.store.listeners.append(changed)
        await lab.available()
        await lab.until(lambda: lab.find(CRON_JOBS, GPU))
        # It passes within a moment.
        await lab.until(lambda: waits)
        assert GPU in waits[0]
        submit(lab, NET)
        await lab.until(lambda: lab.find(CRON_JOBS, NET))
        status = check(lab)["status"]["k8sJobsStatus"]
        assert status["lastJobName"] == FIRST
        assert status["lastJobStatus"] == "Complete"

    played(play)


def test_a_skipped_check_lets_the_next_one_run_and_a_failed_container_does_not():
    async def play(lab: Lab) -> None:
        await lab.available()
        lab.world.jobs.reports[FIRST] = "slurm-skipped-reason=no GPUs here\n"
        declare(lab)
        declare(lab, NET, dependsOn=[GPU])
        declare(lab, "last", "k8sJob", dependsOn=[NET])
        lab.world.jobs.reports[f"{NET}-initial-run"] = "sbatch: no such user\n"
        lab.world.jobs.broken.add(f"{NET}-initial-run")
        await lab.until(lambda: run_status(lab) == "Skipped")
        assert check(lab)["status"]["slurmJobsStatus"]["lastRunId"] == "No slurm job"
        assert "no GPUs here" in condition(lab, "LastRunPassed")["message"]
        await lab.until(lambda: run_status(lab, NET) == "Error")
        assert "sbatch: no such user" in condition(lab, "LastRunPassed", NET)["message"]
        await lab.settled(20)
        assert lab.find(CRON_JOBS, "last") is None

    played(play)


def test_maintenance_suspends_the_schedule_and_a_deleted_check_leaves_nothing():
    async def play(lab: Lab) -> None:
        await lab.available()
        submit(lab)
        declare(lab, suspend=False)
        await lab.until(lambda: lab.find(CRON_JOBS, GPU))
        await lab.until(lambda: FINALIZER in check(lab)["metadata"]["finalizers"])
        assert not lab.get(CRON_JOBS, GPU)["spec"]["suspend"]
        lab.world.edit_cluster(SPACE, {"maintenance": "downscale"})
        await lab.until(lambda: lab.get(CRON_JOBS, GPU)["spec"]["suspend"])
        lab.world.edit_cluster(SPACE, {"maintenance": "none"})
        await lab.until(lambda: not lab.get(CRON_JOBS, GPU)["spec"]["suspend"], 300)
        assert lab.find("/configmaps", f"sbatch-script-{GPU}")
        lab.world.ask("DELETE", f"{CHECKS}/{GPU}", {})
        await lab.until(lambda: not check(lab))
        await lab.until(lambda: lab.find(CRON_JOBS, GPU) is None)
        assert lab.find("/configmaps", f"sbatch-script-{GPU}") is None

    played(play)


@pytest.mark.parametrize("after", [0.0, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15])
def test_a_check_that_is_deleted_while_it_is_created_leaves_nothing(after: float):
    async def play(lab: Lab) -> None:
        await lab.available()
        declare(lab, runAfterCreation=False)
        await asyncio.sleep(after)
        lab.world.ask("DELETE", f"{CHECKS}/{GPU}", {})
        await lab.until(lambda: not check(lab))
        await lab.settled()
        assert lab.find("/configmaps", f"sbatch-script-{GPU}") is None
        assert lab.find(CRON_JOBS, GPU) is None

    played(play)


def test_objects_that_somebody_deletes_come_back_and_the_first_run_does_not():
    async def play(lab: Lab) -> None:
        await lab.available()
        submit(lab)
        declare(lab)
        await lab.until(lambda: lab.find(JOBS, FIRST))
        await lab.until(lambda: run_status(lab) == "InProgress")
        for path in (
            f"/apis/batch/v1/namespaces/{SPACE}/jobs/{FIRST}",
            f"/api/v1/namespaces/{SPACE}/configmaps/sbatch-script-{GPU}",
            f"/apis/rbac.authorization.k8s.io/v1/namespaces/{SPACE}/roles/{CLUSTER}-activecheck-role",
        ):
            lab.world.ask("DELETE", path, {})
        role = "rbac.authorization.k8s.io/roles"
        await lab.until(lambda: lab.find("/configmaps", f"sbatch-script-{GPU}"))
        await lab.until(lambda: lab.find(role, f"{CLUSTER}-activecheck-role"))
        await lab.settled(20)
        assert lab.find(JOBS, FIRST) is None

    played(play)


def test_two_checks_of_one_name_do_not_overwrite_each_others_script():
    """Admission may not be installed."""

    async def play(lab: Lab) -> None:
        await lab.available()
        declare(lab, suspend=True, runAfterCreation=False)
        await lab.until(lambda: lab.find(CRON_JOBS, GPU))
        script = {**EACH, "sbatchScript": "#!/bin/bash\nfalse\n"}
        twin: Json = {"runAfterCreation": False, "slurmJobSpec": script}
        declare(lab, "twin", called=GPU, **twin)
        await lab.until(lambda: condition(lab, "Ready", "twin").get("status") == "False")
        assert GPU in condition(lab, "Ready", "twin")["message"]
        await lab.settled(10)
        assert await lab.settled() == []
        found = lab.get("/configmaps", f"sbatch-script-{GPU}")
        assert found["data"]["sbatch.sh"] == EACH["sbatchScript"]

    played(play)


def test_a_stranger_with_the_id_of_a_job_changes_no_node():
    """slurmctld lost its state, or somebody edited the annotation: ids begin at 1 again."""

    async def play(lab: Lab) -> None:
        await lab.available()
        ctld = lab.world.slurm.ctld
        train = ctld.run(min(ctld.nodes), name="train")
        lab.world.jobs.reports[FIRST] = f"slurm-job-id={train.id}\n"
        declare(lab)
        await lab.until(lambda: run_status(lab) == "InProgress")
        finish(lab, train, "FAILED")
        await lab.until(lambda: run_status(lab) == "Error")
        assert "train" in condition(lab, "LastRunPassed")["message"]
        assert reasons(lab) == {}

    played(play)


def test_a_job_whose_result_cannot_be_had_withholds_no_other(monkeypatch: pytest.MonkeyPatch):
    """slurmctld has forgotten one, and slurmdbd does not answer."""

    async def run() -> None:
        lab = Lab(CURRENT)
        lab.world.declare(2)
        async with operated(lab):
            await lab.available()
            early, late = submit(lab)
            declare(lab)
            await lab.until(lambda: run_status(lab) == "InProgress")
        ctld = lab.world.slurm.ctld
        finish(lab, early)
        ctld.forget_jobs()
        finish(lab, late, "FAILED")
        monkeypatch.setattr(NebiusClusters, "has_slurmdbd", accounted)
        async with operated(lab):
            await lab.until(lambda: reasons(lab))
            (node,) = late.nodes
            assert [*reasons(lab)] == [node]
            assert run_status(lab) == "InProgress"

    simulate(run())


def test_jobs_are_asked_for_in_parts_and_running_ones_not_at_all():
    async def play(lab: Lab) -> None:
        await lab.available()
        ctld = lab.world.slurm.ctld
        node = min(ctld.nodes)
        jobs = [ctld.run(node, name=GPU) for _ in range(MOST_ASKED + 5)]
        ids = ",".join(str(one.id) for one in jobs)
        lab.world.jobs.reports[FIRST] = f"slurm-job-id={ids}\n"
        declare(lab)
        await lab.until(lambda: run_status(lab) == "InProgress")
        assert not calls(lab, "/job/")
        recorded: list[int] = []

        def changed(change: Change) -> None:
            if change.resource == JOBS and change.key[1] == FIRST:
                annotations: Json = change.last.obj["metadata"].get("annotations") or {}
                recorded.append(len(decode(annotations.get(RESULTS, ""))))

        lab.world.server.store.listeners.append(changed)
        for one in jobs:
            finish(lab, one)
        await lab.until(lambda: len(jobs) in recorded)
        assert MOST_ASKED in recorded
        await lab.until(lambda: run_status(lab) == "Complete")
        assert len(calls(lab, "/job/")) == len(jobs)

    played(play)


def test_a_run_that_another_operator_has_handled_is_not_handled_again():
    """Jobs of before a switch have no results of ours, and users may have undrained the nodes."""

    async def play(lab: Lab) -> None:
        await lab.available()
        ctld = lab.world.slurm.ctld
        declare(lab, runAfterCreation=False)
        await lab.until(lambda: lab.find(CRON_JOBS, GPU))
        old = ctld.run(min(ctld.nodes), name=GPU)
        finish(lab, old, "FAILED")
        given = {"slurm-job-id": str(old.id), "unhandled-slurm-job-id": ""}
        again(lab, GPU, "before", given)
        await lab.settled(30)
        assert reasons(lab) == {}
        assert not calls(lab, "/job/")
        assert run_status(lab) == ""

    played(play)


def reserve(lab: Lab, node: str, name: str = GPU) -> None:
    """What the program of the check does with a node that the check drained."""
    ctld = lab.world.slurm.ctld
    now = int(ctld.clock())
    body = {
        "name": f"activecheck.{name}.{node}",
        "node_list": [node],
        "users": ["root"],
        "flags": ["MAINT", "IGNORE_JOBS"],
        "start_time": {"set": True, "number": now},
        "end_time": {"set": True, "number": now + 10**8},
    }
    ctld.update_reservation(body)
    ctld.update_node(node, ["RESUME"], {}, user="root")


async def rechecked(lab: Lab) -> tuple[Any, Any]:
    """A failed job, and the one that runs in the reservation of its node now."""
    good, bad = submit(lab)
    declare(lab)
    await lab.until(lambda: run_status(lab) == "InProgress")
    finish(lab, good)
    finish(lab, bad, "FAILED")
    await lab.until(lambda: run_status(lab) == "Failed")
    (node,) = bad.nodes
    reserve(lab, node)
    later = lab.world.slurm.ctld.run(node, name=GPU)
    lab.world.jobs.reports["now"] = f"slurm-job-id={later.id}\n"
    again(lab, GPU, "now")
    await lab.until(lambda: run_status(lab) == "InProgress")
    assert reasons(lab) == {}
    return bad, later


@pytest.mark.parametrize("end", ["COMPLETED", "FAILED", "TIMEOUT"])
def test_a_drained_node_comes_back_only_if_a_job_in_its_reservation_completes(end: str):
    """S113."""

    async def play(lab: Lab) -> None:
        await lab.available()
        bad, later = await rechecked(lab)
        finish(lab, later, end)
        await lab.until(lambda: not lab.world.slurm.ctld.reservations)
        mark = "[node_problem] gpu-checks: job {} [slurm_job]"
        job = later.id if end == "FAILED" else bad.id
        wanted = {} if end == "COMPLETED" else {bad.nodes[0]: mark.format(job)}
        assert reasons(lab) == wanted
        await lab.settled(60)
        assert await lab.settled() == []

    played(play)


@pytest.mark.parametrize("end", ["COMPLETED", "FAILED"])
def test_a_reservation_that_slurmrestd_cannot_end_is_left_to_slurmctld(end: str):
    """Seen with Slurm 24.11: one without an end kept its node for ever."""

    async def play(lab: Lab) -> None:
        lab.world.slurm.ctld.newest_parser = "v0.0.42"
        await lab.available()
        bad, later = await rechecked(lab)
        finish(lab, later, end)
        await lab.until(lambda: run_status(lab) != "InProgress")
        await lab.settled(60)
        mark = f"[node_problem] {GPU}: job {later.id} [slurm_job]"
        assert reasons(lab) == ({} if end == "COMPLETED" else {bad.nodes[0]: mark})
        assert not [one for one in calls(lab, "reservation/") if one.startswith("DELETE")]
        assert await lab.settled() == []

    played(play)


def test_a_reservation_that_slurmrestd_cannot_make_is_named_and_the_check_goes_on():
    async def play(lab: Lab) -> None:
        lab.world.slurm.ctld.newest_parser = "v0.0.42"
        await lab.available()
        good, bad = submit(lab)
        declare(lab, failureReactions=RESERVE, successReactions=RELEASE)
        await lab.until(lambda: run_status(lab) == "InProgress")
        finish(lab, good)
        finish(lab, bad, "FAILED")
        await lab.until(lambda: run_status(lab) == "Failed")
        every = lab.world.server.objects("events.k8s.io/events")
        (note,) = [one["note"] for one in every if one["reason"] == "CheckReserved"]
        assert note.startswith(f"Slurm node {bad.nodes[0]} is not reserved: slurmrestd speaks")
        assert await lab.settled() == []

    played(play)


BENCHMARK = f"{CLUSTER}-nccl-benchmark"


def benchmark(**given: Any) -> Json:
    usual: Json = {"enabled": True, "image": "", "k8sNodeFilterName": "cpu"}
    return {"periodicChecks": {"ncclBenchmark": {**usual, **given}}}


def test_a_benchmark_of_the_cluster_is_a_check_until_it_is_off():
    """S113, in the older shape."""

    async def play() -> None:
        lab = Lab(OLDER)
        lab.world.declare(2)
        async with operated(lab):
            await lab.available()
            actions = {"setSlurmNodeDrainState": True}
            arguments: Json = {"thresholdMoreThan": "400", "useInfiniband": False}
            lab.world.edit_cluster(
                SPACE,
                benchmark(schedule="0 */6 * * *", failureActions=actions, ncclArguments=arguments),
            )
            await lab.until(lambda: lab.find(CRON_JOBS, BENCHMARK))
            cron: Json = lab.get(CRON_JOBS, BENCHMARK)["spec"]
            assert (cron["schedule"], cron["suspend"]) == ("0 */6 * * *", False)
            assert lab.find(JOBS, f"{BENCHMARK}-initial-run") is None
            (bad, _) = submit(lab, BENCHMARK, job="now")
            again(lab, BENCHMARK, "now")
            await lab.until(lambda: run_status(lab, BENCHMARK) == "InProgress")
            finish(lab, bad, "FAILED")
            mark = f"[node_problem] {BENCHMARK}: job {bad.id} [slurm_job]"
            await lab.until(lambda: reasons(lab) == {bad.nodes[0]: mark})
            await lab.settled(60)
            assert await lab.settled() == []
            lab.world.edit_cluster(SPACE, benchmark(enabled=False))
            await lab.until(lambda: not check(lab, BENCHMARK))
            await lab.until(lambda: lab.find(CRON_JOBS, BENCHMARK) is None)

    simulate(play())


def test_a_check_of_the_name_of_the_benchmark_stays_its_users():
    async def play(lab: Lab) -> None:
        await lab.available()
        declare(lab, BENCHMARK, runAfterCreation=False)
        await lab.until(lambda: lab.find(CRON_JOBS, BENCHMARK))
        await lab.settled(20)
        assert check(lab, BENCHMARK)["spec"]["slurmJobSpec"] == EACH

    played(play)


COMMENT = {"commentSlurmNode": {"commentPrefix": "[node_problem]"}}
RESERVE = {"addReservation": {"prefix": "suspicious"}}
RELEASE = {"removeReservation": {"prefix": "suspicious"}}


def test_a_failure_comments_and_reserves_its_node_and_a_success_ends_both():
    """S113: the operator's own words in the comment stay."""

    async def play(lab: Lab) -> None:
        await lab.available()
        ctld = lab.world.slurm.ctld

        def comment(name: str) -> Json:
            return json.loads(ctld.nodes[name].comment or "{}")

        good, bad = submit(lab)
        (node,), (whole,) = bad.nodes, good.nodes
        await lab.until(lambda: comment(node) and comment(whole))
        before = comment(node)
        declare(lab, failureReactions={**COMMENT, **RESERVE}, successReactions=RELEASE)
        await lab.until(lambda: run_status(lab) == "InProgress")
        finish(lab, good)
        finish(lab, bad, "FAILED")
        await lab.until(lambda: run_status(lab) == "Failed")
        mark = f"[node_problem] {GPU}: job {bad.id} [slurm_job]"
        assert comment(node) == {**before, "check": mark}
        assert "check" not in comment(whole)
        assert reasons(lab) == {}
        (made,) = ctld.reservations.values()
        assert made["name"] == f"suspicious-{node}"
        assert made["node_list"] == node
        assert {"IGNORE_JOBS", "MAINT"} <= {*made["flags"]}
        assert "soperatorchecks" in made["users"]
        await lab.settled(60)
        assert await lab.settled() == []
        assert comment(node)["check"] == mark
        later = ctld.run(node, name=GPU)
        lab.world.jobs.reports["now"] = f"slurm-job-id={later.id}\n"
        again(lab, GPU, "now")
        await lab.until(lambda: run_status(lab) == "InProgress")
        finish(lab, later)
        await lab.until(lambda: run_status(lab) == "Complete")
        assert comment(node) == before
        assert not ctld.reservations
        await lab.settled(60)
        assert await lab.settled() == []

    played(play)


def test_a_cluster_without_the_user_of_checks_reserves_for_root(monkeypatch: pytest.MonkeyPatch):
    """Seen with Slurm 26.05: a reservation for a user that it cannot resolve is rejected."""

    async def play(lab: Lab) -> None:
        await lab.available()
        ctld = lab.world.slurm.ctld
        usual = ctld.update_reservation

        def reject(body: Json) -> None:
            if "soperatorchecks" in body["users"]:
                raise SlurmctldError(9200, "Unable to resolve user")
            usual(body)

        monkeypatch.setattr(ctld, "update_reservation", reject)
        good, bad = submit(lab)
        declare(lab, failureReactions=RESERVE)
        await lab.until(lambda: run_status(lab) == "InProgress")
        finish(lab, good)
        finish(lab, bad, "FAILED")
        await lab.until(lambda: run_status(lab) == "Failed")
        (made,) = ctld.reservations.values()
        assert made["users"] == "root"

    played(play)


def test_a_reservation_that_an_admin_made_of_that_name_stays():
    async def play(lab: Lab) -> None:
        await lab.available()
        ctld = lab.world.slurm.ctld
        jobs = submit(lab)
        (node,) = jobs[0].nodes
        now = int(ctld.clock())
        body = {
            "name": f"suspicious-{node}",
            "node_list": sorted(ctld.nodes),
            "users": ["alice"],
            "flags": ["MAINT"],
            "start_time": {"set": True, "number": now},
            "end_time": {"set": True, "number": now + 10**8},
        }
        ctld.update_reservation(body)
        declare(lab, successReactions=RELEASE)
        await lab.until(lambda: run_status(lab) == "InProgress")
        for one in jobs:
            finish(lab, one)
        await lab.until(lambda: run_status(lab) == "Complete")
        assert [*ctld.reservations] == [f"suspicious-{node}"]

    played(play)


@pytest.mark.parametrize("runs", [True, False])
def test_a_deleted_check_leaves_no_reservation_and_its_node_stays_drained(runs: bool):
    """Whether its job in the reservation has ended or not."""

    async def play(lab: Lab) -> None:
        await lab.available()
        _, bad = submit(lab)
        declare(lab)
        await lab.until(lambda: run_status(lab) == "InProgress")
        (node,) = bad.nodes
        reserve(lab, node)
        ctld = lab.world.slurm.ctld
        if not runs:
            ctld.jobs.clear()
            ctld.touch()
        lab.world.ask("DELETE", f"{CHECKS}/{GPU}", {})
        await lab.until(lambda: not check(lab))
        assert not ctld.reservations
        assert [*reasons(lab)] == [node]
        assert f" {GPU}: " in reasons(lab)[node]

    played(play)


@pytest.mark.parametrize(
    "change", [{"slurmJobSpec": {**EACH, "eachWorkerJobs": False}}, OF_KUBERNETES]
)
def test_a_reservation_ends_although_the_check_changed_and_its_jobs_are_gone(change: Json):
    async def run() -> None:
        lab = Lab(CURRENT)
        lab.world.declare(2)
        async with operated(lab):
            await lab.available()
            jobs = submit(lab)
            declare(lab)
            await lab.until(lambda: run_status(lab) == "InProgress")
            for one in jobs:
                finish(lab, one)
            await lab.until(lambda: run_status(lab) == "Complete")
        ctld = lab.world.slurm.ctld
        (node,) = jobs[0].nodes
        reserve(lab, node)
        lab.world.ask("DELETE", f"/apis/batch/v1/namespaces/{SPACE}/jobs/{FIRST}", {})
        lab.world.ask("PATCH", f"{CHECKS}/{GPU}", {"spec": change})
        async with operated(lab):
            await lab.until(lambda: not ctld.reservations)
            assert [*reasons(lab)] == [node]
            await lab.settled(60)
            before = len(calls(lab, "reservations", "/job/"))
            await lab.settled(30)
            assert len(calls(lab, "reservations", "/job/")) == before

    simulate(run())


def test_the_deletion_of_a_check_does_not_wait_for_ever_for_slurm():
    async def play(lab: Lab) -> None:
        await lab.available()
        jobs = submit(lab)
        declare(lab)
        await lab.until(lambda: run_status(lab) == "InProgress")
        reserve(lab, *jobs[0].nodes)
        lab.world.slurm_fault(Fault.REFUSE, SPACE)
        lab.world.ask("DELETE", f"{CHECKS}/{GPU}", {})
        await lab.settled(60)
        assert check(lab)
        await lab.until(lambda: not check(lab), 3 * FOR_SLURM_S)

    played(play)


def test_a_comment_of_a_check_outlasts_one_that_was_planned_before_it(
    monkeypatch: pytest.MonkeyPatch,
):
    """The operator's own comment is decided, and a check comments the node before it is written."""

    async def play(lab: Lab) -> None:
        await lab.available()
        ctld = lab.world.slurm.ctld
        node = min(ctld.nodes)
        await lab.until(lambda: ctld.nodes[node].comment)
        mark = f"[node_problem] {GPU}: job 1 [slurm_job]"
        usual = SlurmActor.update_nodes
        planned: list[str] = []

        async def update_nodes(self: SlurmActor, *given: Any) -> list[bool]:
            for one in given[3]:
                if isinstance(one, SetNodeComment) and one.node == node and not planned:
                    planned.append(one.comment)
                    text = with_check_comment(ctld.nodes[node].comment, mark)
                    ctld.update_node(node, [], {"comment": text}, user="root")
            return await usual(self, *given)

        monkeypatch.setattr(SlurmActor, "update_nodes", update_nodes)
        lab.world.slurm.drained_by_hand(node, "bad cable")
        await lab.until(lambda: planned)
        await lab.until(lambda: json.loads(ctld.nodes[node].comment).get("drain") == "bad cable")
        assert json.loads(ctld.nodes[node].comment)["check"] == mark

    played(play)


TEMPLATES = f"/api/v1/namespaces/{SPACE}/podtemplates"


def pod_template(lab: Lab, value: str) -> Json:
    container = {"name": GPU, "env": [{"name": "NCCL_DEBUG", "value": value}]}
    return {"spec": {"restartPolicy": "Always", "containers": [container]}}


def variables(lab: Lab) -> dict[str, str]:
    cron = lab.find(CRON_JOBS, GPU) or {"spec": {"jobTemplate": {"spec": {"template": {}}}}}
    spec = cron["spec"]["jobTemplate"]["spec"]["template"].get("spec", {"containers": [{}]})
    env: list[Json] = spec["containers"][0].get("env", [])
    return {one["name"]: one.get("value", "") for one in env}


def test_a_check_waits_for_its_pod_template_and_follows_its_changes():
    """S113."""

    async def play(lab: Lab) -> None:
        await lab.available()
        declare(lab, podTemplateNameRef="extra")
        await lab.until(lambda: condition(lab, "Ready").get("reason") == "PodTemplateNotFound")
        assert lab.find(CRON_JOBS, GPU) is None
        lab.make(TEMPLATES, "PodTemplate", "extra", template=pod_template(lab, "INFO"))
        await lab.until(lambda: variables(lab).get("NCCL_DEBUG") == "INFO")
        await lab.until(lambda: lab.find(JOBS, FIRST))
        first = lab.get(JOBS, FIRST)["spec"]["template"]["spec"]["containers"][0]["env"]
        assert {"name": "NCCL_DEBUG", "value": "INFO"} in first
        body = {"template": pod_template(lab, "WARN")}
        lab.world.ask("PATCH", f"{TEMPLATES}/extra", body)
        await lab.until(lambda: variables(lab).get("NCCL_DEBUG") == "WARN")
        lab.world.ask("DELETE", f"{TEMPLATES}/extra", {})
        await lab.until(lambda: condition(lab, "Ready").get("reason") == "PodTemplateNotFound")
        assert variables(lab)["NCCL_DEBUG"] == "WARN", "its pods keep the fields"
        lab.world.ask("PATCH", f"{CHECKS}/{GPU}", {"spec": {"podTemplateNameRef": ""}})
        await lab.until(lambda: "NCCL_DEBUG" not in variables(lab))

    played(play)
