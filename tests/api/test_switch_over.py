"""A cluster that slurm-operator's chart and operator made is taken over: nothing is restarted.

Covers S035, S008 and F31 as far as a simulated machine goes; D37, D38. The way there and back is
that of docs/platform/switch-from-slurm-operator.md.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from penstock.api.cluster.labels import HELM_POLICY
from penstock.api.cluster.marks import ADOPTED_PODS, ADOPTED_TEMPLATE, REPLACE
from penstock.api.kubernetes.meta import Json
from penstock.kube import Client
from penstock.local.node import Node
from penstock.render.parts.kept_template import REPLACED
from penstock.simulation.slurm_operator import ACTIVE, MANAGER, REVISION, Upstream, chart_made
from support.operator_kit import BY_KIND, Lab, lab
from support.release import Release

# The first test that needs Helm compiles it, on a machine where everything else compiles as well.
pytestmark = [pytest.mark.api, pytest.mark.timeout(1800)]

KINDS = ("Controller", "Accounting", "RestApi", "LoginSet", "NodeSet")
NODESET = "slurm-worker-compute"
WORKLOADS = (
    ("StatefulSet", "slurm-controller"),
    ("StatefulSet", "slurm-accounting"),
    ("Deployment", "slurm-restapi"),
    ("Deployment", "slurm-login-slinky"),
)
IMAGE = "registry.example.com"
VALUES: Json = {
    "configFiles": {"cgroup.conf": "CgroupPlugin=disabled\n"},
    "controller": {
        "slurmctld": {"image": f"{IMAGE}/slurmctld:26.05"},
        "reconfigure": {"image": f"{IMAGE}/slurmctld:26.05"},
        "extraConf": "MinJobAge=2\nPartitionName=all Nodes=ALL Default=YES MaxTime=UNLIMITED\n",
    },
    "accounting": {"enabled": True, "slurmdbd": {"image": f"{IMAGE}/slurmdbd:26.05"}},
    "restapi": {"slurmrestd": {"image": f"{IMAGE}/slurmrestd:26.05"}},
    "loginsets": {
        "slinky": {
            "login": {"image": f"{IMAGE}/login:26.05"},
            "service": {"spec": {"type": "NodePort"}},
        }
    },
    "nodesets": {
        "compute": {
            "replicas": 3,
            "oversubscribeNode": True,
            "slurmd": {
                "image": f"{IMAGE}/slurmd:26.05",
                "resources": {"limits": {"cpu": 0.5, "memory": "512Mi"}},
            },
            "extraConf": "Weight=5",
            "partition": {"enabled": True, "config": "State=UP"},
        }
    },
    "sssd": {"conf": "[sssd]\nservices = nss, pam\n"},
}
"""The values of the fixture's release."""


@dataclass
class Left:
    """A cluster as slurm-operator left it, and what ran then."""

    lab: Lab
    release: Release
    pods: dict[str, str]
    templates: dict[str, Json]

    def unchanged(self) -> None:
        """No pod was replaced and no template changed, and all is served."""
        assert uids(self.lab) == self.pods
        assert templates(self.lab) == self.templates


def uids(lab_: Lab) -> dict[str, str]:
    """Uids of all pods by name."""
    return {one["metadata"]["name"]: one["metadata"]["uid"] for one in lab_.all("Pod")}


def templates(lab_: Lab) -> dict[str, Json]:
    """The templates of all workloads by name, and how often their specs changed."""
    found = {name: lab_.get(kind, name) or {} for kind, name in WORKLOADS}
    return {name: one["spec"]["template"] for name, one in found.items()}


def as_chart(folder: Path, namespace: str) -> Path:
    """The fixture as a chart of slurm-operator's name."""
    chart = folder / "slurm"
    (chart / "templates").mkdir(parents=True)
    about = {"apiVersion": "v2", "name": "slurm", "version": "1.2.1"}
    (chart / "Chart.yaml").write_text(yaml.safe_dump(about))
    for number, one in enumerate(chart_made(namespace)):
        # A database's password is nothing of the chart's.
        if one["metadata"]["name"] != "mariadb-password":
            (chart / "templates" / f"{number}.yaml").write_text(yaml.safe_dump(one))
    return chart


