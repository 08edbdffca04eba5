"""The life of worker pods: more, fewer, cordoned, gone; and never before Slurm says so."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import msgspec
import pytest

from penstock.api.kubernetes.kinds import NODES, PODS, Pod
from penstock.api.kubernetes.meta import Json
from penstock.api.slinky.labels import POD_CORDON, POD_CORDON_SHORT
from penstock.api.slinky.nodeset import NODESETS
from penstock.controllers.runtime.settings import Settings
from penstock.kube import Selector
from penstock.simulation.faults import Fault
from support.kubelet import MACHINE
from support.operator_kit import Lab, Node, Running, lab, quickstart

pytestmark = pytest.mark.api


@asynccontextmanager
async def cluster(
    node: Node, settings: Settings | None = None
) -> AsyncGenerator[tuple[Lab, Running]]:
    """The example without its login, with both workers ready."""
    async with lab(node) as lab_, lab_.operator(settings=settings) as running:
        objects = quickstart()
        kinds = ("ConfigMap", "Controller", "RestApi", "NodeSet")
        await lab_.apply(*(objects[kind] for kind in kinds))
        await lab_.until(
            lambda: lab_.ready("NodeSet", "compute") and lab_.ready("Controller", "slurm")
        )
        yield lab_, running


async def test_a_nodeset_grows_by_patch_and_by_its_scale(api_node: Node) -> None:
    """S012, feature row 59."""
    async with cluster(api_node) as (lab_, running):
        before = {key: list(uids) for key, uids in lab_.kubelet.seen.items()}
        await lab_.patch("NodeSet", "compute", {"spec": {"replicas": 3}})
        await lab_.until(lambda: len(lab_.slurm.nodes) == 3 and lab_.ready("NodeSet", "compute"))
        await lab_.client.patch_raw(
            NODESETS, lab_.namespace, "compute", {"spec": {"replicas": 5}}, subresource="scale"
        )
        await lab_.until(lambda: len(lab_.slurm.nodes) == 5 and lab_.ready("NodeSet", "compute"))
        scale = await scale_of(lab_)
        assert (scale["spec"]["replicas"], scale["status"]["replicas"]) == (5, 5)
        selected = await lab_.client.list(
            PODS, Selector(lab_.namespace, scale["status"]["selector"])
        )
        assert [one.metadata.name for one in selected.items] == lab_.workers()
        assert lab_.workers() == [f"compute-{number}" for number in range(5)]
        assert before.items() <= lab_.kubelet.seen.items()
        assert [one for one in running.writes if one.startswith("DELETE")] == []


async def test_a_pod_goes_after_its_job_and_after_the_drain(api_node: Node) -> None:
    """S013, feature row 29."""
    async with cluster(api_node) as (lab_, running):
        ends = ends_of(lab_)
        job = lab_.slurm.run("compute-0", "compute-1")
        await lab_.patch("NodeSet", "compute", {"spec": {"replicas": 1}})
        await lab_.until(lambda: "DRAIN" in lab_.slurm.nodes["compute-1"].flags)
        reason = lab_.slurm.nodes["compute-1"].reason
        assert reason.startswith("slurm-operator: ")
        assert "compute-1" in reason
        # Two answers of Slurm later the pod is there as it was.
        await lab_.rest.called(4 + sum("/nodes/" in one for one in lab_.rest.calls), "/nodes/")
        assert lab_.workers() == ["compute-0", "compute-1"]
        assert ends == {}
        lab_.slurm.finish(job)
        await lab_.until(lambda: lab_.workers() == ["compute-0"])
        await lab_.until(lambda: "compute-1" not in lab_.slurm.nodes)
        await lab_.until(lambda: lab_.ready("NodeSet", "compute"))
        assert ends == {"compute-1": (True, False)}
        path = f"/api/v1/namespaces/{lab_.namespace}/pods/compute-1"
        assert [one for one in running.writes if one.startswith("DELETE")] == [f"DELETE {path}"]


@pytest.mark.parametrize("fault", [Fault.REFUSE, Fault.ERROR_IN_200, Fault.EMPTY_NODES])
async def test_nothing_goes_while_slurm_gives_no_answer(api_node: Node, fault: Fault) -> None:
    """D4."""
    async with cluster(api_node) as (lab_, running):
        lab_.rest.fault = fault
        await lab_.patch("NodeSet", "compute", {"spec": {"replicas": 0}})
        await lab_.until(lambda: lab_.condition("NodeSet", "compute") is not None)
        await lab_.calm(2)
        assert lab_.workers() == ["compute-0", "compute-1"]
        assert [one for one in running.writes if one.startswith("DELETE")] == []
        lab_.rest.fault = Fault.NONE
        await lab_.until(lambda: lab_.workers() == [] and not lab_.slurm.nodes)


@pytest.mark.parametrize("key", [POD_CORDON, POD_CORDON_SHORT])
async def test_a_cordoned_pod_has_its_node_drained_until_the_cordon_goes(
    api_node: Node, key: str
) -> None:
    """D5, S016."""
    async with cluster(api_node) as (lab_, _):
        node = lab_.slurm.nodes["compute-0"]
        await lab_.patch("Pod", "compute-0", {"metadata": {"annotations": {key: "true"}}})
        await lab_.until(lambda: "DRAIN" in node.flags)
        await lab_.patch("NodeSet", "compute", {"metadata": {"labels": {"look": "again"}}})
        await lab_.calm()
        assert "DRAIN" in node.flags
        found = lab_.get("Pod", "compute-0")
        assert found is not None
        assert found["metadata"]["annotations"][key] == "true"
        await lab_.patch("Pod", "compute-0", {"metadata": {"annotations": {key: None}}})
        await lab_.until(lambda: "DRAIN" not in node.flags)
        assert lab_.workers() == ["compute-0", "compute-1"]


async def test_conditions_of_a_cordoned_kubernetes_node_are_the_reason_of_its_drains(
    api_node: Node,
) -> None:
    """Feature rows 33 and 34: those that the operator was told, and none drains by itself."""
    broken: Json = {"type": "GpuBroken", "status": "True", "reason": "Xid79", "message": "gone"}
    other: Json = {"type": "FanBroken", "status": "True", "reason": "Fan", "message": "slow"}

    async def cordon(lab_: Lab, wanted: bool) -> None:
        await lab_.user.patch(NODES, "", MACHINE, {"spec": {"unschedulable": wanted}})

    async with cluster(api_node, Settings(propagated_node_conditions=("GpuBroken",))) as (lab_, _):
        nodes = lab_.slurm.nodes.values()
        try:
            status: Json = {"status": {"conditions": [broken, other]}}
            await lab_.user.patch(NODES, "", MACHINE, status, subresource="status")
            await lab_.calm(2)
            assert not any("DRAIN" in one.flags for one in nodes)
            await cordon(lab_, True)
            await lab_.until(lambda: all("DRAIN" in one.flags for one in nodes))
            assert {one.reason for one in nodes} == {"slurm-operator: (Xid79: gone)"}
        finally:
            await cordon(lab_, False)
            none: Json = {"status": {"conditions": None}}
            await lab_.user.patch(NODES, "", MACHINE, none, subresource="status")
        await lab_.until(lambda: not any("DRAIN" in one.flags for one in nodes))


async def test_with_both_cordons_the_last_one_counts(api_node: Node) -> None:
    async with cluster(api_node) as (lab_, _):
        node = lab_.slurm.nodes["compute-0"]
        both: Json = {POD_CORDON: "true", POD_CORDON_SHORT: "true"}
        await lab_.patch("Pod", "compute-0", {"metadata": {"annotations": both}})
        await lab_.until(lambda: "DRAIN" in node.flags)
        await lab_.patch("Pod", "compute-0", {"metadata": {"annotations": {POD_CORDON: None}}})
        await lab_.calm()
        assert "DRAIN" in node.flags
        await lab_.patch(
            "Pod", "compute-0", {"metadata": {"annotations": {POD_CORDON_SHORT: None}}}
        )
        await lab_.until(lambda: "DRAIN" not in node.flags)


async def test_a_deleted_nodeset_is_drained_before_it_goes(api_node: Node) -> None:
    """D18."""
    async with cluster(api_node) as (lab_, _):
        ends = ends_of(lab_)
        job = lab_.slurm.run("compute-0")
        await lab_.delete("NodeSet", "compute")
        await lab_.until(lambda: lab_.workers() == ["compute-0"])
        await lab_.until(lambda: "DRAIN" in lab_.slurm.nodes["compute-0"].flags)
        await lab_.calm(2)
        assert lab_.names("NodeSet") == ["compute"]
        assert lab_.workers() == ["compute-0"]
        lab_.slurm.finish(job)
        await lab_.until(lambda: lab_.names("NodeSet") == [])
        assert lab_.workers() == []
        assert dict(lab_.slurm.nodes) == {}
        assert set(ends.values()) == {(True, False)}


async def test_without_its_controller_a_nodeset_keeps_its_pods_and_can_go(api_node: Node) -> None:
    async with cluster(api_node) as (lab_, _):
        lab_.slurm.run("compute-0")
        await lab_.delete("Controller", "slurm")
        await lab_.until(lambda: lab_.has_reason("NodeSet", "compute", "ControllerNotFound"))
        await lab_.calm()
        assert lab_.workers() == ["compute-0", "compute-1"]
        await lab_.delete("NodeSet", "compute")
        await lab_.until(lambda: lab_.names("NodeSet") == [] and lab_.workers() == [])


def ends_of(lab_: Lab) -> dict[str, tuple[bool, bool]]:
    """For each worker that is told to end: whether its node was drained, and held by a job."""
    found: dict[str, tuple[bool, bool]] = {}

    def note(old: Pod | None, new: Pod | None) -> None:
        ends = new is not None and new.metadata.deleting and not (old and old.metadata.deleting)
        if new is None or not ends or new.metadata.name not in lab_.slurm.nodes:
            return
        name = new.metadata.name
        drained = "DRAIN" in lab_.slurm.nodes[name].flags
        found[name] = (drained, lab_.slurm.is_allocated(name))

    lab_.seen["Pod"].subscribe(note)
    return found


async def scale_of(lab_: Lab) -> Json:
    path = f"{NODESETS.path(lab_.namespace, 'compute')}/scale"
    return msgspec.json.decode(await lab_.get_raw(path))
