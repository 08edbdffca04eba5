"""A changed template: pods are replaced within the budget, and only when their meaning changed."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from penstock.api.cluster.marks import SAME_REVISIONS
from penstock.api.kubernetes.kinds import Pod
from penstock.api.kubernetes.meta import Json
from penstock.api.slinky.labels import REVISION_HASH
from support.operator_kit import Lab, Node, Running, lab, quickstart

pytestmark = pytest.mark.api
WORKERS = [f"compute-{number}" for number in range(4)]
NEW: Json = {"spec": {"slurmd": {"env": [{"name": "ROUND", "value": "2"}]}}}


@asynccontextmanager
async def cluster(lab_: Lab) -> AsyncGenerator[Running]:
    """The example without its login, with four workers that are ready."""
    async with lab_.operator() as running:
        objects = quickstart()
        objects["NodeSet"]["spec"]["replicas"] = len(WORKERS)
        kinds = ("ConfigMap", "Controller", "RestApi", "NodeSet")
        await lab_.apply(*(objects[kind] for kind in kinds))
        await lab_.until(
            lambda: lab_.ready("NodeSet", "compute") and lab_.ready("Controller", "slurm")
        )
        yield running


def hashes(lab_: Lab) -> dict[str, str]:
    pods = [lab_.get("Pod", name) for name in WORKERS]
    return {
        pod["metadata"]["name"]: pod["metadata"]["labels"][REVISION_HASH] for pod in pods if pod
    }


def uids(lab_: Lab) -> dict[str, list[str]]:
    """All uids that each worker ever had."""
    return {name: list(lab_.kubelet.seen[f"{lab_.namespace}/{name}"]) for name in WORKERS}


def out_of_use(lab_: Lab) -> set[str]:
    """Workers that are not there, not ready, or not in use by Slurm."""
    out: set[str] = set()
    for name in WORKERS:
        pod = lab_.seen["Pod"].get(f"{lab_.namespace}/{name}")
        node = lab_.slurm.nodes.get(name)
        there = pod is not None and pod.ready and not pod.metadata.deleting
        if not there or node is None or node.base == "DOWN" or "DRAIN" in node.flags:
            out.add(name)
    return out


def numbers(lab_: Lab) -> list[int]:
    """Numbers of the recorded templates."""
    return sorted(one["revision"] for one in lab_.all("ControllerRevision"))


async def test_one_after_the_other_is_replaced_and_the_busy_one_last(api_node: Node) -> None:
    """D19, D32, S011, feature rows 37 and 40: and templates are numbered and removed."""
    async with lab(api_node) as lab_, cluster(lab_):
        first = uids(lab_)
        (number,) = numbers(lab_)
        most: list[set[str]] = []

        def look(_: Pod | None, __: Pod | None) -> None:
            most.append(out_of_use(lab_))

        lab_.seen["Pod"].subscribe(look)
        job = lab_.slurm.run("compute-3")
        await lab_.patch("NodeSet", "compute", NEW)
        await lab_.until(lambda: "DRAIN" in lab_.slurm.nodes["compute-3"].flags, within=60)
        assert lab_.has_reason("NodeSet", "compute", "RollingUpdate")
        wanted = lab_.get("NodeSet", "compute")
        assert wanted is not None
        assert hashes(lab_) == {
            **dict.fromkeys(WORKERS, wanted["status"]["nodeSetHash"]),
            "compute-3": next(iter({*hashes(lab_).values()} - {wanted["status"]["nodeSetHash"]})),
        }
        assert numbers(lab_) == [number, number + 1]
        await lab_.calm()
        assert uids(lab_)["compute-3"] == first["compute-3"]
        lab_.slurm.finish(job)
        await lab_.until(lambda: lab_.ready("NodeSet", "compute"))
        await lab_.until(lambda: numbers(lab_) == [number + 1])
        assert [len(every) for every in uids(lab_).values()] == [2, 2, 2, 2]
        assert max(len(out) for out in most) == 1
        status = wanted_status(lab_)
        assert (status["updatedReplicas"], status["nodeSetHash"]) == (4, hashes(lab_)["compute-0"])


async def test_a_change_that_is_taken_back_releases_the_pod_it_waited_for(api_node: Node) -> None:
    async with lab(api_node) as lab_, cluster(lab_):
        first = uids(lab_)
        for name in WORKERS:
            lab_.slurm.run(name)
        await lab_.patch("NodeSet", "compute", NEW)
        await lab_.until(lambda: draining(lab_) == 1)
        await lab_.patch("NodeSet", "compute", {"spec": {"slurmd": {"env": None}}})
        await lab_.until(lambda: draining(lab_) == 0 and lab_.ready("NodeSet", "compute"))
        assert uids(lab_) == first


async def test_a_restarted_operator_goes_on_with_the_same_pod(api_node: Node) -> None:
    """D32, feature row 37."""
    async with lab(api_node) as lab_:
        async with cluster(lab_):
            jobs = [lab_.slurm.run(name) for name in WORKERS]
            await lab_.patch("NodeSet", "compute", NEW)
            await lab_.until(lambda: draining(lab_) == 1)
        taken = {name for name, node in lab_.slurm.nodes.items() if "DRAIN" in node.flags}
        async with lab_.operator():
            await lab_.until(lambda: lab_.has_reason("NodeSet", "compute", "RollingUpdate"))
            await lab_.calm()
            assert taken == {n for n, node in lab_.slurm.nodes.items() if "DRAIN" in node.flags}
            for job in jobs:
                lab_.slurm.finish(job)
            await lab_.until(lambda: lab_.ready("NodeSet", "compute"), within=60)
            assert [len(every) for every in uids(lab_).values()] == [2, 2, 2, 2]


async def test_pods_that_another_operator_made_of_the_same_template_stay(api_node: Node) -> None:
    """S035: slurm-operator may hash it to something else; its pods are taken over as they are."""
    async with lab(api_node) as lab_:
        async with cluster(lab_):
            first = uids(lab_)
        theirs: Json = {"metadata": {"labels": {REVISION_HASH: "theirs"}}}
        for name in WORKERS:
            await lab_.patch("Pod", name, theirs)
        for name in lab_.names("ControllerRevision"):
            await lab_.delete("ControllerRevision", name)
        status: Json = {"status": {"nodeSetHash": "theirs"}}
        await lab_.patch("NodeSet", "compute", status, subresource="status")
        await lab_.until(lambda: wanted_status(lab_)["nodeSetHash"] == "theirs")
        for _ in range(2):
            async with lab_.operator():
                await lab_.until(lambda: wanted_status(lab_)["nodeSetHash"] != "theirs")
                await lab_.until(lambda: lab_.ready("NodeSet", "compute"))
                await lab_.calm()
                assert uids(lab_) == first
                assert wanted_status(lab_)["updatedReplicas"] == len(WORKERS)
        (record,) = lab_.all("ControllerRevision")
        assert record["metadata"]["annotations"][SAME_REVISIONS] == "theirs"
        async with lab_.operator():
            await lab_.patch("NodeSet", "compute", NEW)
            await lab_.until(
                lambda: lab_.ready("NodeSet", "compute") and "theirs" not in hashes(lab_).values(),
                within=60,
            )


def wanted_status(lab_: Lab) -> Json:
    found = lab_.get("NodeSet", "compute")
    assert found is not None
    return found["status"]


def draining(lab_: Lab) -> int:
    return sum("DRAIN" in node.flags for node in lab_.slurm.nodes.values())


async def test_a_recorded_template_is_brought_back_by_an_annotation(api_node: Node) -> None:
    """S152: the spec is as it was, and workers that still have that template stay."""
    async with lab(api_node) as lab_, cluster(lab_):
        strategy: Json = {"updateStrategy": {"type": "OnDelete"}, "revisionHistoryLimit": 10}
        await lab_.patch("NodeSet", "compute", {"spec": strategy})
        await lab_.until(lambda: spec_of(lab_).get("revisionHistoryLimit") == 10)
        before, first = lab_.get("NodeSet", "compute"), uids(lab_)
        assert before is not None
        for number in range(2, 5):
            env = [{"name": "ROUND", "value": str(number)}]
            await lab_.patch("NodeSet", "compute", {"spec": {"slurmd": {"env": env}}})
            await lab_.until(lambda n=number: len(lab_.names("ControllerRevision")) == n)
        listed = sorted(lab_.all("ControllerRevision"), key=lambda one: one["revision"])
        assert [one["revision"] for one in listed] == [1, 2, 3, 4]
        assert all(one["metadata"]["creationTimestamp"] for one in listed)
        back: Json = {"nodeset.penstock.dev/rollback-to": listed[0]["metadata"]["name"]}
        await lab_.patch("NodeSet", "compute", {"metadata": {"annotations": back}})
        await lab_.until(lambda: "ROUND" not in str(spec_of(lab_)))
        assert spec_of(lab_) == before["spec"]
        await lab_.calm()
        assert uids(lab_) == first


def spec_of(lab_: Lab) -> Json:
    """The NodeSet's spec."""
    found = lab_.get("NodeSet", "compute")
    assert found is not None
    return found["spec"]