@asynccontextmanager
async def left(node: Node, folder: Path) -> AsyncGenerator[Left]:
    """A release of slurm-operator's chart, what its operator made of it, and pods that run."""
    async with lab(node) as lab_:
        space = lab_.namespace
        (password,) = [o for o in chart_made(space) if o["metadata"]["name"] == "mariadb-password"]
        await lab_.user.create(BY_KIND["Secret"], password)
        release = Release(node, "slurm", space)
        await asyncio.to_thread(release.upgrade, {}, as_chart(folder, space))
        names = {(one["kind"], one["metadata"]["name"]) for one in chart_made(space)}
        await lab_.until(lambda: all(lab_.get(kind, name) for kind, name in names))
        upstream = Upstream([found for k, n in sorted(names) if (found := lab_.get(k, n))])
        operator = Client(lab_.client.transport, field_manager=MANAGER)
        lab_.slurm.read(upstream.slurm_conf())
        for one in upstream.made():
            await operator.create(BY_KIND[one["kind"]], one)
        (nodeset,) = upstream.of("NodeSet")
        for ordinal in range(3):
            await operator.create(BY_KIND["Pod"], upstream.worker(nodeset, ordinal))
        status: Json = {"status": upstream.status(nodeset)}
        await operator.patch(BY_KIND["NodeSet"], space, NODESET, status, subresource="status")
        await lab_.until(lambda: len(lab_.all("Pod")) == 7 and all_run(lab_), within=90)
        mark: Json = {"metadata": {"labels": {ACTIVE: "true"}}}
        await operator.patch(BY_KIND["Pod"], space, "slurm-controller-0", mark)
        for ordinal in range(3):
            name = f"{NODESET}-{ordinal}"
            told = {"namespace": space, "podName": name, "node": "machine"}
            told |= {"nodeSetName": NODESET, "nodeSetUID": nodeset["metadata"]["uid"]}
            lab_.slurm.nodes[f"compute-{ordinal}"].comment = json.dumps(told)
        await lab_.until(lambda: active(lab_))
        await lab_.calm()
        yield Left(lab_, release, uids(lab_), templates(lab_))


def all_run(lab_: Lab) -> bool:
    return all(one.ready for one in lab_.seen["Pod"])


def active(lab_: Lab) -> bool:
    found = lab_.get("Pod", "slurm-controller-0")
    return found is not None and found["metadata"]["labels"].get(ACTIVE) == "true"


async def settled(lab_: Lab) -> None:
    await lab_.until(lambda: all(lab_.ready(k, n) for k in KINDS for n in lab_.names(k)), within=90)
    await lab_.calm(2)


def adopted(lab_: Lab, kind: str, name: str) -> str | None:
    found = lab_.condition(kind, name, "PodsAdopted")
    return found and found.status


async def test_nothing_is_restarted_and_the_chart_may_be_upgraded(
    api_node: Node, tmp_path: Path
) -> None:
    async with left(api_node, tmp_path) as found:
        lab_ = found.lab
        job = lab_.slurm.run("compute-1")
        nodes = dict(lab_.slurm.nodes)
        ports = (lab_.get("Service", "slurm-login-slinky") or {})["spec"]["ports"]
        async with lab_.operator() as running:
            await settled(lab_)
            found.unchanged()
            assert not [one for one in running.writes if one.startswith("DELETE")]
            assert [adopted(lab_, kind, lab_.names(kind)[0]) for kind in KINDS[:4]] == ["True"] * 4
            status = (lab_.get("NodeSet", NODESET) or {})["status"]
            assert (status["updatedReplicas"], status["readyReplicas"]) == (3, 3)
            assert status["nodeSetHash"] != REVISION
            for name in ("slurm-auth-slurm", "slurm-auth-jwt"):
                secret = lab_.get("Secret", name) or {}
                assert secret["metadata"]["annotations"][HELM_POLICY] == "keep"
        # Another process knows nothing but what is written.
        async with lab_.operator() as running:
            await settled(lab_)
            assert running.writes == []
            # Somebody else's chart, the same values.
            await asyncio.to_thread(found.release.upgrade, VALUES)
            await lab_.until(lambda: "slurmKeyRef" not in spec(lab_, "Controller", "slurm"))
            await settled(lab_)
            found.unchanged()
            assert lab_.get("Secret", "slurm-auth-slurm") is not None
            assert (lab_.get("Service", "slurm-login-slinky") or {})["spec"]["ports"] == ports
            # And back.
            await asyncio.to_thread(found.release.rollback, 1)
            await lab_.until(lambda: "slurmKeyRef" in spec(lab_, "Controller", "slurm"))
            await settled(lab_)
            found.unchanged()
        assert job.state == {"RUNNING"}
        assert lab_.slurm.nodes == nodes
        assert not any(node.flags - {"DYNAMIC_NORM"} for node in nodes.values())


