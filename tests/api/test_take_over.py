"""Objects that the real slurm-operator left are taken over, and moved between the charts.

Covers S035; D37, D38. The objects are those of tests/fixtures/upstream.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.api.cluster import labels as app_labels
from penstock.api.cluster import marks as own_marks
from penstock.api.kubernetes.kinds import NODES
from penstock.api.kubernetes.meta import Json
from penstock.api.slinky import labels as slinky_labels
from penstock.kube import Client
from penstock.local.node import Node
from penstock.render.parts import empty_values as empty
from penstock.render.parts import merge
from penstock.render.parts.kept_template import REPLACED
from penstock.render.slinky.nodeset import revision_meaning as meaning
from penstock.simulation.slurm_operator import ACTIVE, MANAGER
from support.captured import KINDS, Moved
from support.kubelet import MACHINE
from support.kubernetes_minor import MINOR
from support.operator_kit import BY_KIND, Lab, lab
from support.release import Release

pytestmark = [pytest.mark.api, pytest.mark.timeout(1800)]

WORKERS = {"slurm-worker-slinky": 3, "slurm-worker-daemons": 1}
LOGIN = "slurm-login-slinky"
IMAGE = "localhost/penstock"


def values(*, accounting: bool) -> Json:
    """The values of the captured releases."""

    def image(role: str) -> Json:
        return {"image": {"repository": f"{IMAGE}/{role}", "tag": "26.05"}}

    def workers(mode: str, **more: Any) -> Json:
        return {
            "scalingMode": mode,
            "oversubscribeNode": True,
            "slurmd": image("slurmd"),
            "logfile": image("slurmd"),
            **more,
        }

    partition: Json = {"enabled": True, "config": "Default=YES MaxTime=UNLIMITED"}
    return {
        "clusterName": "heldout",
        "configFiles": {"cgroup.conf": "CgroupPlugin=disabled\n"},
        "controller": {
            "slurmctld": image("slurmctld"),
            "reconfigure": image("slurmctld"),
            "logfile": image("slurmctld"),
            "persistence": {"enabled": False},
            "extraConf": "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none",
        },
        "accounting": {"enabled": accounting, "slurmdbd": image("slurmdbd")},
        "restapi": {"slurmrestd": image("slurmrestd")},
        "loginsets": {
            "slinky": {
                "enabled": True,
                "login": image("login"),
                "initconf": image("login"),
                "service": {"spec": {"type": "ClusterIP"}},
            }
        },
        "nodesets": {
            "slinky": workers(
                "StatefulSet", replicas=3, ssh={"enabled": True}, partition=partition
            ),
            "daemons": workers("DaemonSet", partition={"enabled": False}),
        },
        "partitions": {
            "all": {
                "enabled": True,
                "nodesets": ["ALL"],
                "config": "Default=YES MaxTime=UNLIMITED",
            },
        },
    }


@dataclass
class Left:
    """A cluster that an operator left, and its pods and templates at that time."""

    lab: Lab
    release: Release
    moved: Moved
    pods: dict[str, str]
    templates: dict[str, Json]

    def note(self) -> None:
        """What is there now is to stay."""
        self.pods, self.templates = uids(self.lab), templates(self.lab)

    def unchanged(self) -> None:
        """No pod was replaced, and no template changed."""
        assert templates(self.lab) == self.templates
        assert uids(self.lab) == self.pods

    async def to_our_chart(self, *, accounting: bool = False) -> None:
        """`helm upgrade` with our chart and the same values."""
        await asyncio.to_thread(self.release.upgrade, values(accounting=accounting))
        await self.lab.until(lambda: "slurmKeyRef" not in spec(self.lab, "Controller", "slurm"))
        await settled(self.lab)


def uids(lab_: Lab) -> dict[str, str]:
    """Uids of all pods by name."""
    return {one["metadata"]["name"]: one["metadata"]["uid"] for one in lab_.all("Pod")}


def chart_labels(lab_: Lab) -> set[tuple[str, ...]]:
    """The chart and its version that the labels of the pods name."""
    found = [one["metadata"]["labels"] for one in lab_.all("Pod")]
    return {tuple(labels.get(key, "") for key in app_labels.CHART_LABELS) for labels in found}


def templates(lab_: Lab) -> dict[str, Json]:
    """The templates of all workloads by kind and name."""
    return {
        f"{kind} {one['metadata']['name']}": one["spec"]["template"]
        for kind in ("StatefulSet", "Deployment")
        for one in lab_.all(kind)
    }


def spec(lab_: Lab, kind: str, name: str) -> Json:
    found = lab_.get(kind, name)
    assert found is not None, (kind, name)
    return found["spec"]


def as_chart(folder: Path, moved: Moved) -> Path:
    """What slurm-operator's chart made as a chart of its name."""
    chart = folder / "slurm"
    (chart / "templates").mkdir(parents=True)
    about = {"apiVersion": "v2", "name": "slurm", "version": "1.3.0-rc1"}
    (chart / "Chart.yaml").write_text(yaml.safe_dump(about))
    for number, one in enumerate(moved.by_chart()):
        (chart / "templates" / f"{number}.yaml").write_text(yaml.safe_dump(one))
    return chart


