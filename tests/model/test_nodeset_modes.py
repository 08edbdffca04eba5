"""The whole operator, in simulated time: DaemonSet mode, claims and pins of worker pods.

Feature rows 23, 33, 36, 42, 43, 45, 46; D8; F08.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from fault_plans.daemonset import machine_of
from fault_plans.plan import Layout
from fault_plans.promises import final_state as expected
from fault_plans.world import CORE, NODESET, SPACE, World
from penstock.api.kubernetes.meta import Json
from penstock.api.slinky.labels import FEATURES, HOSTNAME_OVERRIDE, POD_CORDON, POD_PROTECT
from penstock.simulation.kubelet.pod_lifecycle import node_name
from support.stories import NODESET_PATH, story, well

DAEMONS = Layout(daemons=((SPACE, NODESET),))


async def until(condition: Callable[[], object]) -> None:
    for _ in range(300):
        if condition():
            return
        await asyncio.sleep(1.0)
    raise AssertionError("it did not come to it")


def workers(world: World) -> dict[str, Json]:
    """Worker pods by machine."""
    return {
        machine_of(pod): pod
        for pod in world.server.objects("/pods", SPACE)
        if pod["metadata"]["labels"].get("app.kubernetes.io/name") == "slurmd"
    }


def places(world: World) -> dict[str, str]:
    """Machines of worker pods by their names: two may be on one."""
    return {
        pod["metadata"]["name"]: machine_of(pod)
        for pod in world.server.objects("/pods", SPACE)
        if pod["metadata"]["labels"].get("app.kubernetes.io/name") == "slurmd"
    }


def uid(pod: Json) -> str:
    return pod["metadata"]["uid"]


def claims(world: World) -> list[str]:
    return [one["metadata"]["name"] for one in world.server.objects("/persistentvolumeclaims")]


def test_busy_daemons_are_not_evicted():
    """D8: Kubernetes expects as many pods as `spec.replicas` says, which is one here."""

    async def tell(world: World) -> None:
        while world.slurm.free_nodes():
            world.slurm.submit(1)
        await until(
            lambda: all(p["metadata"]["labels"].get(POD_PROTECT) for p in workers(world).values())
        )
        for pod in workers(world).values():
            path = f"{CORE}/pods/{pod['metadata']['name']}/eviction"
            assert world.ask("POST", path, {"metadata": {}}).status == 429
        world.heal()

    assert story(tell, DAEMONS).slurm.lost_jobs == []


def test_a_machine_that_joins_gets_a_worker_and_one_that_leaves_loses_its_record():
    """Feature row 46."""

    async def tell(world: World) -> None:
        assert len(workers(world)) == 3
        world.machines.add("machine-3")
        await until(lambda: "machine-3" in world.slurm.ctld.nodes)
        world.machines.remove("machine-3")
        await until(lambda: "machine-3" not in world.slurm.ctld.nodes)
        await well(world)

    story(tell, DAEMONS)


def test_a_renamed_machine_is_another_slurm_node():
    """Feature row 45."""

    async def tell(world: World) -> None:
        body = {"metadata": {"annotations": {HOSTNAME_OVERRIDE: "node07"}}}
        world.ask("PATCH", "/api/v1/nodes/machine-1", body)
        await until(lambda: "node07" in world.slurm.ctld.nodes)
        await well(world)
        assert node_name(workers(world)["machine-1"]) == "node07"
        assert "machine-1" not in world.slurm.ctld.nodes

    story(tell, DAEMONS)


def test_a_scaling_mode_is_switched_and_back_with_jobs_running():
    async def tell(world: World) -> None:
        world.slurm.submit(1)
        for mode in ("DaemonSet", "StatefulSet"):
            world.ask("PATCH", NODESET_PATH, {"spec": {"scalingMode": mode}})
            await asyncio.sleep(120.0)
            for job in world.slurm.running():
                world.slurm.finish(job)
            await well(world)
            world.slurm.submit(1)
        world.heal()

    assert story(tell).slurm.lost_jobs == []


def test_an_update_waits_with_the_worker_of_a_machine_that_takes_no_new_one():
    """It would be gone for as long as the taint is there. Found by plan 12047."""

    async def tell(world: World) -> None:
        before = uid(workers(world)["machine-1"])
        world.machines.taint("machine-1", "NoSchedule")
        world.ask("PATCH", NODESET_PATH, {"spec": {"slurmd": {"image": "slurmd:2"}}})
        others = ("machine-0", "machine-2")
        await until(lambda: all(_image(workers(world).get(one)) == "slurmd:2" for one in others))
        await asyncio.sleep(120.0)
        assert uid(workers(world)["machine-1"]) == before
        assert len(world.slurm.free_nodes()) == 3
        world.machines.taint("machine-1", None)
        await until(lambda: _image(workers(world).get("machine-1")) == "slurmd:2")
        await well(world)

    story(tell, DAEMONS)


def _image(pod: Json | None) -> str:
    containers: list[Json] = pod["spec"]["containers"] if pod is not None else []
    return next((str(one["image"]) for one in containers if one["name"] == "slurmd"), "")


def test_a_switched_mode_leaves_a_worker_that_a_user_cordoned_until_its_cordon_is_gone():
    """The cordon would be lost with the pod. Found by plan 1629."""

    async def tell(world: World) -> None:
        pod = workers(world)["machine-1"]["metadata"]["name"]
        path = f"{CORE}/pods/{pod}"
        world.ask("PATCH", path, {"metadata": {"annotations": {POD_CORDON: "true"}}})
        world.ask("PATCH", NODESET_PATH, {"spec": {"scalingMode": "StatefulSet"}})
        await well(world)
        await asyncio.sleep(120.0)
        names = {one["metadata"]["name"] for one in world.server.objects("/pods", SPACE)}
        assert {pod, f"{NODESET}-0", f"{NODESET}-1"} <= names
        assert expected.missing(world) == []
        world.ask("PATCH", path, {"metadata": {"annotations": {POD_CORDON: None}}})
        await until(lambda: world.find("/pods", pod) is None)
        await well(world)

    story(tell, DAEMONS)


def test_claims_are_there_before_their_pods_and_go_as_declared():
    """Feature row 42, S050: one claim a pod, by the pod's name."""
    spec: Json = {
        "volumeClaimTemplates": [{"metadata": {"name": "cache"}, "spec": {}}],
        "persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete", "whenDeleted": "Delete"},
    }

    async def tell(world: World) -> None:
        assert claims(world) == ["cache-compute-0", "cache-compute-1"]
        pod = world.find("/pods", "compute-1")
        assert pod is not None
        volume = next(one for one in pod["spec"]["volumes"] if one["name"] == "cache")
        assert volume["persistentVolumeClaim"]["claimName"] == "cache-compute-1"
        world.ask("DELETE", f"{CORE}/pods/compute-1", {})
        await until(lambda: world.find("/pods", "compute-1") != pod)
        await well(world)
        assert claims(world) == ["cache-compute-0", "cache-compute-1"]
        world.scale(1)
        await until(lambda: claims(world) == ["cache-compute-0"])
        world.scale(2)
        await until(lambda: len(claims(world)) == 2)
        await well(world)
        world.ask("DELETE", NODESET_PATH, {})
        await until(lambda: not claims(world))

    story(tell, spec=spec)