async def test_pods_are_replaced_one_kind_at_a_time_when_it_is_declared_or_asked_for(
    api_node: Node, tmp_path: Path
) -> None:
    async with left(api_node, tmp_path) as found, found.lab.operator():
        lab_ = found.lab
        await settled(lab_)
        # A partition is told slurmctld by slurmrestd: no reason to replace a pod.
        partition: Json = {"partition": {"enabled": True, "config": "State=UP PriorityTier=7"}}
        await lab_.patch("NodeSet", NODESET, {"spec": partition})
        await lab_.until(lambda: "PriorityTier=7" in real_conf(lab_))
        await settled(lab_)
        found.unchanged()

        image = {"spec": {"slurmrestd": {"image": f"{IMAGE}/slurmrestd:26.11"}}}
        await lab_.patch("RestApi", "slurm", image)
        await replaced(found, "slurm-restapi-0")
        assert mark(lab_, "Deployment", "slurm-restapi") == REPLACED
        assert adopted(lab_, "RestApi", "slurm") == "False"

        ask: Json = {"metadata": {"annotations": {ADOPTED_PODS: REPLACE}}}
        await lab_.patch("Accounting", "slurm", ask)
        await replaced(found, "slurm-accounting-0")
        await lab_.patch("LoginSet", "slurm-login-slinky", ask)
        await replaced(found, "slurm-login-slinky-0")

        # What slurmctld has to read anew needs the container that tries it.
        claims = spec(lab_, "StatefulSet", "slurm-controller")["volumeClaimTemplates"]
        conf = {"spec": {"extraConf": "MinJobAge=2\nPrologFlags=Contain\n"}}
        await lab_.patch("Controller", "slurm", conf)
        await replaced(found, "slurm-controller-0")
        await lab_.until(lambda: "PrologFlags=Contain" in real_conf(lab_))
        await settled(lab_)
        assert spec(lab_, "StatefulSet", "slurm-controller")["volumeClaimTemplates"] == claims
        applied = lab_.condition("Controller", "slurm", "ConfigApplied")
        assert applied is not None
        assert applied.reason == "ConfigInEffect"
        for kind, name in WORKLOADS:
            entries = (lab_.get(kind, name) or {})["metadata"]["managedFields"]
            writers = {e["manager"] for e in entries if e.get("subresource") != "status"}
            assert writers == {"penstock"}, name

        # Workers go on as they are through all of it, and follow their own template.
        workers = {f"{NODESET}-{ordinal}" for ordinal in range(3)}
        assert {n: uids(lab_)[n] for n in workers} == {n: found.pods[n] for n in workers}
        env = [{"name": "ROUND", "value": "2"}]
        await lab_.patch("NodeSet", NODESET, {"spec": {"slurmd": {"env": env}}})
        await lab_.until(
            lambda: not {found.pods[n] for n in workers} & {*uids(lab_).values()}, within=90
        )
        await settled(lab_)


async def test_what_changed_while_nobody_watched_is_made_up_for(
    api_node: Node, tmp_path: Path
) -> None:
    async with left(api_node, tmp_path) as found:
        lab_ = found.lab
        await lab_.patch("NodeSet", NODESET, {"spec": {"replicas": 4}})
        image = {"spec": {"login": {"image": f"{IMAGE}/login:26.11"}}}
        await lab_.patch("LoginSet", "slurm-login-slinky", image)
        async with lab_.operator():
            await replaced(found, "slurm-login-slinky-0")
            await lab_.until(lambda: len(lab_.workers()) == 4)
            await settled(lab_)
            assert found.pods.items() <= uids(lab_).items()


async def replaced(found: Left, name: str) -> None:
    """Wait until that pod is another one, and no other is."""
    lab_ = found.lab
    before = found.pods[name]
    await lab_.until(lambda: uids(lab_).get(name, before) != before, within=60)
    await settled(lab_)
    found.pods[name] = uids(lab_)[name]
    assert found.pods.items() <= uids(lab_).items()


def spec(lab_: Lab, kind: str, name: str) -> Json:
    found = lab_.get(kind, name)
    assert found is not None
    return found["spec"]


def mark(lab_: Lab, kind: str, name: str) -> str:
    return (lab_.get(kind, name) or {})["metadata"]["annotations"][ADOPTED_TEMPLATE]


def real_conf(lab_: Lab) -> str:
    return (lab_.get("ConfigMap", "slurm-config") or {})["data"]["slurm.conf"]
