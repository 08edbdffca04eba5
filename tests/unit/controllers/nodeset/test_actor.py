"""Nothing that cannot be undone is done on what was true a moment ago."""

from __future__ import annotations

import time
from dataclasses import replace

import msgspec
import pytest

from penstock.api.kubernetes.kinds import Pod
from penstock.api.kubernetes.meta import ObjectMeta
from penstock.api.slinky.controller import Controller
from penstock.controllers.runtime.concurrency import AT_ONCE
from penstock.decide.action import (
    CreatePod,
    DeleteNodeRecord,
    DeletePod,
    DeletionGround,
    DrainNode,
    EventReason,
    ResumeNode,
    SetNodeComment,
    SetNodeTopology,
    UndrainNode,
)
from penstock.decide.slurm_node import gres_change
from penstock.kube import ConflictError, ForbiddenError
from penstock.model.worker_slot import WorkerSlot
from penstock.render.parts.default_images import Images
from penstock.render.slinky.inputs import ClusterInputs
from penstock.simulation.faults import Fault
from penstock.slurm.known import Known
from penstock.translate.slinky.worker_set import MARKS
from support import nodesets
from unit.controllers.stage import PODS_PATH, Stage, put, stage
from unit.kube.fake_api import Fault as ApiFault

WHY = EventReason("ScaleIn", "fewer are wanted")
OURS = "slurm-operator: Pod (slurm/compute-0) is pending termination for scale-in"
SILENT = [Fault.REFUSE, Fault.ERROR_IN_200, Fault.EMPTY_NODES, Fault.CONTROLLER_DOWN, Fault.EXPIRED]


def delete(pod: Pod, ground: DeletionGround = DeletionGround.DRAINED) -> DeletePod:
    meta = pod.metadata
    return DeletePod(meta.name, meta.uid, meta.resource_version, meta.name, ground, WHY)


def declare_anew(scene: Stage) -> None:
    """Somebody has changed the NodeSet since it was looked at."""
    meta = scene.nodeset.metadata
    later = msgspec.structs.replace(
        meta, generation=meta.generation + 1, resource_version="1000000"
    )
    put(scene.caches.nodesets, msgspec.structs.replace(scene.nodeset, metadata=later))


def drained(scene: Stage, name: str = "compute-0") -> Pod:
    """A pod of a node that Slurm has drained."""
    scene.slurm.nodes[name].flags.add("DRAIN")
    scene.slurm.nodes[name].reason = OURS
    scene.slurm.touch()
    pod = nodesets.pod(int(name.rpartition("-")[2]))
    scene.place(pod)
    return pod


async def test_a_drained_node_s_pod_is_deleted_in_exactly_the_version_that_was_seen():
    async with stage(nodesets.nodeset(), "compute-0") as scene:
        pod = drained(scene)
        assert await scene.act(delete(pod))
        assert scene.pods == []
        assert scene.deletes() == [{"uid": pod.metadata.uid, "resourceVersion": "7"}]


async def test_a_node_that_became_busy_after_the_decision_keeps_its_pod():
    async with stage(nodesets.nodeset(), "compute-0") as scene:
        pod = drained(scene)
        await scene.link.mirror.poll()
        scene.slurm.run("compute-0")
        assert not await scene.act(delete(pod))
        assert scene.pods == ["compute-0"]
        assert scene.deletes() == []


async def test_a_node_that_was_undrained_after_the_decision_keeps_its_pod():
    async with stage(nodesets.nodeset(), "compute-0") as scene:
        pod = drained(scene)
        await scene.link.mirror.poll()
        scene.slurm.update_node("compute-0", ["UNDRAIN"], {})
        assert not await scene.act(delete(pod))
        assert scene.deletes() == []


@pytest.mark.parametrize("fault", SILENT)
async def test_a_pod_stays_when_slurm_gives_no_answer_now(fault: Fault):
    async with stage(nodesets.nodeset(), "compute-0") as scene:
        pod = drained(scene)
        await scene.link.mirror.poll()
        scene.rest.fault = fault
        assert not await scene.act(delete(pod))
        assert scene.deletes() == []


async def test_a_pod_that_took_the_other_s_place_stays():
    async with stage(nodesets.nodeset(), "compute-0") as scene:
        pod = drained(scene)
        meta = msgspec.structs.replace(pod.metadata, uid="another")
        scene.place(msgspec.structs.replace(pod, metadata=meta))
        assert await scene.act(delete(pod))
        assert scene.pods == ["compute-0"]
        assert scene.deletes() == []