@asynccontextmanager
async def release(node: Node, folder: Path, which: str) -> AsyncGenerator[Left]:
    """What the chart made, of a cluster without an operator."""
    async with lab(node) as lab_:
        moved = Moved(which, lab_.namespace, MACHINE)
        # Admission taints a machine of which no kubelet has said that it is ready.
        machine: Json = {"metadata": {"labels": {"kubernetes.io/os": "linux"}}}
        machine["spec"] = {"taints": None}
        await lab_.user.patch(NODES, "", MACHINE, machine)
        for one in moved.of("Secret"):
            if one["metadata"]["name"] == "mariadb-password":
                await lab_.user.create(BY_KIND["Secret"], moved.fresh(one))
        found = Release(node, "slurm", lab_.namespace)
        await asyncio.to_thread(found.upgrade, {}, as_chart(folder, moved))
        conf = moved.find("ConfigMap", "slurm-config")["data"]["slurm.conf"]
        lab_.slurm.read(conf)
        yield Left(lab_, found, moved, {}, {})


@asynccontextmanager
async def left(node: Node, folder: Path, which: str = "running") -> AsyncGenerator[Left]:
    """A cluster as slurm-operator left it."""
    async with release(node, folder, which) as found:
        lab_, moved = found.lab, found.moved
        operator = Client(lab_.client.transport, field_manager=MANAGER)
        for kind in KINDS:
            for one in moved.of(kind):
                name = one["metadata"]["name"]
                await lab_.until(lambda k=kind, n=name: lab_.get(k, n) is not None)
                moved.is_now(one, lab_.get(kind, name) or {})
        made = [
            one
            for kind in ("Service", "ConfigMap", "Secret", "PodDisruptionBudget")
            for one in moved.of(kind)
            if one["metadata"].get("ownerReferences")
        ]
        workloads = [*moved.of("StatefulSet"), *moved.of("Deployment")]
        records = [r for r in moved.of("ControllerRevision") if _of_nodeset(r)]
        for one in (*made, *workloads, *records):
            await operator.create(BY_KIND[one["kind"]], moved.fresh(one))
        for one in (p for p in moved.of("Pod") if _of_nodeset(p)):
            await _worker(lab_, operator, moved, one)
        for one in moved.of("NodeSet"):
            name = one["metadata"]["name"]
            if status := one.get("status"):
                await operator.patch(
                    BY_KIND["NodeSet"],
                    lab_.namespace,
                    name,
                    {"status": status},
                    subresource="status",
                )
        count = len(workloads) + len([p for p in moved.of("Pod") if _of_nodeset(p)])
        await lab_.until(
            lambda: len(lab_.all("Pod")) == count and all(p.ready for p in lab_.seen["Pod"]),
            within=90,
        )
        mark: Json = {"metadata": {"labels": {ACTIVE: "true"}}}
        await operator.patch(BY_KIND["Pod"], lab_.namespace, "slurm-controller-0", mark)
        await lab_.calm()
        found.note()
        yield found


