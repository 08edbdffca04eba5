"""Workers with roots of their own, on simulated Kubernetes nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from fault_plans import nebius_specs as specs
from fault_plans import worker_sets
from fault_plans.api_names import CLUSTER
from fault_plans.kinds import path_of
from penstock.api.kubernetes.meta import Json
from unit.controllers.nebius.lab import CLUSTERS, CURRENT, NODESETS, OLDER, SPACE, Lab, played

OWN = {
    "volumeClaimTemplateSpec": {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
}
EQUAL = "penstock: root image=i packages=p programs=b accounts=a users=u\n"
COWSAY = EQUAL.replace("packages=p", "packages=q").strip() + " packages:+cowsay=3.03\n"
SHAPES = [(OLDER, CLUSTERS, CLUSTER, "worker"), (CURRENT, NODESETS, "compute", "compute")]


def cluster_spec(shape: str) -> Json:
    spec: Json = {**specs.slurm_cluster(shape, 2), "jailMode": "PerWorker"}
    if shape == OLDER:
        spec["slurmNodes"]["worker"]["volumes"]["jail"] = OWN
    return spec


def run(play: Callable[[Lab], Awaitable[None]], shape: str) -> None:
    def before(lab: Lab) -> None:
        lab.world.prepare(SPACE)
        of_cluster = path_of(SPACE, worker_sets.OF_CLUSTER)
        lab.make(of_cluster, "SlurmCluster", CLUSTER, spec=cluster_spec(shape))
        if shape == CURRENT:
            spec = specs.node_set(2)
            spec["slurmd"] = {**spec["slurmd"], "volumes": {"spool": {}, "jail": OWN}}
            of_nodeset = path_of(SPACE, worker_sets.OF_NEBIUS)
            lab.make(of_nodeset, "NodeSet", "compute", spec=spec)

    played(play, shape, replicas=-1, before=before)


def report(lab: Lab, logs: dict[str, str]) -> list[str]:
    """Have sidecars log these reports; return the list of pods whose log is read."""
    asked: list[str] = []
    before = lab.world.server.logs

    def log(namespace: str, name: str, container: str) -> str | None:
        if container != "jail-root":
            return before(namespace, name, container)
        asked.append(name)
        return logs.get(name)

    lab.world.server.logs = log
    return asked


@pytest.mark.parametrize(("shape", "plural", "name", "prefix"), SHAPES)
def test_a_root_that_differs_is_named_until_it_is_equal(
    shape: str, plural: str, name: str, prefix: str
) -> None:
    """S177."""
    first, second = f"{prefix}-0", f"{prefix}-1"

    async def play(lab: Lab) -> None:
        logs: dict[str, str] = {}
        asked = report(lab, logs)

        def roots() -> tuple[str, str, str]:
            return lab.condition("WorkerRootsEqual", plural, name)

        await lab.until(lambda: {first, second} <= set(lab.pods()))
        claims = {one for one in lab.made if one.startswith("persistentvolumeclaims/jail-")}
        assert claims >= {f"persistentvolumeclaims/jail-{one}" for one in (first, second)}
        await lab.until(lambda: roots()[:2] == ("Unknown", "RootsUnknown"))
        logs |= {first: EQUAL, second: EQUAL}
        await lab.until(lambda: roots()[:2] == ("True", "RootsEqual"))
        await lab.until(lambda: lab.condition("Ready", plural, name)[0] == "True")
        logs[second] = f"{EQUAL}{COWSAY}"
        await lab.until(lambda: roots()[:2] == ("False", "RootsDiffer"))
        assert f"{second} from {first} in packages (+cowsay=3.03)" in roots()[2]
        assert lab.condition("Ready", plural, name)[0] == "True"
        logs[second] = f"{COWSAY}{EQUAL}"
        await lab.until(lambda: roots()[:2] == ("True", "RootsEqual"))
        # A kubelet that does not answer is no difference.
        logs.clear()
        await asyncio.sleep(120)
        assert roots()[:2] == ("True", "RootsEqual")
        asked.clear()
        await asyncio.sleep(300)
        assert 10 <= len(asked) <= 24
        lab.world.scale(0)
        await lab.until(lambda: roots()[0] == "")

    run(play, shape)


@pytest.mark.parametrize("shape", [OLDER, CURRENT])
def test_logs_of_workers_are_not_read_where_all_share_a_jail(shape: str) -> None:
    async def play(lab: Lab) -> None:
        asked = report(lab, {})
        await lab.available()
        await asyncio.sleep(120)
        assert asked == []

    played(play, shape)