@pytest.mark.parametrize("field", ["uid", "resourceVersion"])
async def test_a_pod_that_the_cache_shows_too_late_as_another_stays(field: str):
    async with stage(nodesets.nodeset(), "compute-0") as scene:
        pod = drained(scene)
        live = scene.api.objects["/api/v1/namespaces/slurm/pods/compute-0"]
        live["metadata"][field] = "8"
        with pytest.raises(ConflictError):
            await scene.act(delete(pod))
        assert scene.pods == ["compute-0"]


async def test_a_refused_delete_keeps_none_of_the_others_back():
    async with stage(nodesets.nodeset(), "compute-0", "compute-1") as scene:
        first, second = drained(scene), drained(scene, "compute-1")
        scene.slurm.run("compute-0")
        assert not await scene.act(delete(first), delete(second))
        assert scene.pods == ["compute-0"]


async def test_each_lot_of_a_large_batch_rests_on_an_answer_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("penstock.controllers.nodeset.actor.AT_ONCE", 1)
    async with stage(nodesets.nodeset(), "compute-0", "compute-1") as scene:
        pods = [drained(scene), drained(scene, "compute-1")]
        await scene.link.mirror.poll()
        before = sum("/nodes/" in call for call in scene.rest.calls)
        await scene.act(*map(delete, pods))
        assert sum("/nodes/" in call for call in scene.rest.calls) - before >= 2


async def test_an_abandoned_nodeset_needs_no_slurm_to_go():
    async with stage(nodesets.nodeset()) as scene:
        pod = nodesets.pod()
        scene.place(pod)
        gone = delete(pod, DeletionGround.CONTROLLER_GONE)
        assert not await scene.act(gone, link=False)
        assert scene.pods == ["compute-0"]
        assert await scene.act(gone, link=False, abandoned=True)
        assert scene.pods == []


async def test_a_drain_carries_our_reason():
    async with stage(nodesets.nodeset(), "compute-0") as scene:
        assert await scene.act(DrainNode("compute-0", OURS, override=True, why=WHY))
        node = scene.slurm.nodes["compute-0"]
        assert "DRAIN" in node.flags
        assert node.reason == OURS
        known = scene.link.mirror.snapshot.nodes
        assert isinstance(known, Known)
        assert known.value["compute-0"].drain


@pytest.mark.parametrize("fault", SILENT)
async def test_no_drain_is_sent_to_a_silent_slurm(fault: Fault):
    async with stage(nodesets.nodeset(), "compute-0") as scene:
        scene.rest.fault = fault
        assert not await scene.act(DrainNode("compute-0", OURS, override=True, why=WHY))
        assert scene.posts() == []


async def test_what_is_declared_anew_while_slurm_answers_is_decided_on_anew():
    async with stage(nodesets.nodeset(), "compute-0", "compute-1") as scene:
        pod = drained(scene)
        declare_anew(scene)
        assert not await scene.act(DrainNode("compute-1", OURS, override=True, why=WHY))
        assert not await scene.act(UndrainNode("compute-0", WHY))
        assert scene.posts() == []
        assert not await scene.act(delete(pod))
        assert scene.pods == ["compute-0"]


async def test_somebody_else_s_reason_is_not_replaced_though_it_came_after_the_decision():
    async with stage(nodesets.nodeset(), "compute-0") as scene:
        scene.slurm.update_node("compute-0", ["DRAIN"], {"reason": "disk broken"}, user="root")
        await scene.act(DrainNode("compute-0", OURS, override=True, why=WHY))
        assert scene.slurm.nodes["compute-0"].reason == "disk broken"


async def test_somebody_else_s_drain_is_not_taken_back():
    async with stage(nodesets.nodeset(), "compute-0") as scene:
        scene.slurm.update_node("compute-0", ["DRAIN"], {"reason": "disk broken"}, user="root")
        assert not await scene.act(UndrainNode("compute-0", WHY))
        assert not await scene.act(ResumeNode("compute-0", WHY))
        assert scene.posts() == []
        scene.slurm.update_node("compute-0", ["DRAIN"], {"reason": OURS})
        assert await scene.act(UndrainNode("compute-0", WHY))
        assert "DRAIN" not in scene.slurm.nodes["compute-0"].flags


async def test_what_slurm_refuses_is_left_for_another_try():
    async with stage(nodesets.nodeset(), "compute-0", "compute-1") as scene:
        refused = DrainNode("compute-0", OURS, override=True, why=WHY)
        scene.slurm.lose("compute-0")
        assert not await scene.act(refused)