def _of_nodeset(one: Json) -> bool:
    return any(o["kind"] == "NodeSet" for o in one["metadata"]["ownerReferences"])


async def _worker(lab_: Lab, operator: Client, moved: Moved, one: Json) -> None:
    """A worker pod with its status, and the record of its node in Slurm."""
    made = moved.fresh(one)
    meta, host = made["metadata"], made["spec"]["hostname"]
    owner = meta["ownerReferences"][0]
    told = {"namespace": lab_.namespace, "podName": meta["name"], "node": MACHINE}
    told |= {"nodeSetName": owner["name"], "nodeSetUID": owner["uid"]}
    feature = owner["name"].removeprefix("slurm-worker-")
    node = lab_.slurm.register(host, features=[feature])
    node.base, node.comment = "IDLE", json.dumps(told)
    await operator.create(BY_KIND["Pod"], made)
    given = {k: v for k, v in one["status"].items() if not k.endswith(("IP", "IPs"))}
    status: Json = {"status": given}
    await operator.patch(BY_KIND["Pod"], lab_.namespace, meta["name"], status, subresource="status")


async def settled(lab_: Lab) -> None:
    """All kinds are ready, and nothing changes."""
    await lab_.until(lambda: all(lab_.ready(k, n) for k in KINDS for n in lab_.names(k)), within=90)
    await lab_.calm(2)


def current(lab_: Lab) -> dict[str, int]:
    """How many workers of each NodeSet are up to date, by the status of its present generation."""
    found = {one["metadata"]["name"]: one for one in lab_.all("NodeSet")}
    return {
        name: one["status"]["updatedReplicas"]
        for name, one in found.items()
        if one["status"]["observedGeneration"] == one["metadata"]["generation"]
    }


async def test_objects_of_the_real_slurm_operator_are_taken_over_and_nothing_restarts(
    api_node: Node, tmp_path: Path
) -> None:
    """Feature rows 1 and 2: under the same names, with the same slurm.conf."""
    async with left(api_node, tmp_path) as found:
        lab_, job = found.lab, found.lab.slurm.run("slinky-1")
        async with lab_.operator() as running:
            await settled(lab_)
            found.unchanged()
            assert not [one for one in running.writes if one.startswith("DELETE")]
            assert current(lab_) == WORKERS
            conf = found.moved.find("ConfigMap", "slurm-config")["data"]["slurm.conf"]
            assert (lab_.get("ConfigMap", "slurm-config") or {})["data"]["slurm.conf"] == conf
        # Another process knows nothing but what is written, and has nothing to write.
        async with lab_.operator() as running:
            await settled(lab_)
            assert running.writes == []
            assert chart_labels(lab_) == {("slurm-1.3.0-rc1", "26.05")}
            await found.to_our_chart()
            found.unchanged()
            assert current(lab_) == WORKERS
            ours: Json = (lab_.get("Controller", "slurm") or {})["metadata"]["labels"]
            assert chart_labels(lab_) == {tuple(ours[key] for key in app_labels.CHART_LABELS)}
        assert job.state == {"RUNNING"}
        # A user has cordoned one of the pods, which slurm-operator undid in Slurm.
        drained = {name for name, node in lab_.slurm.nodes.items() if node.flags - {"DYNAMIC_NORM"}}
        assert drained == {"slinky-2"}


async def test_with_accounting_nothing_restarts_either(api_node: Node, tmp_path: Path) -> None:
    async with left(api_node, tmp_path, "accounting") as found, found.lab.operator():
        await found.lab.until(lambda: _adopted(found.lab) == 4, within=60)
        await found.lab.calm(2)
        assert templates(found.lab) == found.templates
        assert found.pods.items() <= uids(found.lab).items()


def _adopted(lab_: Lab) -> int:
    """How many objects say that their pods stay."""
    said = [
        lab_.condition(kind, name, "PodsAdopted") for kind in KINDS[:4] for name in lab_.names(kind)
    ]
    return len([one for one in said if one is not None and one.status == "True"])


