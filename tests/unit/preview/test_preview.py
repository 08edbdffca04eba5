"""What `penstock plan` says of a change, on a copy of a simulated cluster."""

from __future__ import annotations

import asyncio
from copy import deepcopy
from dataclasses import replace

import msgspec
import pytest

from fault_plans.plan import Layout
from fault_plans.promises import final_state as expected
from fault_plans.world import World
from penstock.api.kubernetes.meta import Json
from penstock.preview.dry_run import LAST_APPLIED, merge_patch
from penstock.preview.effect import Effects
from penstock.preview.report import render_report
from penstock.preview.state import ClusterCopy
from penstock.simulation.event_loop import EPOCH, simulate
from penstock.slurm.conf.apply_method import Force
from penstock.slurm.state import Job
from support.plans import copied, effects_of

SETTLED_S = 120.0
CLUSTER = "slurm/slurm"


async def _settled() -> ClusterCopy:
    """A cluster of two workers with one job, as long after its start as it takes to be calm."""
    world = World(1, Layout())
    world.declare(2)
    process = world.operator()
    await asyncio.sleep(SETTLED_S)
    assert expected.missing(world) == []
    ctld = world.slurm.ctld
    job = ctld.run("compute-1", start=int(world.true_time()))
    await asyncio.sleep(SETTLED_S)
    await world.crash(process)
    jobs = (Job(job.id, frozenset({"RUNNING"}), ("compute-1",), start_time=job.start),)
    return copied(world, CLUSTER, jobs)


def stored_key(obj: Json) -> tuple[str, str]:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


@pytest.fixture(scope="module")
def live() -> ClusterCopy:
    return simulate(_settled())


def changed(live: ClusterCopy, plural: str, name: str, **spec: object) -> Effects:
    """What a change of these fields of a spec would do."""
    resource = f"slinky.slurm.net/{plural}"
    obj: Json = deepcopy(live.objects[resource]["slurm", name])
    obj["spec"] |= spec
    obj["metadata"]["generation"] += 1
    return effects_of(live, [(resource, obj)], EPOCH + 3 * SETTLED_S)


def test_a_cluster_that_is_as_declared_has_nothing_to_do(live: ClusterCopy) -> None:
    found = effects_of(live, [], EPOCH + 3 * SETTLED_S)
    assert render_report(found) == "Nothing would change."