async def test_the_record_of_a_pod_that_is_gone_is_deleted():
    async with stage(nodesets.nodeset(), "compute-0", "compute-1") as scene:
        scene.slurm.update_node("compute-0", ["DOWN"], {"reason": OURS})
        assert await scene.act(DeleteNodeRecord("compute-0", WHY))
        assert list(scene.slurm.nodes) == ["compute-1"]


async def test_a_record_that_came_to_life_again_stays():
    async with stage(nodesets.nodeset(), "compute-0", "compute-1") as scene:
        assert not await scene.act(DeleteNodeRecord("compute-0", WHY))
        scene.slurm.update_node("compute-0", ["DRAIN"], {"reason": OURS})
        scene.slurm.run("compute-0")
        assert not await scene.act(DeleteNodeRecord("compute-0", WHY))
        scene.rest.fault = Fault.ERROR_IN_200
        assert not await scene.act(DeleteNodeRecord("compute-1", WHY))
        assert scene.posts() == []
        assert len(scene.slurm.nodes) == 2


def cluster() -> ClusterInputs:
    meta = ObjectMeta(name="slurm", namespace="slurm", uid="controller-uid")
    return ClusterInputs(Controller(metadata=meta), Images.of("registry/{role}"))


def creates(scene: Stage) -> int:
    return sum(one.method == "POST" and one.path == PODS_PATH for one in scene.api.requests)


def slot(number: int) -> WorkerSlot:
    return WorkerSlot(f"compute-{number}", f"compute-{number}", number)


async def test_all_pods_that_are_missing_are_made():
    async with stage(nodesets.nodeset(100)) as scene:
        wanted = [CreatePod(slot(number), WHY) for number in range(100)]
        assert await scene.actor.act(scene.source(cluster()), wanted, None, is_orphaned=False)
        assert len(scene.pods) == creates(scene) == 100


async def test_a_refusal_of_one_pod_is_not_repeated_for_each_of_them():
    async with stage(nodesets.nodeset(100)) as scene:
        refused = ApiFault(403, "Forbidden", times=1000, when=lambda one: one.method == "POST")
        scene.api.faults.append(refused)
        wanted = [CreatePod(slot(number), WHY) for number in range(100)]
        with pytest.raises(ForbiddenError):
            await scene.actor.act(scene.source(cluster()), wanted, None, is_orphaned=False)
        assert creates(scene) <= AT_ONCE


async def test_the_record_of_a_reserved_node_stays_as_long_as_the_reservation():
    async with stage(nodesets.nodeset(), "compute-0", "compute-1") as scene:
        for name in ("compute-0", "compute-1"):
            scene.slurm.nodes[name].flags.add("DRAIN")
        start = {"set": True, "number": int(time.time()) + 3600}
        body = {"name": "class", "start_time": start, "users": ["a"], "node_list": ["compute-1"]}
        scene.slurm.update_reservation(body)
        actions = [DeleteNodeRecord(name, WHY) for name in ("compute-0", "compute-1")]
        assert not await scene.act(*actions)
        assert list(scene.slurm.nodes) == ["compute-1"]
        scene.slurm.update_reservation({"name": "class", "flags": ["ALL_NODES"]})
        assert await scene.act(actions[1])
        assert not scene.slurm.nodes


async def test_a_deleted_nodeset_takes_the_records_of_reserved_nodes_with_it():
    async with stage(nodesets.nodeset(deleted=nodesets.NOW), "compute-0") as scene:
        scene.slurm.nodes["compute-0"].flags.add("DRAIN")
        start = {"set": True, "number": int(time.time()) + 3600}
        body = {"name": "class", "start_time": start, "users": ["a"], "node_list": ["compute-0"]}
        scene.slurm.update_reservation(body)
        assert await scene.act(DeleteNodeRecord("compute-0", WHY))
        assert not scene.slurm.nodes


async def test_records_of_many_nodes_are_deleted_and_a_busy_one_stays():
    names = [f"compute-{number}" for number in range(40)]
    async with stage(nodesets.nodeset(), *names) as scene:
        for name in names:
            scene.slurm.nodes[name].flags.add("DRAIN")
        scene.slurm.run("compute-7")
        actions = [DeleteNodeRecord(name, WHY) for name in names]
        assert not await scene.act(*actions)
        assert list(scene.slurm.nodes) == ["compute-7"]


