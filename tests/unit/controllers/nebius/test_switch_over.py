"""Clusters that soperator left are taken over: no pod restarts, no job is lost, no key changes.

D80 to D82. The objects are those that the real soperator left, on a simulated API server; the
simulation plays Kubernetes' controllers and OpenKruise's.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable

import pytest

from fault_plans.actions import left_slurmcluster as left
from fault_plans.process import Process
from penstock.api.cluster import marks
from penstock.api.kubernetes.meta import Json
from penstock.api.nebius import labels
from penstock.simulation.event_loop import simulate
from penstock.simulation.kubelet.jobs import JOBS
from penstock.simulation.kubelet.workload_controllers import KRUISE
from support.soperator_left import MANAGER, SoperatorObjects
from unit.controllers.nebius.lab import CLUSTERS, CORE, OLDER, SHAPES, SPACE, Lab

PODS = f"{CORE}/pods"
KINDS = ("Deployment", "Service", "ConfigMap", "Job", "Role", "RoleBinding", "ServiceAccount")


class Taken(Lab):
    """A cluster that soperator left, and what it was like then."""

    def __init__(self, shape: str, *, plain: bool = False) -> None:
        super().__init__(shape, left=True)
        left.leave(self.world, SPACE, 2, plain=plain)
        self.before: dict[str, str] = {}
        self.templates: dict[str, Json] = {}

    async def begin(self, *, kruise: bool = True) -> Process:
        """Have all of it run under a job, and start the operator."""
        await asyncio.sleep(left.RUNS_S)
        if not kruise:
            self.world.workloads.absent.add(KRUISE)
        self.world.take_over()
        self.before = self.uids()
        self.templates = {one["metadata"]["name"]: one["spec"]["template"] for one in self._sets()}
        assert self.world.slurm.submit(1) is not None
        return self.world.operator()

    def finish_job(self) -> None:
        """Have the one job end."""
        for job in list(self.world.slurm.ctld.jobs.values()):
            self.world.slurm.finish(job)

    def _sets(self) -> list[Json]:
        groups = (KRUISE, "apps/statefulsets", "apps/deployments")
        return [one for group in groups for one in self.world.server.objects(group, SPACE)]

    def uids(self) -> dict[str, str]:
        """Uids of all pods by name."""
        found = self.world.server.objects("/pods", SPACE)
        return {one["metadata"]["name"]: one["metadata"]["uid"] for one in found}

    def is_replaced(self, name: str) -> bool:
        """Whether a pod is another one by now."""
        return self.uids().get(name, self.before[name]) != self.before[name]

    @property
    def workers(self) -> list[Json]:
        """All worker pods."""
        found = self.world.server.objects("/pods", SPACE)
        return [one for one in found if one["metadata"]["name"].startswith("worker")]

    def is_taken_over(self) -> bool:
        """Whether no StatefulSet of OpenKruise is left, and each pod has an owner of ours."""
        kind = "SlurmCluster" if self.world.is_older else "NodeSet"
        return not left.kruise_left(self.world.server) and all(
            [owner["kind"] for owner in one["metadata"].get("ownerReferences", ())] == [kind]
            for one in self.workers
        )

    def unharmed(self, *, without_gates: bool = True) -> None:
        """No pod was replaced, no job lost, no key changed and no template either."""
        assert self.uids() == self.before
        assert self.world.slurm.lost_jobs == []
        assert self.world.promises.broken == []
        assert self.world.left_cluster is not None
        assert self.world.left_cluster.changed_keys() == []
        for one in self._sets():
            name, now = one["metadata"]["name"], one["spec"]["template"]
            had = self.templates[name]
            pod = {k: v for k, v in had["spec"].items() if k != "readinessGates"}
            assert now == ({**had, "spec": pod} if without_gates else had)
        assert not any(name.startswith("jobs/") for name in self.gone)


def played(shape: str, play: Callable[[Taken], Awaitable[None]], *, plain: bool = False) -> None:
    async def run() -> None:
        await play(Taken(shape, plain=plain))

    simulate(run())


@pytest.mark.parametrize("kruise", [True, False], ids=["OpenKruise", "no OpenKruise"])
@pytest.mark.parametrize("shape", SHAPES)
def test_nothing_restarts_with_openkruise_and_without(shape: str, kruise: bool) -> None:
    async def play(lab: Taken) -> None:
        await lab.begin(kruise=kruise)
        await lab.until(lab.is_taken_over)
        await lab.until(lambda: lab.phase() == "Available")
        await asyncio.sleep(60)
        assert await lab.settled(120) == []
        lab.unharmed()
        assert lab.condition("PodsAdopted")[:2] == ("True", "PodsAsTheyWere")
        assert len([name for name in lab.made if name.startswith("jobs/")]) == 1
        for one in lab.workers:
            assert one["metadata"]["annotations"][marks.ADOPTED_REVISION].startswith("worker")
        counts = lab.of_kind(CLUSTERS)["status"].get("workers", {"updated": 2})
        assert counts["updated"] == 2

    played(shape, play)


@pytest.mark.parametrize("shape", SHAPES)
def test_nothing_restarts_where_its_statefulsets_are_of_apps_v1(shape: str) -> None:
    async def play(lab: Taken) -> None:
        await lab.begin()
        await lab.until(lab.is_taken_over)
        await asyncio.sleep(60)
        # That of the workers is to go; simulated users never see one go.
        assert lab.world.promises.broken.pop().startswith("apps/statefulsets worker")
        lab.unharmed(without_gates=False)
        assert not [
            one["metadata"]["name"]
            for one in lab.world.server.objects("apps/statefulsets", SPACE)
            if one["metadata"]["name"].startswith("worker")
        ]

    played(shape, play, plain=True)


@pytest.mark.parametrize("shape", SHAPES)
def test_files_in_force_that_somebody_deletes_come_back_as_they_were(shape: str) -> None:
    async def play(lab: Taken) -> None:
        await lab.begin()
        await lab.until(lab.is_taken_over)
        await asyncio.sleep(30)
        name = "slurm-slurm-configs"
        files, jail = lab.get("/configmaps", name)["data"], lab.world.jails[SPACE].present()
        assert (
            jail
            == files
            == SoperatorObjects(left.VERSIONS[shape], "slurm").find("ConfigMap", name)["data"]
        )
        lab.world.ask("DELETE", f"{CORE}/configmaps/{name}", {})
        await lab.until(lambda: lab.find("/configmaps", name))
        await asyncio.sleep(60)
        assert lab.get("/configmaps", name)["data"] == files
        assert lab.world.jails[SPACE].present() == jail
        lab.unharmed()

    played(shape, play)


def test_a_finalizer_that_only_openkruise_would_remove_is_removed_in_its_absence() -> None:
    async def play(lab: Taken) -> None:
        path = f"/apis/{KRUISE.partition('/')[0]}/v1beta1/namespaces/{SPACE}/statefulsets"
        for name in ("controller", "worker"):
            body: Json = {"metadata": {"finalizers": ["apps.kruise.io/pods"]}}
            lab.world.ask("PATCH", f"{path}/{name}", body)
        await lab.begin(kruise=False)
        await lab.until(lab.is_taken_over)
        lab.unharmed()

    played(OLDER, play)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_process_that_is_killed_after_any_write_is_continued_by_the_next(shape: str) -> None:
    async def play(lab: Taken) -> None:
        process = await lab.begin()
        kills = 0
        while not lab.is_taken_over() or kills < 60:
            process.crash_after = 1 + kills % 3
            try:
                async with asyncio.timeout(20):
                    await process.crashed.wait()
            except TimeoutError:
                break
            await lab.world.crash(process)
            process, kills = lab.world.operator(), kills + 1
        process.crash_after = None
        await lab.until(lab.is_taken_over)
        await lab.until(lambda: lab.phase() == "Available")
        await asyncio.sleep(60)
        lab.unharmed()
        assert kills > 20

    played(shape, play)


def owners_of(one: Json) -> set[str]:
    """Managers of an object's fields beside its status."""
    entries: list[Json] = one["metadata"].get("managedFields") or []
    return {entry["manager"] for entry in entries if not entry.get("subresource")}