async def test_fields_that_a_user_removes_after_a_take_over_go(
    api_node: Node, tmp_path: Path
) -> None:
    async with left(api_node, tmp_path) as found, found.lab.operator():
        lab_ = found.lab
        await settled(lab_)
        nothing: Json = {"spec": {"template": {"spec": {"nodeSelector": None}}}}
        await lab_.patch("RestApi", "slurm", nothing)
        await lab_.until(
            lambda: "nodeSelector" not in _pod(lab_, "Deployment", "slurm-restapi"), within=60
        )
        await settled(lab_)
        assert lab_.get("Deployment", LOGIN) is not None
        assert templates(lab_)[f"Deployment {LOGIN}"] == found.templates[f"Deployment {LOGIN}"]
        for kind, name in (("Deployment", "slurm-restapi"), ("Service", "slurm-controller")):
            one = lab_.get(kind, name) or {}
            assert "helm.sh/chart" not in one["metadata"]["labels"]
            entries: list[Json] = one["metadata"]["managedFields"]
            assert MANAGER not in {e["manager"] for e in entries if not e.get("subresource")}


def _pod(lab_: Lab, kind: str, name: str) -> Json:
    return spec(lab_, kind, name)["template"]["spec"]


async def test_pods_that_penstock_has_replaced_stay_at_a_move_to_its_chart(
    api_node: Node, tmp_path: Path
) -> None:
    async with left(api_node, tmp_path) as found, found.lab.operator():
        lab_ = found.lab
        await settled(lab_)
        ask: Json = {"metadata": {"annotations": {own_marks.ADOPTED_PODS: own_marks.REPLACE}}}
        for kind, name in (("Controller", "slurm"), ("RestApi", "slurm"), ("LoginSet", LOGIN)):
            await lab_.patch(kind, name, ask)
        marks = {("StatefulSet", "slurm-controller"), ("Deployment", LOGIN)}
        marks.add(("Deployment", "slurm-restapi"))
        await lab_.until(lambda: all(_mark(lab_, *one) == REPLACED for one in marks), within=60)
        await settled(lab_)
        found.note()
        await found.to_our_chart()
        found.unchanged()


def _mark(lab_: Lab, kind: str, name: str) -> str:
    found = lab_.get(kind, name) or {}
    return found["metadata"]["annotations"].get(own_marks.ADOPTED_TEMPLATE, "")


@contextmanager
def as_before() -> Generator[None]:
    """Penstock as it wrote pods before: empty fields and all, and with its former label."""
    with pytest.MonkeyPatch.context() as patch:

        def pruned(value: Any, *, under: str = "") -> Any:
            del under
            return merge.prune(value)

        patch.setattr(empty, "said", pruned)
        patch.setattr(empty, "EMPTY", (None,))
        patch.setattr(slinky_labels, "REVISION_HASH", slinky_labels.FORMER_REVISION_HASH)
        yield
    # Another process begins with nothing.
    meaning._normalized_pod.cache_clear()  # pyright: ignore[reportPrivateUsage]


@pytest.mark.skipif(MINOR < 34, reason="Kubernetes before 1.34 has no resources of a pod")
async def test_pods_of_an_earlier_penstock_stay_at_its_update_and_at_a_move_between_charts(
    api_node: Node, tmp_path: Path
) -> None:
    async with release(api_node, tmp_path, "running") as found:
        lab_ = found.lab
        with as_before():
            async with lab_.operator():
                await lab_.until(lambda: len(lab_.workers()) == 4, within=90)
                await settled(lab_)
                # The API server has stored what says nothing, or nothing would be shown here.
                assert _pod(lab_, "Deployment", "slurm-restapi")["resources"] == {}
                worker = (lab_.get("Pod", "slurm-worker-slinky-0") or {})["metadata"]["labels"]
                assert slinky_labels.FORMER_REVISION_HASH in worker
        found.note()
        async with lab_.operator():
            await settled(lab_)
            found.unchanged()
            assert current(lab_) == WORKERS
        async with lab_.operator() as running:
            await settled(lab_)
            assert running.writes == []
            await found.to_our_chart()
            found.unchanged()
            assert current(lab_) == WORKERS