async def test_a_topology_that_slurm_refuses_is_remembered_until_it_takes_another():
    async with stage(nodesets.nodeset(), "compute-0", "compute-1") as scene:
        scene.slurm.topologies = {"tree"}
        pods = [nodesets.pod(0), nodesets.pod(1)]
        good = SetNodeTopology("compute-1", "tree:s1", WHY)
        assert not await scene.act(SetNodeTopology("compute-0", "nosuch:s1", WHY), good)
        assert scene.slurm.nodes["compute-1"].topology == "tree:s1"
        refusals = scene.actor.rejections.of(scene.workers, pods)
        assert [(name, one.topology) for name, one in refusals.items()] == [
            ("compute-0", "nosuch:s1")
        ]
        assert "topology configuration is not available" in refusals["compute-0"].words
        assert await scene.act(SetNodeTopology("compute-0", "tree:s2", WHY))
        assert scene.actor.rejections.of(scene.workers, pods) == {}


async def test_a_slurm_that_does_not_answer_has_refused_nothing():
    async with stage(nodesets.nodeset(), "compute-0") as scene:
        scene.rest.fault = Fault.REFUSE
        assert not await scene.act(SetNodeTopology("compute-0", "tree:s1", WHY))
        assert scene.actor.rejections.of(scene.workers, [nodesets.pod(0)]) == {}


async def test_resources_that_slurm_does_not_change_leave_the_node_as_it_is():
    async with stage(nodesets.nodeset(), "compute-0") as scene:
        scene.slurm.fixed_gres = True
        given = SetNodeComment("compute-0", "comment", ("a",), 3, "gpu:1", why=WHY)
        assert not await scene.act(given)
        found = scene.slurm.nodes["compute-0"]
        assert (found.comment, found.features, found.weight) == ("", [], 1)
        assert scene.actor.rejections.gres(scene.workers) == {"gpu:1"}
        scene.slurm.fixed_gres = False
        assert await scene.act(given)
        assert (found.comment, found.gres, found.weight) == ("comment", "gpu:1", 3)


@pytest.mark.parametrize("drained", [False, True])
async def test_jobs_that_wait_for_a_changed_resource_start_when_its_count_was_registered(
    drained: bool,
) -> None:
    async with stage(nodesets.nodeset(), "compute-0") as scene:
        slurm, found, now = scene.slurm, scene.slurm.nodes["compute-0"], [1000.0]
        slurm.clock, slurm.hungry, found.gres = (lambda: now[0]), True, "gpu:4"
        if drained:
            slurm.update_node("compute-0", ["DRAIN"], {"reason": gres_change.reason(MARKS)})
        assert await scene.act(SetNodeComment("compute-0", "comment", ("a",), 3, "gpu:1", why=WHY))
        assert (found.gres, found.reason) == ("gpu:1", gres_change.reason(MARKS))
        for now[0] in (1000.6, 1001.1):
            assert slurm.states(found) == ["IDLE", "DRAIN", "DYNAMIC_NORM"]
        slurm.update_node("compute-0", ["UNDRAIN"], {})
        for now[0] in (1001.7, 1002.2):
            assert (slurm.states(found), found.gres_used) == (["IDLE", "DYNAMIC_NORM"], "gpu:1")


async def test_features_that_somebody_gave_a_moment_ago_are_not_lost():
    async with stage(nodesets.nodeset(), "compute-0") as scene:
        scene.slurm.update_node("compute-0", [], {"features": ["slow", "mine"]})
        given = SetNodeComment("compute-0", "comment", ("fast",), 3, why=WHY, over=("slow",))
        assert not await scene.act(given)
        assert scene.slurm.nodes["compute-0"].features == ["slow", "mine"]
        assert await scene.act(replace(given, over=("slow", "mine")))
        assert scene.slurm.nodes["compute-0"].features == ["fast"]


async def test_resources_that_a_job_has_just_taken_are_left_and_the_node_goes_on():
    async with stage(nodesets.nodeset(), "compute-0", "compute-1") as scene:
        for name in ("compute-0", "compute-1"):
            scene.slurm.nodes[name].gres, scene.slurm.nodes[name].gres_used = "gpu:4", "gpu:1"
        scene.slurm.update_node("compute-1", ["DRAIN"], {"reason": "a user's"})
        first, second = (
            SetNodeComment(name, "comment", ("a",), 3, "gpu:1", why=WHY)
            for name in ("compute-0", "compute-1")
        )
        assert not await scene.act(first, second)
        assert {node.gres for node in scene.slurm.nodes.values()} == {"gpu:4"}
        assert "DRAIN" not in scene.slurm.nodes["compute-0"].flags
        assert "DRAIN" in scene.slurm.nodes["compute-1"].flags
        assert scene.slurm.nodes["compute-1"].reason == "a user's"
        assert scene.actor.rejections.gres(scene.workers) == frozenset()