def test_a_reconcile_that_fails_in_the_simulated_run_is_reported(
    live: ClusterCopy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> Json:
        raise ValueError("no such field")

    monkeypatch.setattr("penstock.render.slinky.cluster.slurmctld.stateful_set", broken)
    found = changed(live, "controllers", "slurm", slurmctld={"image": "slurmctld:2"})
    (said,) = found.failed
    assert "Controller slurm cannot be reconciled" in said
    assert "ValueError: no such field" in said
    assert not found.nothing
    assert "No pod restarts" not in render_report(found)


def test_other_values_for_an_object_that_is_taken_over_are_reported_with_what_they_do(
    live: ClusterCopy,
) -> None:
    """S036: its partition, its pods, and nothing else."""
    partition = {"enabled": True, "config": "State=UP"}
    found = changed(live, "nodesets", "compute", replicas=1, partition=partition)
    assert [item.need.force for one in found.files for item in one.plan.items] == [Force.REST]
    assert "PartitionName=compute takes effect at once" in render_report(found)
    (workers,) = found.workers
    assert (workers.deleted, workers.drained, workers.outdated) == (("compute-0",), (), ())
    assert found.workloads == ()


def test_a_key_of_slurm_conf_is_named_with_what_it_needs(live: ClusterCopy) -> None:
    found = changed(live, "controllers", "slurm", extraConf="MessageTimeout=20\n")
    assert [item.need.force for one in found.files for item in one.plan.items] == [
        Force.RECONFIGURE
    ]
    assert found.workloads == found.workers == ()
    told = render_report(found)
    assert "slurm/slurm: MessageTimeout takes effect by a reconfigure; nothing restarts" in told
    assert "No pod restarts or ends at once." in told
    assert "No job is touched or waited for." in told


def test_a_key_that_nobody_knows_is_reported_as_unknown(live: ClusterCopy) -> None:
    told = render_report(changed(live, "controllers", "slurm", extraConf="BogusKey=1\n"))
    assert "is not known to this version" in told


def test_a_new_image_names_the_pods_and_the_jobs_that_are_waited_for(live: ClusterCopy) -> None:
    """S036."""
    found = changed(live, "nodesets", "compute", slurmd={"image": "slurmd:2"})
    (workers,) = found.workers
    assert {*workers.deleted, *workers.drained, *workers.outdated} == {"compute-0", "compute-1"}
    assert workers.deleted == ("compute-0",), "the idle one goes first"
    assert list(workers.jobs) == ["compute-1"]
    assert "compute-1 has job 1" in render_report(found)


def test_a_new_feature_is_given_to_the_nodes_and_no_pod_is_outdated(live: ClusterCopy) -> None:
    found = changed(live, "nodesets", "compute", extraConf="Feature=fast")
    (workers,) = found.workers
    assert workers.changed == ("compute-0", "compute-1")
    assert (workers.deleted, workers.drained, workers.outdated) == ((), (), ())
    told = render_report(found)
    assert "2 pods (compute-0, compute-1): features, weight or GRES change in Slurm" in told
    assert "No pod restarts or ends at once." in told


def test_pods_that_are_updated_by_hand_stay(live: ClusterCopy) -> None:
    strategy = {"type": "OnDelete"}
    image = {"image": "slurmd:2"}
    found = changed(live, "nodesets", "compute", slurmd=image, updateStrategy=strategy)
    (workers,) = found.workers
    assert (workers.deleted, workers.outdated) == ((), ("compute-0", "compute-1"))
    assert "until somebody deletes them" in render_report(found)


def test_fewer_replicas_end_the_idle_and_wait_for_the_busy(live: ClusterCopy) -> None:
    (workers,) = changed(live, "nodesets", "compute", replicas=0).workers
    assert workers.deleted == ("compute-0",)
    assert workers.drained == ("compute-1",)
    assert list(workers.jobs) == ["compute-1"]


def test_more_replicas_are_created(live: ClusterCopy) -> None:
    (workers,) = changed(live, "nodesets", "compute", replicas=3).workers
    assert workers.created == ("compute-2",)
    assert workers.jobs == {}


def test_another_image_of_slurmctld_restarts_its_pod(live: ClusterCopy) -> None:
    found = changed(live, "controllers", "slurm", slurmctld={"image": "slurmctld:2"})
    assert [(one.kind, one.key) for one in found.workloads] == [
        ("StatefulSet", ("slurm", "slurm-controller"))
    ]
    assert "Pods that restart" in render_report(found)


def test_what_a_real_api_server_adds_to_a_workload_is_not_listed_as_changed(
    live: ClusterCopy,
) -> None:
    """Defaults in atomic lists, a port's key with its protocol, and null times before 1.34."""
    key = ("slurm", "slurm-controller")
    obj: Json = deepcopy(live.objects["apps/statefulsets"][key])
    template: Json = obj["spec"]["template"]
    template["metadata"]["creationTimestamp"] = None
    for claim in obj["spec"]["volumeClaimTemplates"]:
        claim["metadata"]["creationTimestamp"] = None
        claim |= {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "status": {"phase": "P"}}
        claim["spec"]["volumeMode"] = "Filesystem"
    (entry,) = (one for one in obj["metadata"]["managedFields"] if one["operation"] == "Apply")
    owned: Json = entry["fieldsV1"]["f:spec"]["f:template"]
    owned["f:metadata"]["f:creationTimestamp"] = {}
    ports = [
        container["f:ports"]
        for container in owned["f:spec"]["f:containers"].values()
        if "f:ports" in container
    ]
    assert ports
    assert obj["spec"]["volumeClaimTemplates"]
    for one in ports:
        for step in list(one):
            number = msgspec.json.decode(step[2:])["containerPort"]
            real = msgspec.json.encode({"containerPort": number, "protocol": "TCP"}).decode()
            one[f"k:{real}"] = one.pop(step)
    sets = {**live.objects["apps/statefulsets"], key: obj}
    real_one = replace(live, objects={**live.objects, "apps/statefulsets": sets})
    assert (
        changed(real_one, "controllers", "slurm", extraConf="MessageTimeout=20\n").workloads == ()
    )
    found = changed(real_one, "controllers", "slurm", slurmctld={"image": "slurmctld:2"})
    (touched,) = (one for one in found.objects if one.kind == "StatefulSet")
    assert set(touched.paths) == {
        "spec.template.spec.containers",
        "spec.template.spec.initContainers",
    }


def test_a_slurm_that_cannot_be_asked_is_reported_and_nothing_is_deleted(live: ClusterCopy) -> None:
    silent = replace(live, slurm={CLUSTER: "Connection refused"})
    found = changed(silent, "nodesets", "compute", replicas=0)
    assert all(one.deleted == () for one in found.workers)
    assert "Slurm could not be asked, so its jobs are not known: slurm/slurm" in render_report(
        found
    )


def test_what_the_file_had_before_and_has_no_more_is_taken_away() -> None:
    last = '{"spec":{"replicas":2,"slurmd":{"image":"a"}},"metadata":{"labels":{"x":"y"}}}'
    live = {
        "metadata": {"name": "n", "annotations": {LAST_APPLIED: last}},
        "spec": {"replicas": 2, "slurmd": {"image": "a"}, "ssh": {}},
    }
    document = {"kind": "NodeSet", "metadata": {"name": "n"}, "spec": {"slurmd": {"image": "b"}}}
    assert merge_patch(live, document) == {
        "metadata": {"labels": None, "name": "n"},
        "spec": {"replicas": None, "slurmd": {"image": "b"}},
    }
