"""What stays of the workloads and worker pods that soperator left, and the Slurm nodes at stake."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from penstock.api.cluster import marks
from penstock.api.kubernetes.meta import Json
from penstock.api.nebius import labels
from penstock.render.nebius import adopted_workload as adopted
from penstock.render.nebius.cluster import login, slurmctld
from penstock.render.nebius.config.files import files
from penstock.render.nebius.config.static_nodes import lost_nodes
from penstock.render.nebius.worker.adopted_pod import adoption_patch
from penstock.simulation.kubelet.pod_manifests import pod_of
from penstock.slurm.conf.document import Document
from penstock.slurm.conf.includes import resolved
from support import nebius
from support.nebius_clusters import CURRENT, OLDER, SHAPES, Rendered, rendered
from support.soperator_left import NAMES, WORKERS, SoperatorObjects

LEFT = {OLDER: "1.23", CURRENT: "5.0"}


def cluster(shape: str) -> tuple[SoperatorObjects, Rendered]:
    """The captured objects, and what Penstock renders from their SlurmCluster and NodeSets."""
    left = SoperatorObjects(LEFT[shape])
    (declared,) = left.of("SlurmCluster")
    sets: list[Any] = [nebius.decode(one) for one in left.of("NodeSet")]
    prefix = "" if shape == OLDER else f"{left.name}-"
    return left, rendered(nebius.decode(declared), sets, prefix)  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_successor_has_the_template_of_openkruise_but_for_its_readiness_gate(shape: str) -> None:
    """D80."""
    left, found = cluster(shape)
    for manifest in (slurmctld.stateful_set(found.inputs), login.stateful_set(found.inputs)):
        theirs = left.find("StatefulSet", manifest["metadata"]["name"])
        made = adopted.successor(manifest, theirs, "note")
        had = theirs["spec"]
        pod = {k: v for k, v in had["template"]["spec"].items() if k != "readinessGates"}
        assert made["spec"]["template"] == {**had["template"], "spec": pod}
        assert {made["spec"][k] == had[k] for k in ("selector", "serviceName", "replicas")} == {
            True
        }
        assert made["spec"]["updateStrategy"] == {"type": "OnDelete"}
        assert made["metadata"]["annotations"] == {marks.ADOPTED_TEMPLATE: "note"}
        assert (made["apiVersion"], made["kind"]) == ("apps/v1", "StatefulSet")


def test_a_claim_template_goes_with_it_without_its_namespace_and_status() -> None:
    left, found = cluster(OLDER)
    manifest = slurmctld.stateful_set(found.inputs)
    theirs = deepcopy(left.find("StatefulSet", "controller"))
    claims = left.find("StatefulSet", "worker")["spec"]["volumeClaimTemplates"]
    theirs["spec"]["volumeClaimTemplates"] = claims
    (made,) = adopted.successor(manifest, theirs, "note")["spec"]["volumeClaimTemplates"]
    assert made["spec"] == claims[0]["spec"]
    assert made["metadata"].keys() == {"name", "labels"}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_note_covers_what_reaches_pods_and_no_counts_or_services(shape: str) -> None:
    left, _ = cluster(shape)
    (declared,) = left.of("SlurmCluster")

    def note(path: str = "", value: Any = None) -> tuple[str, str]:
        changed = deepcopy(declared)
        *above, last = path.split(".")
        node: Json = changed["spec"]
        for key in above:
            node = node[key]
        if last:
            node[last] = value
        inputs = rendered(nebius.decode(changed)).inputs  # type: ignore[arg-type]
        return adopted.slurmctld(inputs).note, adopted.login(inputs).note

    before = note()
    assert note("slurmNodes.login.size", 7) == before
    assert note("slurmNodes.login.sshdServiceNodePort", 30023) == before
    for path in ("slurmNodes.controller.priorityClass", "customSlurmConfig"):
        now = note(path, "other")
        assert now[0] != before[0], path
        assert now[1] == before[1], path
    assert note("slurmNodes.login.priorityClass", "other")[1] != before[1]
    assert note("mpiConfig", {"pmixEnv": "A=b"})[0] != before[0]


def worker(shape: str, number: int = 0) -> tuple[Rendered, Json]:
    left, found = cluster(shape)
    name = WORKERS[LEFT[shape]][number]
    theirs = left.find("StatefulSet", name)
    pod = pod_of(theirs, f"{name}-1", "0123456789ab")
    pod["metadata"] |= {"uid": "u", "resourceVersion": "7", "ownerReferences": []}
    return found, pod


@pytest.mark.parametrize("shape", SHAPES)
def test_a_worker_as_it_is_declared_gets_the_hash_of_the_current_template(shape: str) -> None:
    """D80."""
    found, pod = worker(shape)
    steps, current = adoption_patch(found.workers[0], pod, found.pod(), "hash")
    assert current
    changed = {one["path"]: one["value"] for one in steps}
    old = pod["metadata"]["labels"][labels.REVISION]
    assert changed["/metadata/labels"][labels.REVISION] == "hash"
    assert changed["/metadata/annotations"][marks.ADOPTED_REVISION] == old
    assert [one["controller"] for one in changed["/metadata/ownerReferences"]] == [True]
    assert changed["/metadata/resourceVersion"] == "7"


def test_a_worker_with_another_image_or_amount_is_taken_over_as_outdated() -> None:
    """D82."""
    found, pod = worker(OLDER)
    for change in ("image", "resources"):
        other = deepcopy(pod)
        container = other["spec"]["containers"][0]
        container[change] = "other:1" if change == "image" else {"requests": {"cpu": "2"}}
        steps, current = adoption_patch(found.workers[0], other, found.pod(), "hash")
        assert not current
        values = {one["path"]: one["value"] for one in steps}
        label = values["/metadata/labels"][labels.REVISION]
        assert label == pod["metadata"]["labels"][labels.REVISION]


def test_a_pod_that_penstock_itself_made_before_keeps_its_hash() -> None:
    found, pod = worker(OLDER)
    pod["metadata"]["labels"][labels.REVISION] = "6c7d58db5c"
    _, current = adoption_patch(found.workers[0], pod, found.pod(), "hash")
    assert not current


@pytest.mark.parametrize(("shape", "lost"), [(OLDER, ()), (CURRENT, ("worker-cpu-1",))])
def test_nodes_that_only_the_originals_files_name_are_at_stake(
    shape: str, lost: tuple[str, ...], current: Any, older: Any
) -> None:
    """D82."""
    theirs = SoperatorObjects(LEFT[shape]).find("ConfigMap", f"{NAMES[LEFT[shape]]}-slurm-configs")[
        "data"
    ]
    ours = files((older if shape == OLDER else current)())
    names = ("worker-cpu-1", "worker-eph-0", "worker-1", "worker-cpu-2")
    assert lost_nodes(theirs, ours, names) == lost


@pytest.mark.parametrize("shape", SHAPES)
def test_slurmctld_stays_root_where_it_is_in_the_files_in_force(
    shape: str, current: Any, older: Any
) -> None:
    """D82: each slurmd of the original would reject another user."""
    left, found = cluster(shape)
    before = left.find("ConfigMap", f"{NAMES[shape]}-slurm-configs")["data"]
    config = (older if shape == OLDER else current)()
    assert Document.parse(resolved(files(config))).get("SlurmUser") == "slurm"
    for _ in range(2):
        before = files(replace(config, published=before))
        assert Document.parse(resolved(before)).get("SlurmUser") == "root"
    for one in (found.inputs, replace(found.inputs, runs_as_root=True)):
        spec = slurmctld.stateful_set(one)["spec"]["template"]["spec"]
        users = [
            variable["value"]
            for container in (*spec["initContainers"], *spec["containers"])
            for variable in container.get("env", ())
            if variable["name"] == "PENSTOCK_SLURM_USER"
        ]
        assert users == ["root", "root"] * one.runs_as_root


def test_a_host_list_that_nobody_can_read_names_no_node() -> None:
    conf = {"slurm.conf": "NodeName=a-[0- State=CLOUD\nNodeName=b-0\nNodeName=\n"}
    assert lost_nodes(conf, {}, ("a-0", "b-0")) == ("b-0",)
