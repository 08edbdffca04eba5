"""The chart `slurm` in the hands of Helm, with the operator at work.

Covers S004, S030, S032, S034, S035, S036 and S153 as far as a simulated machine goes; D37, D38.
"""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.api.kubernetes.meta import Json
from penstock.kube import Selector
from penstock.local.charts import CHARTS
from penstock.local.node import Node
from support.operator_kit import Lab, lab
from support.partitions import events
from support.release import Release

# The first test that needs Helm compiles it, on a machine where everything else compiles as well.
pytestmark = [pytest.mark.api, pytest.mark.timeout(1800)]

CLUSTER: Json = {
    "clusterName": "released",
    "controller": {"persistence": {"enabled": False}, "extraConf": "MinJobAge=2"},
    "nodesets": {
        "compute": {"replicas": 2, "partition": {"enabled": True}, "oversubscribeNode": True}
    },
}
WORKERS = ["slurm-worker-compute-0", "slurm-worker-compute-1"]
NODESET = "slurm-worker-compute"
GONE: Json = {"metadata": {"resourceVersion": str(2**63)}}
HELM = ("meta.helm.sh/release-name", "meta.helm.sh/release-namespace")


@pytest.fixture(scope="module")
def newer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The chart with another version."""
    folder = tmp_path_factory.mktemp("charts") / "slurm"
    shutil.copytree(CHARTS / "slurm", folder)
    chart: Json = yaml.safe_load((folder / "Chart.yaml").read_text())
    told = {**chart, "version": "9.9.9", "appVersion": "99.11"}
    (folder / "Chart.yaml").write_text(yaml.safe_dump(told))
    return folder


async def upgraded(lab_: Lab, release: Release, values: Json, chart: str | Path = "slurm") -> None:
    """Upgrade, and wait until the operator has taken it."""
    await asyncio.to_thread(release.upgrade, values, chart)
    await settled(lab_)


async def seen(lab_: Lab) -> None:
    """Wait until the test sees what there was when it asked."""
    for kind in ("Controller", "RestApi", "NodeSet", "LoginSet", "Accounting"):
        found = await lab_.user.list(lab_.seen[kind].resource, Selector(lab_.namespace))
        for one in found.items:
            name, version = one.metadata.name, int(one.metadata.resource_version)
            await lab_.until(
                lambda kind=kind, name=name, version=version: (
                    version <= int((lab_.get(kind, name) or GONE)["metadata"]["resourceVersion"])
                )
            )


async def settled(lab_: Lab) -> None:
    await seen(lab_)
    await lab_.until(
        lambda: all(
            lab_.ready(kind, name)
            for kind in ("Controller", "RestApi", "NodeSet")
            for name in lab_.names(kind)
        ),
        within=90,
    )
    await lab_.calm()


def uids(lab_: Lab) -> dict[str, str]:
    """Uids of all pods by name."""
    return {one["metadata"]["name"]: one["metadata"]["uid"] for one in lab_.all("Pod")}


def charts(lab_: Lab) -> dict[str, tuple[str, str]]:
    """The chart and its version that the labels of each pod name."""
    return {
        one["metadata"]["name"]: (
            one["metadata"]["labels"].get("helm.sh/chart", ""),
            one["metadata"]["labels"].get("app.kubernetes.io/version", ""),
        )
        for one in lab_.all("Pod")
    }


def spec(lab_: Lab, kind: str, name: str) -> Json:
    found = lab_.get(kind, name)
    assert found is not None
    return found["spec"]


def with_nodeset(**fields: Any) -> Json:
    return {**CLUSTER, "nodesets": {"compute": {**CLUSTER["nodesets"]["compute"], **fields}}}


async def test_a_release_is_a_cluster_and_its_upgrades_restart_only_what_they_change(
    api_node: Node, newer: Path
) -> None:
    """S030, S032, D37, D38: install, the same again, another chart, one value, back, gone."""
    async with lab(api_node) as lab_, lab_.operator() as running:
        release = Release(api_node, "slurm", lab_.namespace)
        await upgraded(lab_, release, CLUSTER)
        assert lab_.names("NodeSet") == [NODESET]
        assert lab_.workers() == WORKERS
        nodeset = lab_.get("NodeSet", NODESET)
        assert nodeset is not None
        meta = nodeset["metadata"]
        assert meta["labels"]["app.kubernetes.io/managed-by"] == "Helm"
        assert [meta["annotations"][key] for key in HELM] == ["slurm", lab_.namespace]
        pods = uids(lab_)
        version = meta["labels"]["helm.sh/chart"], meta["labels"]["app.kubernetes.io/version"]
        assert charts(lab_) == dict.fromkeys(pods, version)

        await lab_.calm(2)
        written = len(running.writes)
        await upgraded(lab_, release, CLUSTER)
        assert running.writes[written:] == []
        assert uids(lab_) == pods

        await upgraded(lab_, release, CLUSTER, newer)
        labels = (lab_.get("NodeSet", NODESET) or {})["metadata"]["labels"]
        assert labels["helm.sh/chart"] == "slurm-9.9.9"
        assert uids(lab_) == pods, "a version of the chart is no reason to restart a pod"
        assert charts(lab_) == dict.fromkeys(pods, ("slurm-9.9.9", "99.11"))

        await upgraded(
            lab_, release, {**CLUSTER, "restapi": {"slurmrestd": {"args": ["-v"]}}}, newer
        )
        rest = {name for name in pods if name.startswith("slurm-restapi")}
        others = {name: uid for name, uid in pods.items() if name not in rest}
        await lab_.until(lambda: not set(uids(lab_).values()) & {pods[name] for name in rest})
        assert others.items() <= uids(lab_).items()

        await upgraded(lab_, release, with_nodeset(replicas=3))
        await lab_.until(lambda: len(lab_.workers()) == 3)
        await asyncio.to_thread(release.rollback, 2)
        await lab_.until(lambda: lab_.workers() == WORKERS)
        await settled(lab_)
        assert spec(lab_, "NodeSet", NODESET)["replicas"] == 2
        assert others.items() <= uids(lab_).items()
        assert release.revisions() == [1, 2, 3, 4, 5, 6]
        assert release.status() == "deployed"

        await asyncio.to_thread(release.uninstall)
        await lab_.until(
            lambda: not any(lab_.names(kind) for kind in ("Controller", "RestApi", "NodeSet"))
        )


async def test_components_come_and_go_one_by_one(api_node: Node) -> None:
    """S004: each step makes or removes its own objects, and no worker is restarted."""
    async with lab(api_node) as lab_, lab_.operator():
        release = Release(api_node, "slurm", lab_.namespace)
        await upgraded(lab_, release, CLUSTER)
        pods = uids(lab_)
        login: Json = {
            **CLUSTER,
            "loginsets": {"slinky": {"service": {"spec": {"type": "ClusterIP"}}}},
        }
        await upgraded(lab_, release, login)
        await lab_.until(lambda: lab_.names("LoginSet") == ["slurm-login-slinky"])
        accounted: Json = {**login, "accounting": {"enabled": True}}
        await asyncio.to_thread(release.upgrade, accounted)
        await lab_.until(lambda: lab_.names("Accounting") == ["slurm"])
        await upgraded(lab_, release, login)
        await lab_.until(lambda: lab_.names("Accounting") == [])
        await upgraded(lab_, release, CLUSTER)
        await lab_.until(lambda: lab_.names("LoginSet") == [])
        assert {name: uids(lab_)[name] for name in WORKERS} == {n: pods[n] for n in WORKERS}


async def test_what_a_file_leaves_unset_is_not_reset(api_node: Node) -> None:
    """S034, S153: replicas of kubectl outlive an upgrade that does not name them.

    Those that it sets over a user's are told, with both values.
    """
    async with lab(api_node) as lab_, lab_.operator() as running:
        release = Release(api_node, "slurm", lab_.namespace)
        silent: Json = {**CLUSTER, "nodesets": {"compute": {"oversubscribeNode": True}}}
        await upgraded(lab_, release, silent)
        await lab_.patch("NodeSet", NODESET, {"spec": {"replicas": 2}})
        await lab_.until(lambda: lab_.workers() == WORKERS)
        await upgraded(lab_, release, {**silent, "restapi": {"slurmrestd": {"args": ["-v"]}}})
        assert spec(lab_, "NodeSet", NODESET)["replicas"] == 2
        named: Json = {
            **CLUSTER,
            "nodesets": {"compute": {"replicas": 1, "oversubscribeNode": True}},
        }
        assert events(running, "FieldsSetBack") == []
        await upgraded(lab_, release, named)
        await lab_.until(lambda: lab_.workers() == WORKERS[:1])
        await lab_.until(lambda: len(events(running, "FieldsSetBack")) == 1)
        assert "spec.replicas=2 (set by kubectl) is now 1" in events(running, "FieldsSetBack")[0]

        # Of a custom resource Helm 3 compares its own two manifests, and leaves what is the same.
        by_hand: Json = {"replicas": 2, "partition": {"enabled": True, "config": "State=DOWN"}}
        await lab_.patch("NodeSet", NODESET, {"spec": by_hand})
        await upgraded(lab_, release, {**named, "restapi": {"slurmrestd": {"args": ["-v"]}}})
        assert spec(lab_, "NodeSet", NODESET)["replicas"] == 2
        assert len(events(running, "FieldsSetBack")) == 1
        await asyncio.to_thread(release.replace, named)
        await lab_.until(lambda: lab_.workers() == WORKERS[:1])
        await lab_.until(lambda: len(events(running, "FieldsSetBack")) == 2)
        told = events(running, "FieldsSetBack")[1]
        assert 'spec.partition.config="State=DOWN" (set by kubectl) is now unset' in told
        assert "spec.replicas=2 (set by kubectl) is now 1" in told


async def test_objects_of_a_release_are_kept_by_hand_from_then_on(api_node: Node) -> None:
    """S035 the other way: Helm forgets the release, and nothing is restarted."""
    async with lab(api_node) as lab_, lab_.operator():
        release = Release(api_node, "slurm", lab_.namespace)
        await upgraded(lab_, release, CLUSTER)
        pods = uids(lab_)
        kinds = {"Controller": "slurm", "RestApi": "slurm", "NodeSet": NODESET}
        before = {kind: spec(lab_, kind, name) for kind, name in kinds.items()}
        forgotten = [n for n in lab_.names("Secret") if n.startswith("sh.helm.release.v1.slurm.")]
        assert forgotten
        for name in forgotten:
            await lab_.delete("Secret", name)
        await asyncio.to_thread(release.uninstall)
        for kind, name in kinds.items():
            by_hand: Json = {
                "apiVersion": "slinky.slurm.net/v1beta1",
                "kind": kind,
                "metadata": {"name": name, "labels": {"team": "a"}},
                "spec": before[kind],
            }
            await lab_.apply(by_hand)
        await settled(lab_)
        assert {kind: spec(lab_, kind, name) for kind, name in kinds.items()} == before
        assert uids(lab_) == pods
        await lab_.patch("NodeSet", NODESET, {"spec": {"replicas": 1}})
        await lab_.until(lambda: lab_.workers() == WORKERS[:1])


async def test_an_object_made_by_hand_is_taken_over(api_node: Node) -> None:
    """S030, S035, S036: labelled, annotated and upgraded; only what differs changes."""
    async with lab(api_node) as lab_, lab_.operator():
        release = Release(api_node, "slurm", lab_.namespace)
        alone: Json = {**CLUSTER, "nodesets": {}}
        await asyncio.to_thread(release.upgrade, alone)
        by_hand: Json = {
            "apiVersion": "slinky.slurm.net/v1beta1",
            "kind": "NodeSet",
            "metadata": {"name": "compute"},
            "spec": {
                "controllerRef": {"name": "slurm"},
                "replicas": 2,
                "oversubscribeNode": True,
                "slurmd": {"image": "registry/slurmd:1", "imagePullPolicy": "IfNotPresent"},
                "logfile": {"image": "registry/slurmd:1", "imagePullPolicy": "IfNotPresent"},
                "template": {
                    "metadata": {
                        "labels": {
                            "app.kubernetes.io/managed-by": "Helm",
                            "app.kubernetes.io/part-of": "slurm",
                        }
                    },
                    "spec": {"nodeSelector": {"kubernetes.io/os": "linux"}},
                },
            },
        }
        await lab_.apply(by_hand)
        await settled(lab_)
        await lab_.until(lambda: lab_.workers() == ["compute-0", "compute-1"])
        pods = uids(lab_)
        meta = (lab_.get("NodeSet", "compute") or {})["metadata"]
        assert "app.kubernetes.io/managed-by" not in meta.get("labels", {})
        assert not set(HELM) & set(meta.get("annotations", {}))
        annotations = {HELM[0]: "slurm", HELM[1]: lab_.namespace}
        mark: Json = {
            "labels": {"app.kubernetes.io/managed-by": "Helm"},
            "annotations": annotations,
        }
        await lab_.patch("NodeSet", "compute", {"metadata": mark})
        image: Json = {"image": "registry/slurmd:1"}
        same: Json = {
            "fullnameOverride": "compute",
            "replicas": 2,
            "oversubscribeNode": True,
            "slurmd": image,
            "logfile": image,
        }
        await upgraded(lab_, release, {**CLUSTER, "nodesets": {"compute": same}})
        assert uids(lab_) == pods
        assert lab_.names("NodeSet") == ["compute"]
        assert release.status() == "deployed"
        fewer: Json = {**same, "replicas": 1, "partition": {"enabled": True, "config": "State=UP"}}
        await upgraded(lab_, release, {**CLUSTER, "nodesets": {"compute": fewer}})
        await lab_.until(lambda: lab_.workers() == ["compute-0"])
        assert uids(lab_)["compute-0"] == pods["compute-0"]
        assert spec(lab_, "NodeSet", "compute")["partition"]["config"] == "State=UP"
