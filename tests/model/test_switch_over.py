"""A cluster that slurm-operator left, in simulated time: hours pass, and nothing is restarted.

The fixture is that of tests/api/test_switch_over.py (F31); here it is cheap to look at every step.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from fault_plans.world import SPACE, World
from penstock.api.cluster.marks import ADOPTED_PODS, ADOPTED_TEMPLATE, REPLACE
from penstock.api.kubernetes.meta import Json
from penstock.render.parts.kept_template import REPLACED
from penstock.simulation.event_loop import simulate
from penstock.simulation.kubelet.kubelet import LABELS
from penstock.simulation.slurm_operator import ACTIVE, MANAGER, Upstream, chart_made

SEED = int(os.environ.get("PENSTOCK_SEED", "1"))
CORE = f"/api/v1/namespaces/{SPACE}"
APPS = f"/apis/apps/v1/namespaces/{SPACE}"
SLINKY = f"/apis/slinky.slurm.net/v1beta1/namespaces/{SPACE}"
PATHS = {
    **{kind: f"{CORE}/{kind.lower()}s" for kind in ("Pod", "Secret", "ConfigMap", "Service")},
    **{
        kind: f"{APPS}/{kind.lower()}s"
        for kind in ("StatefulSet", "Deployment", "ControllerRevision")
    },
    "PodDisruptionBudget": f"/apis/policy/v1/namespaces/{SPACE}/poddisruptionbudgets",
    **{
        kind: f"{SLINKY}/{kind.lower()}s"
        for kind in ("Controller", "Accounting", "RestApi", "LoginSet", "NodeSet", "Token")
    },
}
NODESET = "slurm-worker-compute"
WORKERS = tuple(f"{NODESET}-{number}" for number in range(3))
WORKLOADS = {
    "slurm-controller": "apps/statefulsets",
    "slurm-accounting": "apps/statefulsets",
    "slurm-restapi": "apps/deployments",
    "slurm-login-slinky": "apps/deployments",
}
"""By name; the pod of each is called as it is, with -0."""
Played = Callable[[World], Coroutine[Any, Any, None]]


def ask(world: World, user: str, method: str, kind: str, body: Json, name: str = "") -> None:
    """A request that must be taken."""
    path = PATHS[kind] + (f"/{name}" if name else "")
    answer = world.server.ask(method, path, body, user=user)
    assert answer.status < 300, (path, answer.body)


async def leave(world: World, *, persistent: bool = True) -> None:
    """What slurm-operator leaves: objects, pods that run, and idle nodes."""
    for one in chart_made(SPACE):
        if one["kind"] == "Controller":
            one["spec"]["persistence"]["enabled"] = persistent
        ask(world, "helm", "POST", one["kind"], one)
    stored = [
        found
        for one in chart_made(SPACE)
        if (found := world.find(_resource(one["kind"]), one["metadata"]["name"])) is not None
    ]
    upstream = Upstream(stored)
    for one in upstream.made():
        ask(world, MANAGER, "POST", one["kind"], one)
    (nodeset,) = upstream.of("NodeSet")
    for ordinal in range(len(WORKERS)):
        ask(world, MANAGER, "POST", "Pod", upstream.worker(nodeset, ordinal))
    status = {"status": upstream.status(nodeset)}
    ask(world, MANAGER, "PATCH", "NodeSet", status, f"{NODESET}/status")
    await asyncio.sleep(60)
    mark = {"metadata": {"labels": {ACTIVE: "true"}}}
    ask(world, MANAGER, "PATCH", "Pod", mark, "slurm-controller-0")
    assert len(uids(world)) == len(WORKERS) + len(WORKLOADS)


def _resource(kind: str) -> str:
    parts = PATHS[kind].split("/")
    return f"/{parts[-1]}" if parts[1] == "api" else f"{parts[2]}/{parts[-1]}"


def uids(world: World) -> dict[str, str]:
    """Uids of all pods by name."""
    found = world.server.objects("/pods", SPACE)
    return {one["metadata"]["name"]: one["metadata"]["uid"] for one in found}


def templates(world: World) -> dict[str, Json]:
    """The templates of all workloads."""
    return {name: get(world, of, name)["spec"]["template"] for name, of in WORKLOADS.items()}


def get(world: World, resource: str, name: str) -> Json:
    found = world.find(resource, name)
    assert found is not None, name
    return found


def ready(world: World) -> dict[str, str]:
    """What each kind says of itself."""
    return {
        f"{kind} {one['metadata']['name']}": next(
            f"{c['status']} {c['reason']} {c.get('message', '')}"
            for c in one["status"]["conditions"]
            if c["type"] == "Ready"
        )
        for kind in ("Controller", "Accounting", "RestApi", "LoginSet", "NodeSet")
        for one in world.server.objects(_resource(kind), SPACE)
    }


def adopted(world: World, name: str) -> str:
    marks: Json = get(world, WORKLOADS[name], name)["metadata"].get("annotations") or {}
    return marks.get(ADOPTED_TEMPLATE, "")


def play(part: Played, *, persistent: bool = True) -> None:
    """Play it after the switch, with an operator that runs since a while."""

    async def whole() -> None:
        world = World(SEED)
        await leave(world, persistent=persistent)
        world.operator()
        await asyncio.sleep(120)
        await part(world)
        for process in world.processes:
            await process.stop()

    simulate(whole())


def test_hours_pass_and_nothing_is_restarted_or_written() -> None:
    async def whole() -> None:
        world = World(SEED)
        await leave(world)
        pods, before = uids(world), templates(world)
        job = world.slurm.ctld.run("compute-1")
        world.operator()
        await asyncio.sleep(300)
        assert {k: v for k, v in ready(world).items() if v[:4] != "True"} == {}
        written = len(world.writes)
        await asyncio.sleep(3600)
        # A Token is renewed in its time.
        renewed = ("/secrets/ops-jwt-slurm", "/tokens/ops/status", "/events")
        assert [w for _, w in world.writes[written:] if not w.endswith(renewed)] == []
        assert len(world.writes) - written < 5
        assert uids(world) == pods
        assert templates(world) == before
        assert [adopted(world, name)[:3] for name in WORKLOADS] == ["v2:"] * 4
        assert job.state == {"RUNNING"}
        for process in world.processes:
            await process.stop()

    simulate(whole())


def change(world: World, kind: str, name: str, **spec: Any) -> None:
    """`kubectl patch` of a spec."""
    ask(world, "kubectl", "PATCH", kind, {"spec": spec}, name)


def annotate(world: World, kind: str, name: str, **marks: str) -> None:
    ask(world, "kubectl", "PATCH", kind, {"metadata": {"annotations": marks}}, name)


def condition(world: World, kind: str, name: str, type_: str) -> Json:
    found = get(world, _resource(kind), name)["status"]["conditions"]
    return next(one for one in found if one["type"] == type_)


@pytest.mark.parametrize(
    ("kind", "name", "spec", "pod"),
    [
        ("RestApi", "slurm", {"slurmrestd": {"image": "x/slurmrestd:2"}}, "slurm-restapi"),
        ("Accounting", "slurm", {"extraConf": "DebugLevel=verbose"}, "slurm-accounting"),
        (
            "LoginSet",
            "slurm-login-slinky",
            {"template": {"spec": {"nodeSelector": LABELS}}},
            "slurm-login-slinky",
        ),
        ("Controller", "slurm", {"slurmctld": {"image": "x/slurmctld:2"}}, "slurm-controller"),
    ],
)
def test_a_change_of_one_kind_replaces_its_pods_and_no_others(
    kind: str, name: str, spec: Json, pod: str
) -> None:
    async def part(world: World) -> None:
        before = uids(world)
        claims = get(world, WORKLOADS["slurm-controller"], "slurm-controller")["spec"]
        change(world, kind, name, **spec)
        await asyncio.sleep(120)
        assert {n for n, uid in uids(world).items() if before.get(n) != uid} == {f"{pod}-0"}
        assert adopted(world, pod) == REPLACED
        assert condition(world, kind, name, "PodsAdopted")["status"] == "False"
        assert condition(world, kind, name, "Ready")["status"] == "True"
        after = get(world, WORKLOADS["slurm-controller"], "slurm-controller")["spec"]
        assert after["volumeClaimTemplates"] == claims["volumeClaimTemplates"]
        entries = get(world, WORKLOADS[pod], pod)["metadata"]["managedFields"]
        assert MANAGER not in {one["manager"] for one in entries}

    play(part)


def test_what_is_asked_for_is_replaced_and_the_rest_stays() -> None:
    async def part(world: World) -> None:
        before = uids(world)
        annotate(world, "LoginSet", "slurm-login-slinky", **{ADOPTED_PODS: REPLACE})
        await asyncio.sleep(120)
        after = uids(world)
        assert {n for n, u in after.items() if before.get(n) != u} == {"slurm-login-slinky-0"}
        annotate(world, "LoginSet", "slurm-login-slinky", **{ADOPTED_PODS: ""})
        await asyncio.sleep(120)
        assert uids(world) == after

    play(part)


def test_what_slurmctld_has_to_read_anew_comes_with_our_pod_and_is_in_effect() -> None:
    async def part(world: World) -> None:
        before = uids(world)
        change(world, "Controller", "slurm", extraConf="MinJobAge=2\nPrologFlags=Contain\n")
        await asyncio.sleep(180)
        after = uids(world)
        assert {n for n, uid in after.items() if before.get(n) != uid} == {"slurm-controller-0"}
        applied = condition(world, "Controller", "slurm", "ConfigApplied")
        assert (applied["status"], applied["reason"]) == ("True", "ConfigInEffect")
        assert "PrologFlags" in get(world, "/configmaps", "slurm-config")["data"]["slurm.conf"]
        change(world, "Controller", "slurm", extraConf="MinJobAge=3\n")
        await asyncio.sleep(120)
        assert uids(world) == after

    play(part)


def test_a_slurmctld_with_its_state_in_the_pod_waits_for_somebody_to_say_so() -> None:
    async def part(world: World) -> None:
        before = uids(world)
        change(world, "Controller", "slurm", extraConf="PrologFlags=Contain\n")
        await asyncio.sleep(600)
        assert uids(world) == before
        assert "PrologFlags" not in get(world, "/configmaps", "slurm-config")["data"]["slurm.conf"]
        told = condition(world, "Controller", "slurm", "ConfigApplied")
        assert told["status"] == "Unknown"
        assert "all jobs would be lost" in told["message"]
        annotate(world, "Controller", "slurm", **{ADOPTED_PODS: REPLACE})
        await asyncio.sleep(180)
        after = uids(world)
        assert {n for n, uid in after.items() if before.get(n) != uid} == {"slurm-controller-0"}
        told = condition(world, "Controller", "slurm", "ConfigApplied")
        assert told["reason"] == "ConfigInEffect"

    play(part, persistent=False)


def test_a_bad_line_is_refused_by_our_pod_which_starts_with_what_there_was() -> None:
    async def part(world: World) -> None:
        change(world, "Controller", "slurm", extraConf="MinJobAge=2\nBogusKey=1\n")
        await asyncio.sleep(180)
        applied = condition(world, "Controller", "slurm", "ConfigApplied")
        assert (applied["status"], applied["reason"]) == ("False", "ConfigRefused")
        assert "Bogus" not in get(world, "/configmaps", "slurm-config")["data"]["slurm.conf"]

    play(part)


def test_workers_follow_their_template_drained_and_within_the_budget() -> None:
    async def part(world: World) -> None:
        before = uids(world)
        job = world.slurm.ctld.run("compute-1")
        env = [{"name": "ROUND", "value": "2"}]
        change(world, "NodeSet", NODESET, slurmd={"env": env})
        await asyncio.sleep(300)
        assert {n for n, uid in uids(world).items() if before.get(n) != uid} == {
            n for n in WORKERS if n != WORKERS[1]
        }
        world.slurm.finish(job)
        await asyncio.sleep(180)
        assert not {before[name] for name in WORKERS} & {*uids(world).values()}

    play(part)


def test_what_changed_while_nobody_watched_is_made_up_for() -> None:
    async def whole() -> None:
        world = World(SEED)
        await leave(world)
        before = uids(world)
        change(world, "NodeSet", NODESET, replicas=4)
        change(world, "LoginSet", "slurm-login-slinky", login={"image": "x/login:2"})
        world.operator()
        await asyncio.sleep(180)
        after = uids(world)
        assert {n for n, uid in after.items() if before.get(n) != uid} == {
            "slurm-login-slinky-0",
            f"{NODESET}-3",
        }
        for process in world.processes:
            await process.stop()

    simulate(whole())


def test_keys_of_the_chart_are_kept_and_a_lost_label_comes_again() -> None:
    async def part(world: World) -> None:
        for name in ("slurm-auth-slurm", "slurm-auth-jwt"):
            marks = get(world, "/secrets", name)["metadata"]["annotations"]
            assert marks["helm.sh/resource-policy"] == "keep"
        ask(world, "kubectl", "DELETE", "Pod", {}, "slurm-controller-0")
        await asyncio.sleep(120)
        labels = get(world, "/pods", "slurm-controller-0")["metadata"]["labels"]
        assert labels[ACTIVE] == "true"
        assert adopted(world, "slurm-controller") != REPLACED

    play(part)
