"""What `penstock plan` reports of a change of a SlurmCluster, on a copy of a simulated one."""

from __future__ import annotations

import asyncio
from copy import deepcopy
from dataclasses import replace

import pytest

from fault_plans import nebius_specs as specs
from fault_plans.api_names import CLUSTER
from fault_plans.nebius_world import NebiusWorld
from fault_plans.plan import Layout
from fault_plans.world import SPACE
from penstock.api.kubernetes.meta import Json
from penstock.preview.effect import Effects, How
from penstock.preview.report import render_report
from penstock.preview.state import ClusterCopy
from penstock.simulation.event_loop import EPOCH, simulate
from penstock.slurm.conf.apply_method import Force
from penstock.slurm.state import Job
from support.plans import NEBIUS_PREVIEW, copied, effects_of

SETTLED_S = 200.0
NOW = EPOCH + 3 * SETTLED_S
CLUSTERS, NODE_SETS = "slurm.nebius.ai/slurmclusters", "slurm.nebius.ai/nodesets"


async def _settled(shape: str) -> ClusterCopy:
    """A cluster of two workers with a job on the second one."""
    world = NebiusWorld(1, Layout(nebius=shape))
    world.declare(2)
    process = world.operator()
    await asyncio.sleep(SETTLED_S)
    assert len(world.slurm.ctld.nodes) == 2
    second = sorted(world.slurm.ctld.nodes)[1]
    job = world.slurm.ctld.run(second, start=int(world.true_time()))
    await asyncio.sleep(SETTLED_S)
    await world.crash(process)
    running = Job(job.id, frozenset({"RUNNING"}), (second,), start_time=job.start)
    return copied(world, f"{SPACE}/{CLUSTER}", [running])


@pytest.fixture(scope="module")
def current() -> ClusterCopy:
    """With a NodeSet."""
    return simulate(_settled(specs.CURRENT))


@pytest.fixture(scope="module")
def older() -> ClusterCopy:
    """With workers of its own."""
    return simulate(_settled(specs.OLDER))


def after(live: ClusterCopy, *wanted: tuple[str, Json]) -> Effects:
    return effects_of(live, wanted, NOW, NEBIUS_PREVIEW)


def changed(live: ClusterCopy, resource: str, **spec: object) -> Effects:
    """What a change of these fields of the one object of a kind would do."""
    (found,) = live.objects[resource].values()
    obj: Json = deepcopy(found)
    obj["spec"] |= spec
    obj["metadata"]["generation"] += 1
    return after(live, (resource, obj))


def names(live: ClusterCopy) -> list[str]:
    """The workers, by name."""
    pods = live.objects["/pods"].items()
    wanted = ("worker", "nodeset")
    component = "app.kubernetes.io/component"
    return sorted(name for (_, name), p in pods if p["metadata"]["labels"][component] in wanted)


@pytest.mark.parametrize("shape", ["current", "older"])
def test_a_cluster_that_is_as_declared_has_nothing_to_do(
    shape: str, request: pytest.FixtureRequest
) -> None:
    live: ClusterCopy = request.getfixturevalue(shape)
    assert render_report(after(live)) == "Nothing would change."


@pytest.mark.parametrize("shape", ["current", "older"])
def test_the_operator_of_the_other_api_leaves_all_of_it(
    shape: str, request: pytest.FixtureRequest
) -> None:
    live: ClusterCopy = request.getfixturevalue(shape)
    others = ("slinky.slurm.net/", "slurm.nebius.ai/")
    objects = {name: found for name, found in live.objects.items() if not name.startswith(others)}
    found = effects_of(ClusterCopy(objects), [], NOW)
    assert render_report(found) == "Nothing would change."


@pytest.mark.parametrize("shape", ["current", "older"])
def test_a_key_of_slurm_conf_takes_effect_by_a_reconfigure(
    shape: str, request: pytest.FixtureRequest
) -> None:
    live: ClusterCopy = request.getfixturevalue(shape)
    found = changed(live, CLUSTERS, customSlurmConfig="MessageTimeout=20\n")
    forces = {item.need.force for one in found.files for item in one.plan.items}
    assert forces == {Force.RECONFIGURE}
    assert found.workloads == found.workers == found.restarts == ()
    told = render_report(found)
    assert f"{SPACE}/{CLUSTER}: MessageTimeout takes effect by a reconfigure" in told
    assert "No job is touched or waited for." in told


