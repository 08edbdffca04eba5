"""MariaDB and Grant for mariadb-operator."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import fields

from penstock.api.kubernetes.meta import Json
from penstock.api.nebius.mariadb import MariaDbOperator
from penstock.api.nebius.unsupported_fields import cluster_fields
from penstock.render.nebius import mariadb
from penstock.render.parts import empty_values as empty
from support.nebius_clusters import CURRENT, SHAPES, of_shape

PATH = "spec.slurmNodes.accounting.mariadbOperator"
GIVEN: Json = {
    "enabled": True,
    "image": "mariadb:12",
    "storage": {"ephemeral": False, "size": "1Gi", "storageClassName": "standard"},
}
CAPTURED = Path(__file__).parents[3] / "fixtures/mariadb-operator/objects.yaml"


def objects(
    given: Json | None = None, live: dict[str, Json] | None = None, **more: Any
) -> dict[str, Json]:
    changes = {PATH: deepcopy({**GIVEN, **(given or {})}), **more.pop("changes", {})}
    found = of_shape(CURRENT, changes, **more)
    return {one["kind"]: one for one in mariadb.objects(found.inputs, live)}


def spec(**given: Any) -> Json:
    return objects(given)["MariaDB"]["spec"]


def test_they_are_those_of_the_original_but_for_its_defects() -> None:
    """D56, D64: names of Secrets have the cluster, the Grant is on all tables, each 10 minutes."""
    captured = {one["kind"]: one for one in yaml.safe_load_all(CAPTURED.read_text())}
    made = objects(
        {
            "resources": {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "5Gi"},
            "metrics": {"enabled": True},
            "replicas": 1,
        },
        changes={"spec.k8sNodeFilters.0.nodeSelector": {"pool": "a"}},
    )
    for kind, differing in (
        (
            "MariaDB",
            {
                "passwordSecretKeyRef",
                "rootPasswordSecretKeyRef",
                "myCnf",
                "image",
                "nodeSelector",
                "priorityClassName",
                "metrics",
            },
        ),
        ("Grant", {"table", "requeueInterval", "retryInterval"}),
    ):
        ours, theirs = (empty.said(one[kind]["spec"]) for one in (made, captured))
        for field in theirs.keys() - differing:
            assert ours.get(field) == theirs[field], (kind, field)
        assert made[kind]["metadata"]["name"] == captured[kind]["metadata"]["name"]
        labels = captured[kind]["metadata"]["labels"]
        assert made[kind]["metadata"]["labels"] == labels
    assert set(captured["MariaDB"]["spec"]["myCnf"].split()) <= set(
        made["MariaDB"]["spec"]["myCnf"].split()
    )
    grant = made["Grant"]["spec"]
    assert (grant["table"], grant["requeueInterval"]) == ("*", "10m0s")


@pytest.mark.parametrize("shape", SHAPES)
def test_names_have_the_cluster_so_two_in_a_namespace_do_not_collide(shape: str) -> None:
    """D56."""
    made = [
        mariadb.objects(of_shape(shape, {PATH: deepcopy(GIVEN), "metadata.name": name}).inputs)
        for name in ("one", "two")
    ]
    refs = [
        {
            every[0]["metadata"]["name"],
            *(
                every[0]["spec"][f"{part}SecretKeyRef"]["name"]
                for part in ("password", "rootPassword")
            ),
        }
        for every in made
    ]
    assert not refs[0] & refs[1]


def test_fields_that_cannot_change_stay_those_of_objects_that_exist() -> None:
    """A cluster that is taken over has Secrets without its name, and slurmdbd uses them."""
    old: Json = {"name": "mariadb-password", "key": "password", "generate": True}
    live = {
        "MariaDB": {"passwordSecretKeyRef": old, "username": "u", "image": "old"},
        "Grant": {"table": "slurm_acct_db.*", "requeueInterval": "30ns"},
    }
    made = objects(live=live)
    found = made["MariaDB"]["spec"]
    assert (found["passwordSecretKeyRef"], found["username"]) == (old, "u")
    assert found["image"] == "mariadb:12"
    assert made["Grant"]["spec"]["table"] == "slurm_acct_db.*"
    assert made["Grant"]["spec"]["requeueInterval"] == "10m0s"
    ref = mariadb.password_ref(live["MariaDB"])
    assert ref is not None
    assert (ref.name, ref.key) == ("mariadb-password", "password")
    assert mariadb.password_ref({}) is None


def test_protected_secrets_are_made_with_their_marks_and_not_by_mariadb_operator() -> None:
    found = of_shape(CURRENT, {PATH: {**GIVEN, "protectedSecret": True}})
    every = mariadb.secrets(found.inputs)
    assert len({str(one["data"]) for one in every}) == 2
    for one in every:
        assert one["metadata"]["labels"]["slurm.nebius.ai/webhook"] == "true"
        assert one["metadata"]["annotations"]["slurm.nebius.ai/cluster"] == found.inputs.name
    made = mariadb.objects(found.inputs)[0]["spec"]
    refs = [made[f"{part}SecretKeyRef"] for part in ("password", "rootPassword")]
    assert [one["name"] for one in refs] == [one["metadata"]["name"] for one in every]
    assert [one["generate"] for one in refs] == [False, False]


VALUES: dict[str, Any] = {
    "image": "other",
    "command": ["/start"],
    "args": ["--verbose"],
    "customEnv": [{"name": "A", "value": "b"}],
    "imagePullPolicy": "Always",
    "imagePullSecrets": [{"name": "registry"}],
    "port": 3307,
    "resources": {"memory": "2Gi"},
    "livenessProbe": {"exec": {"command": ["a"]}},
    "readinessProbe": {"exec": {"command": ["b"]}},
    "appArmorProfile": "localhost/x",
    "podSecurityContext": {"fsGroup": 5},
    "securityContext": {"runAsUser": 5},
    "replicas": 3,
    "metrics": {"enabled": False},
    "replication": {"enabled": True},
    "storage": {"size": "2Gi"},
    "priorityClassName": "high",
    "protectedSecret": True,
}
REPORTED = {"securityLimitsConfig": "* - core 0", "procMount": "Unmasked"}
"""Fields that a MariaDB has no place for."""


@pytest.mark.parametrize("one", [one.encode_name for one in fields(MariaDbOperator)])
def test_each_field_has_an_effect_or_is_reported(one: str) -> None:
    if one == "enabled":
        return
    if one in REPORTED:
        found = of_shape(CURRENT, {PATH: {**GIVEN, one: REPORTED[one]}})
        assert any(
            f"mariadbOperator.{one}" in text for text in cluster_fields(found.inputs.cluster)
        )
        return
    assert objects({one: VALUES[one]}) != objects()


def test_older_names_of_replication_are_the_newer_ones() -> None:
    older = {
        "enabled": True,
        "primary": {"automaticFailover": True},
        "replica": {"waitPoint": "AfterSync", "connectionRetries": 3, "connectionTimeout": "5s"},
        "probesEnabled": True,
        "syncBinlog": True,
    }
    found = spec(replication=older)["replication"]
    assert found == {
        "enabled": True,
        "primary": {"autoFailover": True},
        "semiSyncWaitPoint": "AfterSync",
        "syncBinlog": 1,
    }
    cluster = of_shape(CURRENT, {PATH: {**GIVEN, "replication": older}}).inputs.cluster
    told = "\n".join(cluster_fields(cluster))
    for name in ("probesEnabled", "replica.connectionRetries", "replica.connectionTimeout"):
        assert f"replication.{name}: not used" in told


def test_a_pod_that_rests_has_no_replicas_and_several_are_apart() -> None:
    assert objects(scaled_down=True)["MariaDB"]["spec"]["replicas"] == 0
    assert spec(replicas=3)["affinity"]["antiAffinityEnabled"] is True
    assert spec()["affinity"] == {"antiAffinityEnabled": False}


def test_the_filter_of_slurmdbd_places_the_database() -> None:
    term: Json = {"labelSelector": {}, "topologyKey": "zone", "namespaces": ["a"]}
    near = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"a": 1}}}
    affinity: Json = {
        **near,
        "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []},
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "podAffinityTerm": term}
            ],
            "requiredDuringSchedulingIgnoredDuringExecution": [term],
        },
    }
    name = "database-filter"
    changes: dict[str, Any] = {
        "spec.k8sNodeFilters": [{"name": name, "affinity": affinity}],
        "spec.slurmNodes.accounting.k8sNodeFilterName": name,
    }
    found = objects(changes=changes)["MariaDB"]["spec"]["affinity"]
    plain: Json = {"labelSelector": {}, "topologyKey": "zone"}
    assert found["nodeAffinity"] == near["nodeAffinity"]
    assert found["podAntiAffinity"] == {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "podAffinityTerm": plain}
        ],
        "requiredDuringSchedulingIgnoredDuringExecution": [plain],
    }
    assert "podAffinity" not in found