@pytest.mark.parametrize("shape", SHAPES)
def test_fields_of_its_manager_become_ours_but_for_templates_that_stay(shape: str) -> None:
    async def play(lab: Taken) -> None:
        await lab.begin()
        await lab.until(lab.is_taken_over)
        await asyncio.sleep(30)
        for resource in ("/services", "/configmaps"):
            for one in lab.world.server.objects(resource, SPACE):
                if "penstock" in owners_of(one):
                    assert MANAGER not in owners_of(one), one["metadata"]["name"]
        for one in lab.world.server.objects("apps/deployments", SPACE):
            name = one["metadata"]["name"]
            if name.endswith(("rest", "sconfigcontroller")):
                assert owners_of(one) == {"penstock", MANAGER}
        unknown = SoperatorObjects(left.VERSIONS[shape], "slurm")
        for one in unknown.of("Service"):
            if "eph" in one["metadata"]["name"]:
                continue
            live = lab.get("/services", one["metadata"]["name"])
            assert live["metadata"]["labels"].items() >= one["metadata"]["labels"].items()
            assert live["spec"]["selector"] == one["spec"]["selector"]

    played(shape, play)


def images(lab: Taken, image: str) -> Json:
    """Changed images of all daemons."""
    nodes = lab.cluster["spec"]["slurmNodes"]
    text = json.dumps(nodes).replace("registry.example/", f"{image}/")
    return {"slurmNodes": json.loads(text)}