@pytest.mark.parametrize("shape", ["current", "older"])
def test_a_key_that_needs_another_slurmctld_names_its_pod(
    shape: str, request: pytest.FixtureRequest
) -> None:
    live: ClusterCopy = request.getfixturevalue(shape)
    conf = "CommunicationParameters=NoCtldInAddrAny\n"
    found = changed(live, CLUSTERS, customSlurmConfig=conf)
    (restart,) = found.restarts
    assert restart.daemon == "slurmctld"
    assert [name.endswith("controller-0") for name in restart.pods] == [True]
    assert restart.how is (How.YOURS if restart.loses_state else How.OPERATOR)


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ("current", "change an annotation of spec.workerAnnotations of NodeSet compute"),
        ("older", "drain each in Slurm, and delete its pod when its jobs have ended"),
    ],
)
def test_a_key_that_needs_other_slurmds_explains_how_workers_are_replaced(
    shape: str, words: str, request: pytest.FixtureRequest
) -> None:
    live: ClusterCopy = request.getfixturevalue(shape)
    found = changed(live, CLUSTERS, customSlurmConfig="SlurmdPort=7001\n")
    (one,) = (one for one in found.restarts if one.daemon == "slurmd")
    assert list(one.pods) == names(live)
    assert words in render_report(found)


def test_fewer_workers_of_a_nodeset_end_the_idle_and_wait_for_the_busy(
    current: ClusterCopy,
) -> None:
    (workers,) = changed(current, NODE_SETS, replicas=0).workers
    idle, busy = names(current)
    assert (workers.deleted, workers.drained) == ((idle,), (busy,))
    assert list(workers.jobs) == [busy]


def test_fewer_workers_of_the_older_shape_end_the_idle_and_wait_for_the_busy(
    older: ClusterCopy,
) -> None:
    (cluster,) = older.objects[CLUSTERS].values()
    nodes = deepcopy(cluster["spec"]["slurmNodes"])
    nodes["worker"]["size"] = 0
    (workers,) = changed(older, CLUSTERS, slurmNodes=nodes).workers
    idle, busy = names(older)
    assert (workers.deleted, workers.drained) == ((idle,), (busy,))


def test_another_image_of_workers_names_the_jobs_that_are_waited_for(current: ClusterCopy) -> None:
    (node_set,) = current.objects[NODE_SETS].values()
    slurmd = deepcopy(node_set["spec"]["slurmd"])
    slurmd["image"] = {"repository": "registry.example/slurmd", "tag": "2"}
    found = changed(current, NODE_SETS, slurmd=slurmd)
    (workers,) = found.workers
    assert {*workers.deleted, *workers.drained, *workers.outdated} == {*names(current)}
    assert "has job 1" in render_report(found)


def test_another_image_of_slurmctld_replaces_its_pod(current: ClusterCopy) -> None:
    (cluster,) = current.objects[CLUSTERS].values()
    nodes = deepcopy(cluster["spec"]["slurmNodes"])
    nodes["controller"]["slurmctld"]["image"] = "registry.example/slurmctld:2"
    found = changed(current, CLUSTERS, slurmNodes=nodes)
    assert {one.daemon for one in found.restarts} == {"slurmctld"}
    assert {one.how for one in found.restarts} == {How.TEMPLATE}


def test_a_new_partition_takes_effect_by_a_call(current: ClusterCopy) -> None:
    parts = {"configType": "custom", "rawConfig": ["PartitionName=more Nodes=ALL State=UP"]}
    found = changed(current, CLUSTERS, partitionConfiguration=parts)
    forces = {item.need.force for one in found.files for item in one.plan.items}
    assert Force.RESTART not in forces
    assert found.files
    assert found.restarts == ()


def test_a_slurm_that_cannot_be_asked_is_reported_and_nothing_is_deleted(
    current: ClusterCopy,
) -> None:
    silent = replace(current, slurm={f"{SPACE}/{CLUSTER}": "Connection refused"})
    found = changed(silent, NODE_SETS, replicas=0)
    assert all(one.deleted == () for one in found.workers)
    assert f"Slurm could not be asked, so its jobs are not known: {SPACE}/{CLUSTER}" in (
        render_report(found)
    )


def test_a_deleted_slurmcluster_is_no_traceback(current: ClusterCopy) -> None:
    (cluster,) = current.objects[CLUSTERS].values()
    obj: Json = deepcopy(cluster)
    obj["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert not after(current, (CLUSTERS, obj)).failed


def test_a_new_slurmcluster_is_created_whole(current: ClusterCopy) -> None:
    (cluster,) = current.objects[CLUSTERS].values()
    meta = {"name": "second", "namespace": SPACE, "uid": "second", "generation": 1}
    obj: Json = {
        "apiVersion": "slurm.nebius.ai/v1",
        "kind": "SlurmCluster",
        "metadata": meta | {"creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": deepcopy(cluster["spec"]),
    }
    found = after(current, (CLUSTERS, obj))
    assert not found.failed
    assert {"create"} == {one.verb for one in found.objects if "second" in one.key[1]}
    assert not found.restarts
