"""SlurmClusters: what is made in which order, and its conditions meanwhile."""

from __future__ import annotations

import asyncio

import pytest

from fault_plans import nebius_specs as specs
from fault_plans import worker_sets
from fault_plans.kinds import path_of
from penstock.api.kubernetes.meta import Json
from unit.controllers.nebius.lab import (
    CLUSTERS,
    CORE,
    CURRENT,
    JOB,
    OLDER,
    SHAPES,
    SPACE,
    Lab,
    played,
)

PREFIXES = {OLDER: "", CURRENT: "slurm-"}
CREATED = path_of(SPACE, worker_sets.OF_CLUSTER)


def declare(lab: Lab, name: str, spec: Json) -> None:
    lab.make(CREATED, "SlurmCluster", name, spec=spec)


@pytest.mark.parametrize("shape", SHAPES)
def test_an_empty_namespace_gets_job_keys_services_daemons_and_workers_in_this_order(
    shape: str,
) -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        prefix = PREFIXES[shape]
        order = [
            f"jobs/{JOB}",
            "secrets/slurm-munge",
            "services/slurm-controller-svc",
            "configmaps/slurm-slurm-configs",
            f"statefulsets/{prefix}controller",
            f"deployments/{prefix}rest",
            f"pods/{'worker' if shape == OLDER else 'compute'}-0",
        ]
        assert [lab.made.count(one) for one in order] == [1] * len(order)
        places = [lab.made.index(one) for one in order]
        assert places == sorted(places)
        await asyncio.sleep(10)
        assert await lab.settled(60) == []

    played(play, shape)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_phase_is_available_once_all_parts_are(shape: str) -> None:
    async def play(lab: Lab) -> None:
        lab.stop_kubelets()
        await lab.until(lambda: lab.phase() == "Not available")
        assert lab.condition()[0] in {"False", "Unknown"}
        assert lab.condition("ControllersAvailable")[1] == "NotAvailable"
        assert lab.condition("CommonAvailable")[:2] == ("True", "Available")
        lab.start_kubelets()
        await lab.available()
        for type_ in ("ControllersAvailable", "LoginAvailable", "SConfigControllerAvailable"):
            assert lab.condition(type_)[:2] == ("True", "Available")
        assert lab.condition("AccountingAvailable")[:2] == ("False", "NotAvailable")
        status = lab.cluster["status"]
        assert (status["readyLogin"], status["readySConfigController"]) == (1, 1)

    played(play, shape)


def test_a_secret_of_the_user_is_named_waited_for_and_found() -> None:
    async def play(lab: Lab) -> None:
        lab.world.edit_cluster(SPACE, {"secrets": {"sshdKeysName": "mine"}})
        await lab.until(lambda: lab.condition()[1] == "SecretNotFound")
        words = "spec.secrets.sshdKeysName: Secret mine does not exist. Create it with"
        assert lab.condition()[2].startswith(words)
        assert lab.phase() == "Pending"
        assert lab.find("batch/jobs", JOB) is None
        lab.make(f"{CORE}/secrets", "Secret", "mine", data={"key": "a2V5"})
        await lab.available()
        assert lab.get("/secrets", "mine")["data"] == {"key": "a2V5"}

    def before(lab: Lab) -> None:
        lab.world.prepare(SPACE)
        spec = specs.slurm_cluster(CURRENT, 0)
        declare(lab, "slurm", {**spec, "secrets": {"sshdKeysName": "mine"}})
        lab.world.declare_nodeset(1)

    played(play, replicas=-1, before=before)


def test_an_absent_pvc_is_named_until_it_is_created() -> None:
    """S009."""

    async def play(lab: Lab) -> None:
        await lab.until(lambda: lab.condition()[1] == "PvcNotFound")
        assert "[1].persistentVolumeClaim.claimName: PVC later does not" in lab.condition()[2]
        await lab.settled(60)
        lab.make(f"{CORE}/persistentvolumeclaims", "PersistentVolumeClaim", "later")
        await lab.until(lambda: lab.condition()[1] != "PvcNotFound")
        await lab.available()

    def before(lab: Lab) -> None:
        lab.world.prepare(SPACE)
        spec = specs.slurm_cluster(CURRENT, 0)
        spec["volumeSources"][1]["persistentVolumeClaim"] = {"claimName": "later"}
        declare(lab, "slurm", spec)
        lab.world.declare_nodeset(1)

    played(play, replicas=-1, before=before)


def test_an_invalid_cluster_stays_as_it_is_until_it_is_corrected() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        filters = lab.cluster["spec"]["k8sNodeFilters"]
        lab.world.edit_cluster(SPACE, {"k8sNodeFilters": [{"name": "other"}]})
        await lab.until(lambda: lab.condition()[1] == "Invalid")
        assert "all" in lab.condition()[2]
        pods = lab.pods()
        await asyncio.sleep(10)
        assert await lab.settled(60) == []
        assert lab.pods() == pods
        lab.world.edit_cluster(SPACE, {"k8sNodeFilters": filters})
        await lab.available()

    played(play)


