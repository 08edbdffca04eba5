"""What changes in Slurm with no new pod: a machine's topology, counts of generic resources."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from penstock.api.kubernetes.kinds import NODES
from penstock.api.kubernetes.meta import Json
from penstock.api.slinky.labels import TOPOLOGY
from support.kubelet import MACHINE
from support.operator_kit import Lab, Node, Running, lab

pytestmark = pytest.mark.api
GROUP = "slinky.slurm.net/v1beta1"
CONTROLLER: Json = {"apiVersion": GROUP, "kind": "Controller", "metadata": {"name": "slurm"}}
RESTAPI: Json = {
    "apiVersion": GROUP,
    "kind": "RestApi",
    "metadata": {"name": "slurm"},
    "spec": {"controllerRef": {"name": "slurm"}},
}
WORKERS = ("compute-0", "compute-1")


def workers(extra_conf: str = "") -> Json:
    return {
        "apiVersion": GROUP,
        "kind": "NodeSet",
        "metadata": {"name": "compute"},
        "spec": {
            "controllerRef": {"name": "slurm"},
            "replicas": len(WORKERS),
            "extraConf": extra_conf,
            "oversubscribeNode": True,
            "updateStrategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxUnavailable": "100%"},
            },
        },
    }


@asynccontextmanager
async def cluster(node: Node, extra_conf: str = "") -> AsyncGenerator[tuple[Lab, Running]]:
    """Two workers on the one machine there is."""
    async with lab(node) as lab_, lab_.operator() as running:
        spec: Json = {**CONTROLLER, "spec": {"extraConf": "GresTypes=disk\n"}}
        await lab_.apply(spec, RESTAPI, workers(extra_conf))
        await lab_.until(lambda: lab_.ready("NodeSet", "compute"))
        yield lab_, running


async def annotate(lab_: Lab, place: str | None) -> None:
    note = {"metadata": {"annotations": {TOPOLOGY: place}}}
    await lab_.user.patch(NODES, "", MACHINE, note)


def topologies(lab_: Lab) -> set[str]:
    return {lab_.slurm.nodes[name].topology for name in WORKERS}


def copied(lab_: Lab) -> set[str]:
    pods = [lab_.get("Pod", name) or {"metadata": {}} for name in WORKERS]
    return {pod["metadata"].get("annotations", {}).get(TOPOLOGY, "-") for pod in pods}


async def test_workers_follow_the_annotation_of_their_kubernetes_node(api_node: Node) -> None:
    """Feature row 49."""
    async with cluster(api_node) as (lab_, running):
        lab_.slurm.topologies = {"tree"}
        uids = {key: list(found) for key, found in lab_.kubelet.seen.items()}
        try:
            await annotate(lab_, "tree:s1")
            await lab_.until(lambda: topologies(lab_) == {"tree:s1"})
            await lab_.until(lambda: copied(lab_) == {"tree:s1"})
            await annotate(lab_, "nosuch:s1")
            await lab_.until(lambda: lab_.has_reason("NodeSet", "compute", "TopologyRefused"))
            told = lab_.condition("NodeSet", "compute", "Stalled")
            assert told is not None
            assert "topology configuration is not available" in told.message
            assert topologies(lab_) == {"tree:s1"}
            await annotate(lab_, "tree:s2")
            await lab_.until(lambda: topologies(lab_) == {"tree:s2"})
            await lab_.until(lambda: lab_.ready("NodeSet", "compute"))
            await annotate(lab_, None)
            await lab_.until(lambda: topologies(lab_) == {""})
            await lab_.until(lambda: copied(lab_) == {"-"})
        finally:
            await annotate(lab_, None)
        await lab_.calm()
        before = len(running.writes)
        await lab_.calm()
        assert len(running.writes) == before
        assert lab_.kubelet.seen == uids


async def test_fewer_resources_need_no_pod_and_what_slurm_rejects_does(api_node: Node) -> None:
    async with cluster(api_node, "Gres=disk:4") as (lab_, _):
        uids = {key: list(found) for key, found in lab_.kubelet.seen.items()}
        await lab_.apply(workers("Gres=disk:2"))
        await lab_.until(lambda: {lab_.slurm.nodes[n].gres for n in WORKERS} == {"disk:2"})
        await lab_.until(lambda: lab_.ready("NodeSet", "compute"))
        assert lab_.kubelet.seen == uids
        lab_.slurm.fixed_gres = True
        await lab_.apply(workers("Gres=disk:1"))
        keys = [f"{lab_.namespace}/{name}" for name in WORKERS]
        await lab_.until(lambda: all(len(lab_.kubelet.seen[key]) == 2 for key in keys))
        await lab_.until(lambda: lab_.ready("NodeSet", "compute"))
