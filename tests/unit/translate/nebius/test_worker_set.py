"""Both shapes of a SlurmCluster declare worker sets, with the names that users and scripts know."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from penstock.api.nebius import names
from penstock.api.nebius.nodeset import NodeSet
from penstock.api.nebius.slurmcluster import SlurmCluster
from penstock.model.jail import MaintenanceMode
from penstock.model.worker_set import WorkerSet
from penstock.model.worker_status import WorkerSetStatus
from penstock.translate.nebius.cluster import cluster
from penstock.translate.nebius.jail import jail_filling
from penstock.translate.nebius.node_words import adopted_node_config, node_words
from penstock.translate.nebius.worker_set import (
    cluster_status,
    cluster_workers,
    node_set_status,
    node_set_workers,
)
from support import nebius

OLDER, CURRENT, WORKERS = "slurmcluster-1.23-0", "slurmcluster-5.0-0", "nodesets-5.0-0"
COUNTS = WorkerSetStatus(
    observed_generation=4,
    replicas=3,
    updated_replicas=2,
    ready_replicas=2,
    available_replicas=1,
    unavailable_replicas=2,
    desired=3,
    slurm_idle=1,
    slurm_allocated=1,
    slurm_down=0,
    slurm_drain=1,
    revision="abc",
    ordinal_to_node={"0": "node-a"},
)


def older(**changes: Any) -> SlurmCluster:
    return msgspec.convert(nebius.manifest(OLDER, changes), SlurmCluster)


def node_set(**changes: Any) -> NodeSet:
    return msgspec.convert(nebius.manifest(WORKERS, changes), NodeSet)


def of_cluster(**changes: Any) -> WorkerSet:
    found = cluster_workers(older(**changes))
    assert found is not None
    return found


def test_features_of_single_workers_are_known_beside_those_of_all():
    feature = {"name": "big", "hostlistExpr": "worker-[0-1]"}
    assert of_cluster(**{"spec.workerFeatures": [feature]}).own_features == {"big"}


def test_workers_of_the_older_shape_are_the_set_worker_of_the_cluster():
    found = of_cluster()
    assert (found.kind, found.cluster, found.replicas) == ("SlurmCluster", "correct-cpu-cluster", 2)
    assert [found.names.pod(0), found.names.host(1)] == ["worker-0", "worker-1"]
    assert found.selector_text == (
        "app.kubernetes.io/component=worker,"
        "app.kubernetes.io/instance=correct-cpu-cluster,"
        "app.kubernetes.io/name=slurmcluster"
    )
    assert found.update.max_unavailable == "20%"
    assert found.pvcs.templates == ("worker-spool",)
    assert (found.pvcs.when_deleted, found.pvcs.when_scaled) == ("Delete", "Retain")
    assert found.parameters == "Features=worker RealMemory=1024"
    assert found.placement is not None
    assert found.placement.terms is not None


def test_workers_of_a_second_cluster_of_a_namespace_have_its_prefix():
    found = cluster_workers(older(), "second-")
    assert found is not None
    assert [found.names.pod(0), found.names.host(1)] == ["second-worker-0", "second-worker-1"]
    assert (found.names.feature, found.names.pvc("worker-spool", 0)) == (
        "worker",
        "worker-spool-second-worker-0",
    )


def test_a_filter_that_does_not_exist_places_no_worker():
    found = of_cluster(**{"spec.slurmNodes.worker.k8sNodeFilterName": "absent"})
    assert found.placement is None


def test_a_cluster_of_today_has_no_workers_of_its_own():
    found = msgspec.convert(nebius.manifest(CURRENT), SlurmCluster)
    assert cluster_workers(found) is None


def test_a_node_set_names_pods_and_slurm_nodes_alike():
    found = node_set_workers(node_set())
    assert (found.kind, found.cluster, found.replicas) == ("NodeSet", "soperator", 2)
    assert [found.names.pod(0), found.names.host(1)] == ["worker-cpu-0", "worker-cpu-1"]
    assert found.selector["slurm.nebius.ai/nodeset"] == "worker-cpu"
    assert found.parameters == (
        "Features=worker-cpu,cpu RealMemory=1024 "
        "Boards=1 SocketsPerBoard=1 CoresPerSocket=2 ThreadsPerCore=1"
    )
    assert (found.pvcs.when_deleted, found.pvcs.when_scaled) == ("Delete", "Delete")


def test_a_node_set_of_an_early_version_names_its_cluster_in_an_annotation():
    changes = {
        "spec.clusterName": nebius.ABSENT,
        "metadata.annotations": {"slurm.nebius.ai/parental-cluster-ref": "old"},
    }
    assert node_set_workers(node_set(**changes)).cluster == "old"


@pytest.mark.parametrize(
    ("mode", "count"),
    [("none", 2), ("skipPopulateJail", 2), ("downscale", 0), ("downscaleAndDeletePopulateJail", 0)],
)
def test_maintenance_scales_workers_of_both_shapes_in(mode: Any, count: int):
    assert of_cluster(**{"spec.maintenance": mode}).replicas == count
    assert node_set_workers(node_set(), mode).replicas == count


def test_a_drain_reason_of_the_original_is_somebody_elses():
    prefix = node_set_workers(node_set()).marks.drain_prefix
    assert not "soperator rolling update".startswith(prefix)


def test_counts_come_back_from_the_status_of_either_kind():
    declared = node_set()
    status = node_set_status(declared.status, COUNTS)
    assert status.replicas == COUNTS.available_replicas
    last = node_set_workers(msgspec.structs.replace(declared, status=status)).last
    assert (last.revision, last.slurm_drain, last.ordinal_to_node) == ("abc", 1, {"0": "node-a"})
    whole = older()
    shown = cluster_status(whole.status, COUNTS)
    assert shown.ready_workers == COUNTS.ready_replicas
    workers = cluster_workers(msgspec.structs.replace(whole, status=shown))
    assert workers is not None
    assert (workers.last.replicas, workers.last.revision) == (3, "abc")


@pytest.mark.parametrize(
    ("features", "static", "memory", "words"),
    [
        (("a", "b"), "", "1Gi", "Features=a,b RealMemory=1024"),
        (
            ("a",),
            "Feature=x,y State=CLOUD Gres=gpu:8",
            "1G",
            "Features=a,x,y RealMemory=953 Gres=gpu:8",
        ),
        (("a",), "RealMemory=7", "1Gi", "Features=a RealMemory=7"),
        (("a", "", "a"), "  ", None, "Features=a"),
        (("a",), "", "much", "Features=a"),
    ],
)
def test_words_of_a_node_have_its_features_once_and_the_memory_unless_the_user_gives_it(
    features: tuple[str, ...], static: str, memory: str | None, words: str
):
    resources: dict[str, str | int | float] = {} if memory is None else {"memory": memory}
    assert node_words(features, static, resources) == words


def test_the_cluster_has_its_own_workers_and_the_node_sets_by_name():
    found = cluster(older(), [node_set(), node_set(**{"metadata.name": "a"})])
    assert [one.name for one in found.node_sets] == ["worker", "a", "worker-cpu"]
    assert (found.host, found.port) == (
        "correct-cpu-cluster-controller-svc.correct-cpu-cluster",
        6817,
    )
    assert found.slurm_key.name == "correct-cpu-cluster-munge"
    assert found.accounting is not None


@pytest.mark.parametrize(
    ("shape", "keeps", "second", "prefix"),
    [
        (OLDER, False, False, ""),
        (OLDER, False, True, "correct-cpu-cluster-"),
        (OLDER, True, True, ""),
        (CURRENT, False, False, "soperator-"),
        (CURRENT, True, False, ""),
    ],
)
def test_workloads_have_the_names_that_the_declared_shape_and_the_live_objects_give(
    *, shape: str, keeps: bool, second: bool, prefix: str
):
    declared = msgspec.convert(nebius.manifest(shape), SlurmCluster)
    found = names.workload_prefix(declared, keeps_plain_names=keeps, is_second=second)
    assert found == prefix


def test_the_filling_of_the_jail_names_the_declared_fields():
    found = jail_filling(older(**{"spec.maintenance": "downscaleAndOverwritePopulateJail"}))
    assert (found.job, found.mode) == (
        "correct-cpu-cluster-populate-jail",
        MaintenanceMode.OVERWRITE_JAIL,
    )
    assert found.mode_field == "spec.maintenance is downscaleAndOverwritePopulateJail"


def test_adopted_words_of_nodes_go_to_the_fields_that_declare_them() -> None:
    declared = node_set(
        **{
            "metadata.name": "a",
            "spec.nodeConfig": {"features": ["fast"], "static": "State=CLOUD Gres=gpu:1 Feature=x"},
            "spec.nodeAttributes": {"features": ["old"]},
        }
    )
    found = adopted_node_config(declared.spec, "Features=slow RealMemory=512 Gres=gpu:1 Weight=7")
    assert found == {
        "nodeConfig": {"features": ["slow"], "static": "Gres=gpu:1 Weight=7 State=CLOUD"},
        "nodeAttributes": {"features": []},
    }
    config = msgspec.convert(found["nodeConfig"], type(declared.spec.node_config))
    spec = msgspec.structs.replace(declared.spec, node_config=config)
    again = node_set_workers(msgspec.structs.replace(declared, spec=spec))
    assert "Gres=gpu:1 Weight=7" in again.parameters
