"""The exporter of a SlurmCluster, and its monitors, by the whole operator."""

from __future__ import annotations

import pytest

from penstock.api.kubernetes.meta import Json
from penstock.simulation.event_loop import simulate
from unit.controllers.nebius.lab import CLUSTER, CURRENT, OLDER, SPACE, Lab, operated, played

GROUP = "monitoring.coreos.com"
MONITORS = (f"{GROUP}/podmonitors", f"{GROUP}/servicemonitors")
RBAC = "rbac.authorization.k8s.io"


def declare(lab: Lab, **fields: object) -> None:
    """Merge into the exporter's part."""
    body = {"k8sNodeFilterName": "all", **fields}
    lab.world.edit_cluster(SPACE, {"slurmNodes": {"exporter": body}})


def prefix(shape: str) -> str:
    return "" if shape == OLDER else f"{CLUSTER}-"


def deployment(lab: Lab, shape: str) -> Json | None:
    return lab.find("apps/deployments", f"{prefix(shape)}slurm-exporter")


def others(lab: Lab, shape: str) -> dict[str, Json | None]:
    """All of its objects but the Deployment."""
    name = f"{prefix(shape)}slurm-exporter"
    return {
        "state": lab.find("/configmaps", f"{CLUSTER}-slurm-exporter-state"),
        "service": lab.find("/services", f"{CLUSTER}-exporter-svc"),
        "account": lab.find("/serviceaccounts", f"{name}-sa"),
        "role": lab.find(f"{RBAC}/roles", f"{name}-role"),
        "binding": lab.find(f"{RBAC}/rolebindings", f"{name}-role-binding"),
        "monitor": lab.find(MONITORS[0], CLUSTER),
    }


@pytest.mark.parametrize("shape", [OLDER, CURRENT])
def test_it_comes_and_goes_with_its_field(shape: str):
    """S092, S114."""

    async def play(lab: Lab) -> None:
        await lab.available()
        assert deployment(lab, shape) is None
        declare(lab, enabled=True)
        await lab.until(lambda: deployment(lab, shape))
        await lab.until(lambda: all(others(lab, shape).values()))
        found = deployment(lab, shape)
        assert found is not None
        (container,) = found["spec"]["template"]["spec"]["containers"]
        assert container["command"] == ["/usr/bin/soperator-exporter"]
        # Two clusters of a namespace: each monitor finds its own.
        monitor = others(lab, shape)["monitor"]
        assert monitor is not None
        selector = monitor["spec"]["selector"]["matchLabels"]
        assert selector["app.kubernetes.io/instance"] == CLUSTER
        await lab.available()
        await lab.settled(60)
        assert await lab.settled() == []
        declare(lab, enabled=False)
        await lab.until(lambda: deployment(lab, shape) is None)
        await lab.until(lambda: not any(others(lab, shape).values()))
        await lab.settled(60)
        assert await lab.settled() == []

    played(play, shape)


def test_durations_that_the_exporter_wrote_stay():
    async def play(lab: Lab) -> None:
        declare(lab, enabled=True)
        await lab.until(lambda: others(lab, CURRENT)["state"])
        path = f"/api/v1/namespaces/{SPACE}/configmaps/{CLUSTER}-slurm-exporter-state"
        lab.world.ask("PATCH", path, {"binaryData": {"durations": "AAAA"}})
        declare(lab, collectionInterval="10s")
        await lab.until(lambda: "10s" in str(deployment(lab, CURRENT)))
        state = others(lab, CURRENT)["state"]
        assert state is not None
        assert state["binaryData"] == {"durations": "AAAA"}

    played(play, CURRENT)


def test_a_cluster_without_the_kinds_of_monitors_is_available_and_gets_them_when_they_come():
    async def play() -> None:
        lab = Lab(CURRENT)
        lab.world.server.absent.update(MONITORS)
        lab.world.declare(2)
        declare(lab, enabled=True)
        async with operated(lab):
            await lab.until(lambda: deployment(lab, CURRENT))
            await lab.available()
            assert lab.condition("Monitored") == ("", "", "")
            lab.world.server.absent.clear()
            await lab.until(lambda: others(lab, CURRENT)["monitor"], 600)
            await lab.until(lambda: lab.find(MONITORS[1], f"{CLUSTER}-slurmctld-metrics"), 600)

    simulate(play())


def test_an_object_of_somebody_else_is_named_and_the_cluster_goes_on():
    async def play(lab: Lab) -> None:
        await lab.available()
        lab.make(f"/api/v1/namespaces/{SPACE}/services", "Service", f"{CLUSTER}-exporter-svc")
        declare(lab, enabled=True)
        await lab.until(lambda: lab.condition("Monitored")[1] == "MetricsIncomplete")
        status, _, message = lab.condition("Monitored")
        assert status == "False"
        assert f"{CLUSTER}-exporter-svc" in message
        assert lab.condition()[0] == "True"
        await lab.available()
        lab.world.ask("DELETE", f"/api/v1/namespaces/{SPACE}/services/{CLUSTER}-exporter-svc", {})
        await lab.until(lambda: deployment(lab, CURRENT))
        await lab.until(lambda: lab.condition("Monitored") == ("", "", ""))

    played(play, CURRENT)
