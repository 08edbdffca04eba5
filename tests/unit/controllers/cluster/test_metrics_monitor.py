"""The whole operator and the Prometheus operator's ServiceMonitor: feature row 13, D20."""

from __future__ import annotations

from fault_plans.world import GROUP
from penstock.api.kubernetes.meta import Json
from penstock.simulation.event_loop import simulate
from unit.controllers.slinky.test_accounting import Lab, operated, played

MONITORS = "monitoring.coreos.com/servicemonitors"
WISH: Json = {"enabled": True, "serviceMonitor": {"enabled": True, "labels": {"release": "p"}}}


def declare(lab: Lab, metrics: Json | None) -> None:
    lab.patch(f"{GROUP}/controllers/slurm", {"spec": {"metrics": metrics}})


def monitor(lab: Lab) -> Json | None:
    return lab.world.find(MONITORS, "slurm-controller")


def test_a_servicemonitor_is_made_kept_and_taken_away_as_is_asked() -> None:
    async def play(lab: Lab) -> None:
        await lab.ready("controllers", "slurm")
        assert lab.says("controllers", "slurm", "Monitored") == ("", "", "")
        declare(lab, WISH)
        await lab.until(lambda: monitor(lab))
        await lab.until(lambda: lab.says("controllers", "slurm", "Monitored")[0] == "True")
        await lab.until(lambda: "MetricsType=metrics/openmetrics\n" in lab.slurm_conf())
        found = monitor(lab)
        assert found is not None
        assert found["metadata"]["labels"]["release"] == "p"
        selector = found["spec"]["selector"]["matchLabels"].items()
        services = lab.world.server.objects("/services", "slurm")
        selected = [
            one["metadata"]["name"]
            for one in services
            if selector <= one["metadata"].get("labels", {}).items()
        ]
        assert selected == ["slurm-controller"]
        path = "/apis/monitoring.coreos.com/v1/namespaces/slurm/servicemonitors/slurm-controller"
        lab.patch(path, {"spec": {"endpoints": []}})
        await lab.until(lambda: (monitor(lab) or found)["spec"] == found["spec"])
        declare(lab, {**WISH, "serviceMonitor": {"enabled": False}})
        await lab.until(lambda: monitor(lab) is None)
        await lab.until(lambda: lab.says("controllers", "slurm", "Monitored") == ("", "", ""))

    played(play)


def test_a_cluster_without_the_definition_is_told_so_and_gets_it_when_that_comes() -> None:
    async def play() -> None:
        lab = Lab()
        lab.world.server.absent.add(MONITORS)
        lab.world.declare(1)
        declare(lab, WISH)
        process = lab.world.operator()
        try:
            await lab.ready("controllers", "slurm")
            told = lab.says("controllers", "slurm", "Monitored")
            assert told[:2] == ("False", "ServiceMonitorUnknown")
            assert "the API server does not serve monitoring.coreos.com/v1)" in told[2]
            assert "Install the definitions" in told[2]
            lab.world.server.absent.clear()
            await lab.until(lambda: monitor(lab))
            await lab.until(lambda: lab.says("controllers", "slurm", "Monitored")[0] == "True")
        finally:
            await lab.world.crash(process)

    simulate(play())


def test_a_definition_that_goes_is_told() -> None:
    async def play() -> None:
        async with operated() as lab:
            declare(lab, WISH)
            await lab.until(lambda: monitor(lab))
            lab.world.server.absent.add(MONITORS)
            for process in lab.world.processes:
                process.connection.cut()
            lab.patch(f"{GROUP}/controllers/slurm", {"spec": {"extraConf": "MinJobAge=3\n"}})
            await lab.until(lambda: lab.says("controllers", "slurm", "Monitored")[0] == "False")
            await lab.ready("controllers", "slurm")

    simulate(play())