@pytest.mark.parametrize(
    ("path", "kind", "name"),
    [
        (f"{CORE}/services", "Service", "slurm-controller-svc"),
        (f"{CORE}/configmaps", "ConfigMap", "slurm-slurm-configs"),
        (f"/apis/apps/v1/namespaces/{SPACE}/deployments", "Deployment", "slurm-rest"),
    ],
)
def test_an_object_of_somebody_else_is_never_taken_and_is_named(
    path: str, kind: str, name: str
) -> None:
    owners: list[Json] = []

    def before(lab: Lab) -> None:
        lab.make(f"{CORE}/configmaps", "ConfigMap", "theirs")
        uid = lab.get("/configmaps", "theirs")["metadata"]["uid"]
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "theirs", "uid": uid}
        owners.append({**owner, "controller": True})
        meta = {"name": name, "ownerReferences": owners}
        body: Json = {"kind": kind, "metadata": meta, "spec": {"replicas": 0, "template": {}}}
        lab.world.ask("POST", path, body)

    async def play(lab: Lab) -> None:
        await lab.until(lambda: lab.condition()[1] == "Refused")
        assert name in lab.condition()[2]
        resource = f"{'apps' if 'apps' in path else ''}/{path.rpartition('/')[2]}"
        await asyncio.sleep(30)
        found = lab.get(resource, name)
        assert found["metadata"]["ownerReferences"] == owners
        assert found["metadata"].get("labels") is None

    played(play, before=before)


@pytest.mark.parametrize("seconds", [0.0, 5.0])
def test_the_second_cluster_of_a_namespace_has_a_prefix_and_takes_nothing_of_the_first(
    seconds: float,
) -> None:
    """S010: also where both are of the same second, and the second one's name comes first."""

    def before(lab: Lab) -> None:
        lab.stop_kubelets()
        lab.world.prepare(SPACE)
        declare(lab, "slurm", specs.slurm_cluster(OLDER, 1))

    async def play(lab: Lab) -> None:
        await lab.until(lambda: lab.find("batch/jobs", JOB))
        lab.complete_job()
        await lab.until(lambda: "statefulsets/login" in lab.made)
        await asyncio.sleep(seconds)
        declare(lab, "blue", specs.slurm_cluster(OLDER, 1))
        await lab.until(lambda: lab.find("batch/jobs", "blue-populate-jail"))
        body = {"status": {"conditions": [{"type": "Complete", "status": "True"}]}}
        path = f"/apis/batch/v1/namespaces/{SPACE}/jobs/blue-populate-jail/status"
        lab.world.server.ask("PATCH", path, body)
        wanted = {
            "statefulsets/blue-controller",
            "statefulsets/blue-login",
            "deployments/blue-rest",
        }
        await lab.until(lambda: wanted <= set(lab.made))
        first = lab.get("apps/statefulsets", "controller")["metadata"]["ownerReferences"][0]
        assert first["uid"] == lab.cluster["metadata"]["uid"]
        await lab.until(lambda: {"worker-0", "blue-worker-0"} <= set(lab.pods()))
        owners = {
            name: lab.of_kind(CLUSTERS, name)["metadata"]["uid"] for name in ("slurm", "blue")
        }
        keys: dict[str, set[str]] = {"slurm": set(), "blue": set()}
        for kind in ("/secrets", "/configmaps", "/services", "batch/jobs", "apps/statefulsets"):
            for one in lab.world.server.objects(kind, SPACE):
                of = one["metadata"].get("labels", {}).get("app.kubernetes.io/instance")
                if of is None:
                    continue
                assert [each["uid"] for each in one["metadata"]["ownerReferences"]] == [owners[of]]
                if kind == "/secrets":
                    keys[of] |= set(one["data"].values())
        assert all(len(each) > 1 for each in keys.values())
        assert keys["slurm"] & keys["blue"] == set()
        assert lab.condition("Ready", CLUSTERS, "blue")[1] != "Refused"
        assert lab.condition()[1] != "Refused"

    played(play, OLDER, replicas=-1, before=before)


def test_a_cluster_in_maintenance_has_no_pods_but_the_config_writer_and_returns() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        lab.world.edit_cluster(SPACE, {"maintenance": "downscale"})
        await lab.until(lambda: not {"slurm-controller-0", "slurm-login-0"} & set(lab.pods()))
        assert lab.pods("compute") == []
        assert lab.condition("CommonAvailable")[:2] == ("False", "Maintenance")
        assert lab.condition("PopulateJailMode")[:2] == ("True", "downscale")
        lab.world.edit_cluster(SPACE, {"maintenance": "none"})
        await lab.available()

    played(play)


def test_a_deleted_cluster_leaves_what_is_of_users() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        lab.delete(CLUSTERS)
        await lab.until(lambda: "statefulsets/slurm-controller" in lab.gone)
        await asyncio.sleep(30)
        for name in specs.PVCS:
            assert "deletionTimestamp" not in lab.get("/persistentvolumeclaims", name)["metadata"]
        assert lab.find("/secrets", specs.HOST_KEYS)

    played(play)


def test_a_nodeset_that_a_partition_names_and_nobody_declares_is_reported() -> None:
    structured = {
        "configType": "structured",
        "partitions": [{"name": "main", "nodeSetRefs": ["compute", "gpu"]}],
    }

    async def play(lab: Lab) -> None:
        await lab.available()
        lab.world.edit_cluster(SPACE, {"partitionConfiguration": structured})
        await lab.until(lambda: lab.condition("NodeSetRefsResolved")[0] == "False")
        assert "gpu" in lab.condition("NodeSetRefsResolved")[2]
        gone: Json = {"configType": "structured", "partitions": [{"name": "main", "isAll": True}]}
        lab.world.edit_cluster(SPACE, {"partitionConfiguration": gone})
        await lab.until(lambda: lab.condition("NodeSetRefsResolved")[0] != "False")

    played(play)
