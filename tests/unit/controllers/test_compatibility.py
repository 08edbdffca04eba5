"""What slurm-operator gets wrong at work, and no other test of the controllers is about."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from fault_plans.plan import Layout
from fault_plans.world import GROUP, SPACE, World
from penstock.api.kubernetes.kinds import ControllerRevision, PodCondition
from penstock.api.kubernetes.meta import Json, ObjectMeta, OwnerReference
from penstock.api.slinky.nodeset import NODESETS
from penstock.controllers.caches.owners import owned_by
from penstock.decide.action import SetPodConditions
from penstock.render.parts import ssh_host_keys as hostkeys
from penstock.simulation.apiserver.patches import strategic
from penstock.simulation.event_loop import simulate
from support import nodesets
from unit.controllers.stage import new_clusters, put, stage


async def test_conditions_of_the_kubelet_outlive_ours() -> None:
    """D24: also those that changed since the pod was looked at."""
    async with stage(nodesets.nodeset(), "compute-0") as scene:
        pod = nodesets.pod(0)
        scene.place(pod)
        idle = PodCondition(type="SlurmNodeStateIdle", status="True", message="")
        action = SetPodConditions(
            pod.metadata.name, pod.metadata.uid, (idle,), remove=("SlurmNodeStateDrain",)
        )
        await scene.act(action)
        (sent,) = [one for one in scene.api.requests if one.method == "PATCH"]
    assert sent.content_type == "application/strategic-merge-patch+json"
    patch: Json = msgspec.json.decode(sent.body)
    assert patch["metadata"] == {"uid": pod.metadata.uid}
    kept = [{"type": "Ready", "status": "False"}, {"type": "DisruptionTarget", "status": "True"}]
    newer: Json = {"status": {"conditions": [*kept, {"type": "SlurmNodeStateDrain"}]}}
    conditions = strategic(newer, {"status": patch["status"]})["status"]["conditions"]
    assert conditions[:2] == kept
    assert [one["type"] for one in conditions[2:]] == ["SlurmNodeStateIdle"]


def test_no_host_keys_are_made_while_a_login_has_some(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """D26, feature row 19: they take a second of CPU each time."""
    made: list[dict[str, str]] = []

    def generate() -> dict[str, str]:
        made.append({name: f"{name} {len(made)}" for name in hostkeys.FILES})
        return made[-1]

    monkeypatch.setattr(hostkeys, "generate", generate)

    async def play() -> None:
        world = World(1, Layout())
        world.declare(1)
        process = world.operator()
        login = {"kind": "LoginSet", "metadata": {"name": "login"}}
        spec: Json = {"controllerRef": {"name": "slurm"}}
        world.ask("POST", f"{GROUP}/loginsets", {**login, "spec": spec})
        await asyncio.sleep(60)
        first = len(made)
        for replicas in (1, 2, 0, 3):
            await asyncio.sleep(60)
            body: Json = {"spec": {"replicas": replicas}}
            world.ask("PATCH", f"{GROUP}/loginsets/login", body)
        await asyncio.sleep(60)
        assert len(made) == first > 0
        secret = world.find("/secrets", "login-ssh-host-keys", SPACE)
        assert secret is not None
        assert set(secret["data"]) == set(hostkeys.FILES)
        found = world.find("apps/deployments", "login", SPACE)
        assert found is not None
        assert found["spec"]["replicas"] == 3
        await world.crash(process)

    simulate(play())


def test_revisions_are_found_by_their_owner_though_nothing_selects_them() -> None:
    """D19: upstream's lack the labels of its own selector, so that it never finds them again."""
    caches = new_clusters().caches
    owner = OwnerReference(
        api_version=NODESETS.api_version,
        kind="NodeSet",
        name="compute",
        uid="nodeset-uid",
        controller=True,
    )
    other = msgspec.structs.replace(owner, uid="another")
    for number, owners in enumerate(((owner,), (owner,), (other,), ())):
        meta = ObjectMeta(
            name=f"compute-{number}", namespace="slurm", uid=f"{number}", owner_references=owners
        )
        put(caches.revisions, ControllerRevision(metadata=meta, revision=number))
    found = caches.revisions_of.get(owned_by(NODESETS, nodesets.nodeset()))
    assert [one.metadata.name for one in found] == ["compute-0", "compute-1"]