def test_other_images_replace_pods_and_workers_only_once_they_are_idle() -> None:
    async def play(lab: Taken) -> None:
        await lab.begin()
        await lab.until(lab.is_taken_over)
        busy, idle = sorted(
            ("worker-0", "worker-1"), key=lambda one: not lab.world.slurm.jobs_on(one)
        )
        lab.world.edit_cluster(SPACE, images(lab, "registry.of-ours"))
        for name in ("controller-0", "login-0", idle):
            await lab.until(lambda name=name: lab.is_replaced(name))
        await asyncio.sleep(120)
        assert lab.uids()[busy] == lab.before[busy]
        assert lab.world.slurm.lost_jobs == []
        lab.finish_job()
        await lab.until(lambda: lab.is_replaced(busy))
        await lab.until(lambda: lab.condition("PodsAdopted")[:2] == ("False", "PodsReplaced"), 300)
        assert lab.world.slurm.lost_jobs == []
        assert lab.world.promises.broken == []

    played(OLDER, play)


def test_slurmctld_of_5_0_stays_while_its_nodes_are_lines_of_slurm_conf() -> None:
    async def play(lab: Taken) -> None:
        await lab.begin()
        await lab.until(lab.is_taken_over)
        lab.world.edit_cluster(SPACE, images(lab, "registry.example"))
        ask: Json = {"metadata": {"annotations": {marks.ADOPTED_PODS: marks.REPLACE}}}
        path = f"/apis/slurm.nebius.ai/v1/namespaces/{SPACE}/slurmclusters/slurm"
        lab.world.ask("PATCH", path, ask)
        await lab.until(lambda: "worker-cpu" in lab.condition("PodsAdopted")[2])
        assert lab.condition("PodsAdopted")[1] == "ReplacementWaits"
        await asyncio.sleep(60)
        name = "slurm-controller-0"
        assert lab.uids()[name] == lab.before[name]
        lab.world.edit_cluster(SPACE, {"maintenance": "downscale"})
        await asyncio.sleep(60)
        assert lab.uids()[name] == lab.before[name]
        assert lab.world.slurm.lost_jobs == []
        lab.finish_job()
        await lab.until(lambda: not lab.workers, 300)
        lab.world.edit_cluster(SPACE, {"maintenance": "none"})
        await lab.until(lambda: lab.is_replaced(name), 300)
        await lab.until(lambda: len(lab.workers) == 2, 300)
        assert lab.world.slurm.lost_jobs == []

    played("current", play)


def released(lab: Taken) -> None:
    """The commands of docs/platform/switch-from-soperator.md before soperator starts again."""
    for one in lab.workers:
        meta = one["metadata"]
        notes: Json = meta["annotations"]
        found = {"labels": {labels.REVISION: notes[marks.ADOPTED_REVISION]}}
        body: Json = {"metadata": {**found, "ownerReferences": None}}
        lab.world.ask("PATCH", f"{PODS}/{meta['name']}", body)
    sets = f"/apis/apps/v1/namespaces/{SPACE}/statefulsets"
    for one in lab.world.server.objects("apps/statefulsets", SPACE):
        options = {"propagationPolicy": "Orphan"}
        lab.world.ask("DELETE", f"{sets}/{one['metadata']['name']}", options)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_way_back_has_all_objects_by_name_and_label_and_no_job_is_lost(shape: str) -> None:
    async def play(lab: Taken) -> None:
        process = await lab.begin()
        await lab.until(lab.is_taken_over)
        await asyncio.sleep(30)
        await lab.world.crash(process)
        released(lab)
        await asyncio.sleep(5)
        theirs = SoperatorObjects(left.VERSIONS[shape], "slurm")
        for one in theirs.objects:
            if one["kind"] == "StatefulSet" and "eph" not in one["metadata"]["name"]:
                # What soperator does: it creates the StatefulSets that it does not find.
                one["spec"]["replicas"] = min(2, one["spec"]["replicas"])
                uid = lab.cluster["metadata"]["uid"]
                owner = {**one["metadata"]["ownerReferences"][0], "uid": uid}
                made = theirs.fresh(one)
                made["metadata"]["ownerReferences"] = [owner]
                path = f"/apis/apps.kruise.io/v1beta1/namespaces/{SPACE}/statefulsets"
                assert lab.world.server.ask("POST", path, made, user=MANAGER).status == 201
            elif one["kind"] in KINDS and "eph" not in one["metadata"]["name"]:
                live = lab.find(_resource(one), one["metadata"]["name"])
                assert live is not None, one["metadata"]["name"]
                if one["kind"] in ("Service", "Deployment"):
                    assert live["metadata"]["labels"] == one["metadata"]["labels"]
                    assert live["spec"]["selector"] == one["spec"]["selector"]
        await asyncio.sleep(60)
        # OpenKruise adopts pods of the same template and revision, so none restarts.
        assert lab.uids() == lab.before
        assert lab.world.slurm.lost_jobs == []
        assert lab.get(JOBS, "slurm-populate-jail")["metadata"]["name"]
        assert {o["kind"] for one in lab.workers for o in one["metadata"]["ownerReferences"]} == {
            "StatefulSet"
        }

    played(shape, play)


def _resource(one: Json) -> str:
    group = one["apiVersion"].rpartition("/")[0]
    return f"{group}/{one['kind'].lower()}s"
