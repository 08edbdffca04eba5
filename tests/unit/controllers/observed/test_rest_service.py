"""A token of SlurmUser goes to a Service that is ours, and to no other."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest

from penstock.api.cluster.cluster_ref import ControllerRef
from penstock.api.kubernetes.kinds import Secret, Service
from penstock.api.kubernetes.meta import Json, ObjectMeta
from penstock.api.nebius.slurmcluster import SLURM_CLUSTERS
from penstock.api.slinky.controller import Controller, ControllerSpec
from penstock.api.slinky.restapi import RESTAPIS, RestApi, RestApiSpec
from penstock.controllers.caches.secrets import SecretReader
from penstock.controllers.observed.rest_service import RestServices
from penstock.controllers.observed.slinky_endpoints import ControllerEndpoints
from penstock.controllers.slinky.slurm_connection import clusters_served_by
from unit.controllers.stage import drop, new_clusters, put

URL = "http://slurm-restapi.slurm:6820"
OWNER: Json = {"apiVersion": "slinky.slurm.net/v1beta1", "kind": "RestApi", "name": "slurm"}


def service(uid: str = "r", version: int = 1, **spec: Any) -> Service:
    owners = [{**OWNER, "uid": uid, "controller": True}] if uid else []
    meta = {
        "name": "slurm-restapi",
        "namespace": "slurm",
        "uid": "s",
        "ownerReferences": owners,
        "resourceVersion": str(version),
    }
    return msgspec.convert({"metadata": meta, "spec": spec}, Service)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (None, "does not exist yet"),
        (service(""), "does not belong to the RestApi"),
        (service("other"), "does not belong to the RestApi"),
        (service(type="ExternalName", externalName="evil.example.org"), "of type ExternalName"),
        (service(type="ClusterIP", externalName="evil.example.org"), "externalName"),
        (service(type="Another"), "of type Another"),
        (service(), ""),
        (service(type="ClusterIP"), ""),
        (service(type="LoadBalancer"), ""),
    ],
)
def test_only_our_service_with_an_address_of_the_cluster_is_trusted(
    found: Service | None, words: str
):
    """Audit A33: a Service of type ExternalName got 900 s of SlurmUser."""
    services = new_clusters().caches.services
    if found is not None:
        put(services, found)
    said = RestServices(services, RESTAPIS).distrust(URL, "r")
    assert words in said
    assert bool(said) == bool(words)


def test_owners_of_another_kind_do_not_count():
    services = new_clusters().caches.services
    put(services, service())
    assert "SlurmCluster" in RestServices(services, SLURM_CLUSTERS).distrust(URL, "r")


def test_a_connection_needs_the_service_and_ends_with_it():
    caches = new_clusters().caches
    meta = ObjectMeta(name="slurm", namespace="slurm", uid="c")
    put(caches.controllers, Controller(metadata=meta, spec=ControllerSpec()))
    spec = RestApiSpec(controller_ref=ControllerRef(name="slurm"))
    put(
        caches.restapis,
        RestApi(metadata=ObjectMeta(name="slurm", namespace="slurm", uid="r"), spec=spec),
    )
    key = ObjectMeta(name="slurm-auth-jwt", namespace="slurm", uid="k")
    put(
        caches.secrets, Secret(metadata=key, data={"jwt.key": base64.b64encode(b"k" * 64).decode()})
    )
    endpoints = ControllerEndpoints(caches, SecretReader(caches.secrets))

    def target() -> object:
        found = endpoints.find("slurm/slurm")
        assert found is not None
        return found.target

    assert "does not exist yet" in str(target())
    put(caches.services, service())
    assert not isinstance(target(), str)
    put(caches.services, service(version=2, type="ExternalName"))
    assert "ExternalName" in str(target())
    assert list(clusters_served_by(service(), caches.store)) == ["slurm/slurm"]
    drop(caches.services, service(version=3))
    assert "does not exist yet" in str(target())
