"""The whole operator with releases of Slurm, on simulated machines."""

from __future__ import annotations

from typing import Any

from fault_plans.world import GROUP, NODESET
from penstock.api.kubernetes.meta import Json
from penstock.render.slinky.cluster.release import images
from penstock.simulation.event_loop import simulate
from unit.controllers.slinky.test_accounting import Lab

NEW, OLD = "x/slurmctld:26.05", "x/slurmctld:24.11"


def declare(lab: Lab, image: str, **spec: Any) -> None:
    lab.patch(f"{GROUP}/controllers/slurm", {"spec": {"slurmctld": {"image": image}, **spec}})


def workload(lab: Lab) -> Json:
    found = lab.world.find("apps/statefulsets", "slurm-controller")
    assert found is not None
    return found["spec"]["template"]


def pod(lab: Lab) -> str:
    found = lab.world.find("/pods", "slurm-controller-0")
    return found["metadata"]["uid"] if found is not None else ""


def status(lab: Lab) -> Json:
    found: Any = lab.world.find("slinky.slurm.net/controllers", "slurm")
    return found["status"]


def conditions(lab: Lab) -> dict[str, str]:
    return {one["type"]: one["reason"] for one in status(lab)["conditions"]}


def test_an_older_slurmctld_is_refused_and_the_running_one_goes_on() -> None:
    async def play() -> None:
        lab = Lab()
        lab.world.declare(1)
        declare(lab, OLD)
        process = lab.world.operator()
        try:
            await lab.ready("controllers", "slurm")
            await lab.until(lambda: status(lab).get("stateVersion") == "24.11.5")
            before = pod(lab)
            declare(lab, NEW)
            await lab.until(lambda: status(lab).get("stateVersion") == "26.05.5")
            await lab.ready("controllers", "slurm")
            uid, template = pod(lab), workload(lab)
            assert uid != before
            assert images(template["spec"])["slurmctld"] == NEW

            declare(lab, OLD)
            await lab.until(lambda: lab.says("controllers", "slurm")[1] == "SlurmVersionRefused")
            assert "slurmctld keeps its image" in lab.says("controllers", "slurm")[2]
            # Another operator decides the same from the status.
            await lab.world.crash(process)
            process = lab.world.operator()
            declare(lab, OLD, extraConf="SlurmctldDebug=debug\n")
            await lab.until(lambda: conditions(lab).get("ConfigApplied") == "ConfigInEffect")
            assert (pod(lab), workload(lab)) == (uid, template)

            declare(lab, NEW)
            await lab.ready("controllers", "slurm")
            assert workload(lab) == template
            assert pod(lab) == uid
        finally:
            await lab.world.crash(process)

    simulate(play())


def test_a_key_that_the_release_does_not_know_keeps_a_first_slurmctld_from_being_made() -> None:
    async def play() -> None:
        lab = Lab()
        lab.world.declare(1)
        declare(lab, OLD, extraConf="HealthCheckTimeout=3\n")
        process = lab.world.operator()
        try:
            await lab.until(lambda: lab.says("controllers", "slurm")[1] == "ConfigRefused")
            assert (
                "Slurm 24.11 does not know HealthCheckTimeout"
                in (lab.says("controllers", "slurm")[2])
            )
            assert lab.world.find("apps/statefulsets", "slurm-controller") is None
            assert lab.world.find("/configmaps", "slurm-config") is None
            declare(lab, OLD, extraConf="", metrics={"enabled": True})
            await lab.ready("controllers", "slurm")
            await lab.until(lambda: conditions(lab).get("Monitored") == "MetricsUnsupported")
            conf = lab.world.find("/configmaps", "slurm-config")
            assert conf is not None
            assert "MetricsType" not in conf["data"]["slurm.conf"]
        finally:
            await lab.world.crash(process)

    simulate(play())


def test_an_unsupported_release_is_not_started() -> None:
    async def play() -> None:
        lab = Lab()
        lab.world.declare(1)
        declare(lab, "x/slurmctld:22.05")
        process = lab.world.operator()
        try:
            await lab.until(lambda: lab.says("controllers", "slurm")[1] == "SlurmVersionRefused")
            assert "Slurm 22.05 is not supported" in lab.says("controllers", "slurm")[2]
            assert lab.world.find("apps/statefulsets", "slurm-controller") is None
        finally:
            await lab.world.crash(process)

    simulate(play())


def test_a_scheduled_update_waits_for_a_slurmrestd_that_makes_reservations() -> None:
    async def play() -> None:
        lab = Lab()
        lab.world.declare(1)
        lab.world.slurm.ctld.newest_parser = "v0.0.42"
        process = lab.world.operator()
        try:
            await lab.ready("nodesets", NODESET)
            start = {"startTime": "2035-01-01T00:00:00Z", "duration": "1h"}
            spec = {
                "updateStrategy": {"type": "ScheduledUpdate", "scheduledUpdate": start},
                "slurmd": {"env": [{"name": "A", "value": "1"}]},
            }
            lab.patch(f"{GROUP}/nodesets/{NODESET}", {"spec": spec})

            def reason() -> str:
                found: Any = lab.world.find("slinky.slurm.net/nodesets", NODESET)
                every = {one["type"]: one["reason"] for one in found["status"]["conditions"]}
                return every.get("ReservationCreated", "")

            await lab.until(lambda: reason() == "ReservationUnsupported")
            # After an upgrade of slurmrestd it is made.
            lab.world.slurm.ctld.newest_parser = ""
            await lab.until(lambda: reason() == "Created")
        finally:
            await lab.world.crash(process)

    simulate(play())
