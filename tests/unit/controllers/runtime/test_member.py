"""What belongs to a Controller does not follow it while it is wrong or lacks its files."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import ConfigMap, Secret
from penstock.api.kubernetes.meta import Condition, ObjectMeta, OwnerReference
from penstock.api.slinky.controller import Controller
from penstock.api.slinky.restapi import RestApi
from penstock.controllers.observed.references import controllers_using_config_map
from penstock.controllers.observed.slinky_clusters import SlinkyClusters
from penstock.controllers.slinky import missing
from penstock.controllers.slinky.prerequisites import require_cluster
from penstock.render.slinky.config.config_maps import config_hash
from penstock.render.slinky.inputs import ClusterInputs
from unit.controllers.stage import new_clusters, put

JWKS: dict[str, Any] = {"jwksKeyRef": {"name": "keys", "key": "jwks.json"}}


def made(kind: type[Any], spec: dict[str, Any]) -> Any:
    meta = {"name": "slurm", "namespace": "slurm", "uid": kind.__name__}
    return msgspec.convert({"metadata": meta, "spec": spec}, kind)


def clusters(spec: dict[str, Any]) -> tuple[SlinkyClusters, Controller, RestApi]:
    found = new_clusters()
    controller = made(Controller, spec)
    put(found.caches.controllers, controller)
    for name in ("slurm", "jwt"):
        meta = ObjectMeta(name=f"slurm-auth-{name}", namespace="slurm")
        put(found.caches.secrets, Secret(metadata=meta, data={f"{name}.key": "a2V5"}))
    return found, controller, made(RestApi, {"controllerRef": {"name": "slurm"}})


def files(version: int, **data: str) -> ConfigMap:
    meta = ObjectMeta(name="keys", namespace="slurm", resource_version=str(version))
    return ConfigMap(metadata=meta, data=data)


def test_a_member_follows_a_controller_that_is_right() -> None:
    found, _, restapi = clusters({})
    assert isinstance(require_cluster(found, restapi), ClusterInputs)


def test_a_member_does_not_follow_a_controller_that_is_wrong() -> None:
    found, _, restapi = clusters({"slurmctld": {"env": "A=b"}})
    finding = require_cluster(found, restapi)
    assert isinstance(finding, Finding)
    assert (finding.ok, finding.reason) == (None, "ControllerInvalid")
    assert "spec.slurmctld.env" in finding.message


@pytest.mark.parametrize("key", ["slurm", "jwt"])
def test_a_member_does_not_begin_with_the_key_of_a_deleted_controller(key: str) -> None:
    """Kubernetes deletes its Secret soon, and slurmctld gets another one."""
    found, controller, restapi = clusters({})
    former = OwnerReference(
        api_version="slinky.slurm.net/v1beta1",
        kind="Controller",
        name="slurm",
        uid="former",
        controller=True,
    )
    (secret,) = (one for one in found.caches.secrets if one.metadata.name == f"slurm-auth-{key}")
    meta = msgspec.structs.replace(
        secret.metadata, resource_version="2", owner_references=(former,)
    )
    put(found.caches.secrets, msgspec.structs.replace(secret, metadata=meta))
    finding = require_cluster(found, restapi)
    assert isinstance(finding, Finding)
    assert (finding.ok, finding.message) == (
        None,
        f"Waiting for the keys in Secret slurm-auth-{key}",
    )
    status = msgspec.structs.replace(
        controller.status, conditions=(Condition(type="ConfigApplied", status="True"),)
    )
    meta = msgspec.structs.replace(controller.metadata, resource_version="2")
    worked = msgspec.structs.replace(controller, metadata=meta, status=status)
    put(found.caches.controllers, worked)
    assert isinstance(require_cluster(found, restapi), ClusterInputs)


def test_the_file_of_outside_keys_is_missed_until_it_has_its_key() -> None:
    found, controller, _ = clusters(JWKS)
    assert found.absent_config_maps(controller) == ["keys"]
    put(found.caches.config_maps, files(1, other="{}"))
    assert found.absent_config_maps(controller) == ["keys"]
    put(found.caches.config_maps, files(2, **{"jwks.json": "{}"}))
    assert found.absent_config_maps(controller) == []


def test_a_jwks_file_that_is_not_utf8_is_named_and_nothing_is_made_of_it() -> None:
    """The rest of what runs goes on with the former file."""
    found, controller, _ = clusters(JWKS)
    broken = base64.b64encode(b'{"keys": ["\xff"]}').decode()
    keys = msgspec.structs.replace(files(1), binary_data={"jwks.json": broken})
    put(found.caches.config_maps, keys)
    (finding,) = missing.prerequisite_findings(found, controller, found.cluster(controller))
    assert (finding.ok, finding.reason) == (False, "JwksUnreadable")
    assert "key jwks.json of ConfigMap keys is not UTF-8" in finding.message
    assert found.absent_config_maps(controller) == ["keys"]
    text = base64.b64encode(b"{}").decode()
    put(
        found.caches.config_maps, msgspec.structs.replace(files(2), binary_data={"jwks.json": text})
    )
    assert missing.prerequisite_findings(found, controller, found.cluster(controller)) == []


def test_outside_keys_are_part_of_the_configuration_that_is_handed_over() -> None:
    """D17, feature row 11."""
    found, controller, _ = clusters(JWKS)
    keys = files(3, **{"jwks.json": "{}"})
    put(found.caches.config_maps, keys)
    assert controllers_using_config_map(keys, found.caches.store) == ["slurm/slurm"]
    before = config_hash(found.cluster(controller))
    put(found.caches.config_maps, files(4, **{"jwks.json": '{"keys": []}'}))
    assert config_hash(found.cluster(controller)) != before