def test_a_nodeset_that_is_made_again_at_once_gets_claims_of_its_own():
    """Those of the former one were given to its pods, and went while they ran or not at all."""

    def uids(world: World) -> set[str]:
        return {one["metadata"]["uid"] for one in world.server.objects("/persistentvolumeclaims")}

    async def tell(world: World) -> None:
        world.server.collect_after = 5.0
        before = uids(world)
        assert len(before) == 2
        world.ask("DELETE", NODESET_PATH, {})
        await until(lambda: world.find("slinky.slurm.net/nodesets", NODESET) is None)
        world.declare_nodeset(2)
        await until(lambda: len(uids(world) - before) == 2)
        await well(world)
        assert not uids(world) & before

    story(tell, Layout(claims=("Retain", "Delete")))


def test_a_pinned_pod_returns_to_its_machine():
    """Feature row 43."""

    async def tell(world: World) -> None:
        before = places(world)
        nodeset = world.find("slinky.slurm.net/nodesets", NODESET)
        assert nodeset is not None
        assert nodeset["status"]["ordinalToNode"] == {
            name.rpartition("-")[2]: machine for name, machine in before.items()
        }
        for name in before:
            world.ask("DELETE", f"{CORE}/pods/{name}", {})
        await asyncio.sleep(30.0)
        await well(world)
        assert places(world) == before

    story(tell, spec={"pinToNode": True})


def test_features_of_machines_reach_their_nodes_and_leave_those_of_others():
    """Feature row 50."""

    async def tell(world: World) -> None:
        machine, pod = next(iter(workers(world).items()))
        node = world.slurm.ctld.nodes[pod["metadata"]["name"]]
        for words, features in (("a100,nvlink", {"k8s/a100", "k8s/nvlink"}), (None, set[str]())):
            body = {"metadata": {"annotations": {FEATURES: words}}}
            world.ask("PATCH", f"/api/v1/nodes/{machine}", body)
            await until(lambda want=features: set(node.features) == {NODESET, *want})
            assert set(node.active_features) == {NODESET, *features}
        await well(world)

    story(tell)
