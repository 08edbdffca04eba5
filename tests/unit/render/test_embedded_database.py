"""The MariaDB that the operator runs for slurmdbd, of an Accounting and of a SlurmCluster."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from penstock.api.kubernetes.meta import Json
from penstock.api.slinky import names
from penstock.api.slinky.accounting import Accounting
from penstock.render.nebius import accounting_database as of_cluster
from penstock.render.parts import embedded_database as render
from penstock.render.parts.embedded_database import DatabaseInputs, buffer_pool
from penstock.render.slinky.accounting import database as of_accounting
from penstock.render.slinky.accounting.slurmdbd_conf import slurmdbd_conf
from support.nebius_clusters import SHAPES, of_shape

PATH = "spec.slurmNodes.accounting"
MIB = 1 << 20


def accounting(**database: Any) -> Accounting:
    found = {
        "kind": "Accounting",
        "metadata": {"name": "records", "namespace": "slurm", "uid": "u"},
        "spec": {
            "embeddedDatabase": {"image": "mariadb:1", **database},
            "template": {"spec": {"nodeSelector": {"disk": "ssd"}, "tolerations": [{"key": "a"}]}},
        },
    }
    return msgspec.convert(found, Accounting)


def inputs(**database: Any) -> DatabaseInputs:
    found = of_accounting.inputs(accounting(**database))
    assert found is not None
    return found


def stateful_set(given: DatabaseInputs | None = None) -> Json:
    return render.objects(given or inputs())[1]


def container(given: DatabaseInputs | None = None) -> Json:
    return stateful_set(given)["spec"]["template"]["spec"]["containers"][0]


def test_slurmdbd_finds_the_database_by_its_service_with_the_password_of_its_secret():
    """S169."""
    obj, service = accounting(), render.objects(inputs())[0]
    storage = names.storage_config(obj)
    assert storage is not None
    assert (storage.host, storage.port) == (
        service["metadata"]["name"],
        service["spec"]["ports"][0]["port"],
    )
    secret = render.password_secret(obj, "records-accounting-db", {})
    assert (storage.password_key_ref.name, storage.password_key_ref.key) == (
        secret["metadata"]["name"],
        next(iter(secret["data"])),
    )
    env = {one["name"]: one["value"] for one in container()["env"]}
    assert (storage.database, storage.username) == (env["DATABASE_NAME"], env["DATABASE_USER"])
    lines = slurmdbd_conf(obj, "p").splitlines()
    assert "StorageHost=records-accounting-db" in lines
    assert "StoragePass=p" in lines


def test_two_passwords_differ_and_the_secret_outlives_its_object():
    obj = accounting()
    one, two = (render.password_secret(obj, "n", {}) for _ in range(2))
    assert one["data"] != two["data"]
    assert "ownerReferences" not in one["metadata"]


def test_the_pvc_stays_unless_it_is_declared_to_go():
    policy = "persistentVolumeClaimRetentionPolicy"
    assert stateful_set()["spec"][policy] == {"whenDeleted": "Retain", "whenScaled": "Retain"}
    goes = stateful_set(inputs(storage={"whenDeleted": "Delete"}))
    assert goes["spec"][policy]["whenDeleted"] == "Delete"
    given = inputs(storage={"size": "3Gi", "storageClassName": "fast"})
    (claim,) = stateful_set(given)["spec"]["volumeClaimTemplates"]
    assert claim["spec"]["resources"]["requests"]["storage"] == "3Gi"
    assert claim["spec"]["storageClassName"] == "fast"


def test_the_pod_fits_a_restricted_namespace():
    spec = stateful_set()["spec"]["template"]["spec"]
    pod, own = spec["securityContext"], container()["securityContext"]
    assert (pod["runAsNonRoot"], pod["seccompProfile"]) == (True, {"type": "RuntimeDefault"})
    assert own["capabilities"] == {"drop": ["ALL"]}
    assert own["allowPrivilegeEscalation"] is False
    assert spec["automountServiceAccountToken"] is False


@pytest.mark.parametrize(
    ("resources", "mib"),
    [
        (None, 256),
        ({"requests": {"memory": "4Gi"}}, 2048),
        ({"limits": {"memory": "1Gi"}}, 512),
        ({"requests": {"memory": "16Mi"}}, 128),
        ({"requests": {"cpu": "1"}}, 256),
        ({"requests": {"memory": "much"}}, 256),
        ({"requests": None}, 256),
    ],
)
def test_half_of_the_requested_memory_is_the_buffer_pool(resources: Json | None, mib: int):
    assert buffer_pool(resources) == mib * MIB
    env = {one["name"]: one["value"] for one in container(inputs(resources=resources))["env"]}
    assert env["DATABASE_POOL"] == str(mib * MIB)


def test_it_runs_where_slurmdbd_runs():
    spec = stateful_set()["spec"]["template"]["spec"]
    assert spec["nodeSelector"] == {"disk": "ssd"}
    assert spec["tolerations"] == [{"key": "a"}]


def test_image_and_credentials_are_the_users():
    given = inputs(imagePullPolicy="Always", imagePullSecrets=[{"name": "registry"}])
    found = container(given)
    assert (found["image"], found["imagePullPolicy"]) == ("mariadb:1", "Always")
    secrets = stateful_set(given)["spec"]["template"]["spec"]["imagePullSecrets"]
    assert secrets == [{"name": "registry"}]


def test_a_changed_password_makes_a_new_pod():
    made = [stateful_set(replace(inputs(), password_hash=one)) for one in ("a", "b")]
    assert made[0]["spec"]["template"] != made[1]["spec"]["template"]


@pytest.mark.parametrize("shape", SHAPES)
def test_that_of_a_slurmcluster_has_its_name_and_rests_with_it(shape: str):
    """D56."""
    database = {"enabled": True, "image": "mariadb:1"}
    changes: dict[str, Any] = {
        f"{PATH}.mariadbOperator.enabled": False,
        f"{PATH}.embeddedDB": database,
    }
    found = of_shape(shape, changes)
    given = of_cluster.inputs(found.inputs)
    name = f"{found.inputs.name}-accounting-db"
    assert {one["metadata"]["name"] for one in render.objects(given)} == {name}
    labels = given.labels
    assert labels["app.kubernetes.io/instance"] == found.inputs.name
    resting = of_cluster.inputs(of_shape(shape, changes, scaled_down=True).inputs)
    assert stateful_set(resting)["spec"]["replicas"] == 0
