"""Which slurmrestd a SlurmCluster has, and which NodeSets belong to it."""

from __future__ import annotations

import base64

import msgspec
import pytest
from msgspec.structs import replace

from penstock.api.kubernetes.kinds import ConfigMap, Secret, Service
from penstock.api.kubernetes.meta import ObjectMeta, OwnerReference
from penstock.api.nebius.slurmcluster import SLURM_CLUSTERS
from penstock.controllers.caches.secrets import SecretReader
from penstock.controllers.caches.store import CacheStore
from penstock.controllers.observed.nebius_caches import NebiusCaches, first_in_namespace
from penstock.controllers.observed.nebius_endpoints import ClusterEndpoints, service_url
from penstock.controllers.observed.rest_service import RestServices
from penstock.controllers.observed.slurm_endpoints import SlurmEndpoint, Target
from penstock.kube import Client, Manager
from support.nebius import made
from support.soperator_left import NAMES, SoperatorObjects
from unit.controllers.stage import put
from unit.kube.fake_api import FakeApi

KEY = b"k" * 64
CLUSTER = "slurmcluster-5.0-0"


def place(name: str, uid: str, created: str = "2026-01-01T00:00:00Z") -> dict[str, str]:
    return {
        "metadata.name": name,
        "metadata.namespace": "soperator",
        "metadata.uid": uid,
        "metadata.creationTimestamp": created,
    }


def secret(name: str) -> Secret:
    meta = ObjectMeta(name=name, namespace="soperator", uid="s", resource_version="1")
    return Secret(metadata=meta, data={"rest_jwt.key": base64.b64encode(KEY).decode()})


@pytest.fixture
def caches() -> NebiusCaches:
    return NebiusCaches(CacheStore(Manager(Client(FakeApi()))))


def endpoints(caches: NebiusCaches) -> ClusterEndpoints:
    return ClusterEndpoints(caches, SecretReader(caches.secrets), service_url)


def test_slurmrestd_is_asked_at_its_service_with_the_key_of_its_secret(caches: NebiusCaches):
    put(caches.clusters, made(CLUSTER, place("one", "u1")))
    put(caches.secrets, secret("one-rest-jwt-key"))
    target = Target("http://one-rest-svc.soperator:6820", KEY)
    assert endpoints(caches).find("soperator/one") == SlurmEndpoint("u1", target)


def test_no_token_goes_to_a_service_that_is_not_the_clusters(caches: NebiusCaches):
    """Audit A33."""
    put(caches.clusters, made(CLUSTER, place("one", "u1")))
    put(caches.secrets, secret("one-rest-jwt-key"))
    checking = ClusterEndpoints(caches, SecretReader(caches.secrets))
    meta = ObjectMeta(name="one-rest-svc", namespace="soperator", uid="s", resource_version="1")
    found = checking.find("soperator/one")
    assert found is not None
    assert "Service one-rest-svc of slurmrestd does not exist yet" in str(found.target)
    put(caches.services, Service(metadata=meta, spec={"type": "ExternalName"}))
    found = checking.find("soperator/one")
    assert found is not None
    assert "does not belong to the SlurmCluster" in str(found.target)
    owner = OwnerReference("slurm.nebius.ai/v1", "SlurmCluster", "one", "u1", controller=True)
    ours = replace(meta, owner_references=(owner,), resource_version="2")
    put(caches.services, Service(metadata=ours, spec={"type": "ClusterIP"}))
    target = Target("http://one-rest-svc.soperator:6820", KEY)
    assert checking.find("soperator/one") == SlurmEndpoint("u1", target)


@pytest.mark.parametrize("version", ["1.23", "5.0"])
def test_the_service_that_soperator_made_gets_tokens(caches: NebiusCaches, version: str):
    name = NAMES[version]
    objects = SoperatorObjects(version)
    made_by_soperator = msgspec.convert(objects.find("Service", f"{name}-rest-svc"), Service)
    put(caches.services, made_by_soperator)
    (owner,) = made_by_soperator.metadata.owner_references
    url = f"http://{name}-rest-svc.{made_by_soperator.metadata.namespace}:6820"
    assert RestServices(caches.services, SLURM_CLUSTERS).distrust(url, owner.uid) == ""


@pytest.mark.parametrize("version", ["1.23", "5.0"])
def test_tokens_are_those_of_slurmuser_in_the_files_in_force(caches: NebiusCaches, version: str):
    """D81."""
    name = NAMES[version]
    place_of = place(name, "u1") | {"metadata.namespace": name}
    put(caches.clusters, made(CLUSTER, place_of))
    key = secret(f"{name}-rest-jwt-key")
    put(caches.secrets, replace(key, metadata=replace(key.metadata, namespace=name)))
    files = SoperatorObjects(version).find("ConfigMap", f"{name}-slurm-configs")
    put(caches.config_maps, msgspec.convert(files, ConfigMap))
    found = endpoints(caches).find(f"{name}/{name}")
    assert found == SlurmEndpoint("u1", Target(f"http://{name}-rest-svc.{name}:6820", KEY, "root"))


def test_without_its_key_nobody_is_asked_and_the_reason_names_the_secret(caches: NebiusCaches):
    put(caches.clusters, made(CLUSTER, place("one", "u1")))
    put(caches.secrets, secret("two-rest-jwt-key"))
    found = endpoints(caches).find("soperator/one")
    why = "Secret one-rest-jwt-key has no usable key rest_jwt.key to sign tokens with"
    assert found == SlurmEndpoint("u1", why)


def test_a_cluster_that_is_gone_needs_no_connection(caches: NebiusCaches):
    assert endpoints(caches).find("soperator/one") is None
    assert endpoints(caches).uid("soperator/one") == ""


def test_a_port_of_the_users_is_asked(caches: NebiusCaches):
    changes = {**place("one", "u1"), "spec.slurmNodes.rest.rest.port": 7000}
    put(caches.clusters, made(CLUSTER, changes))
    found = caches.clusters.get("soperator/one")
    assert found is not None
    assert service_url(found) == "http://one-rest-svc.soperator:7000"


def test_the_older_cluster_of_a_namespace_is_the_first_one(caches: NebiusCaches):
    older = made(CLUSTER, place("two", "u2", "2025-01-01T00:00:00Z"))
    newer = made(CLUSTER, place("one", "u1"))
    put(caches.clusters, older, newer)
    assert first_in_namespace(older, caches)
    assert not first_in_namespace(newer, caches)


@pytest.mark.parametrize(
    "changes",
    [
        {"spec.clusterName": "one"},
        {
            "spec.clusterName": "",
            "metadata.annotations": {"slurm.nebius.ai/parental-cluster-ref": "one"},
        },
    ],
)
def test_a_nodeset_belongs_to_the_cluster_that_it_names(
    caches: NebiusCaches, changes: dict[str, object]
):
    cluster = made(CLUSTER, place("one", "u1"))
    node_set = made("nodesets-5.0-0", {**place("gpu", "n"), **changes})
    put(caches.clusters, cluster)
    put(caches.node_sets, node_set)
    assert caches.node_sets_of.get("soperator/one") == (node_set,)
    assert caches.node_sets_of.get("soperator/two") == ()
