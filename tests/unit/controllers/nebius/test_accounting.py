"""Accounting of a SlurmCluster: its database, slurmdbd's objects and a slurmctld that waits."""

from __future__ import annotations

import base64
from typing import Any, cast

import msgspec
import pytest
from msgspec.structs import replace

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import ConfigMap, Pod, Secret, StatefulSet
from penstock.api.kubernetes.meta import Json, ObjectMeta, OwnerReference
from penstock.api.nebius.mariadb_objects import GRANTS, MARIADBS
from penstock.api.nebius.slurmcluster import SLURM_CLUSTERS, SlurmCluster
from penstock.controllers.caches.secrets import SecretReader
from penstock.controllers.caches.store import CacheStore
from penstock.controllers.nebius.accounting import ClusterAccounting
from penstock.controllers.nebius.adoption import AdoptionReport
from penstock.controllers.nebius.clusters import NebiusClusters
from penstock.controllers.nebius.context import NebiusContext
from penstock.controllers.nebius.mariadb import ABSENT_S
from penstock.controllers.observed.nebius_caches import NebiusCaches
from penstock.controllers.runtime.connectivity import PortProbe
from penstock.controllers.runtime.object_store import ObjectStore
from penstock.controllers.runtime.report import Events
from penstock.controllers.runtime.settings import Settings
from penstock.controllers.runtime.slurm_connections import SlurmConnections
from penstock.decide.accounting.slurmdbd import IN_VAIN, REACHABLE
from penstock.kube import Client, Manager, Recorder
from penstock.kube.runtime.declaration import Signals
from penstock.model.image_sources import ImageSources
from penstock.render.nebius.inputs import Images
from penstock.render.parts.digest import digest
from support.nebius import made
from unit.controllers.stage import put, put_raw, set_absent
from unit.kube.fake_api import FakeApi, Fault

SPACE, NAME = "soperator", "soperator"
PATH = "spec.slurmNodes.accounting"
DATABASE: Json = {
    "enabled": True,
    "host": "db",
    "user": "books",
    "passwordSecretKeyRef": {"name": "database", "key": "password"},
}
OPERATOR = f"{PATH}.mariadbOperator.enabled"
JWT = b"k" * 64


def published() -> ConfigMap:
    """The files in force, of a cluster with slurmdbd."""
    conf = "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=h\n"
    meta = ObjectMeta(name=f"{NAME}-slurm-configs", namespace=SPACE, uid="m")
    return ConfigMap(metadata=meta, data={"slurm.conf": f"{conf}AccountingStoragePort=1\n"})


class _NoConnections:
    def get(self, key: str) -> None:
        del key


class Stage:
    """The accounting of one SlurmCluster, with caches that show what a test puts there."""

    def __init__(self, **database: Any) -> None:
        self.api = FakeApi()
        client = Client(self.api)
        self.caches = caches = NebiusCaches(CacheStore(Manager(client)))
        self.clusters = NebiusClusters(caches, Images("operator", "slurmrestd"), "cluster.local")
        self.log = ""
        recorder = Recorder(client, "test", "test")
        context = NebiusContext(
            client,
            Settings(),
            caches,
            SecretReader(caches.secrets),
            ObjectStore(client, caches, ((MARIADBS, caches.mariadbs), (GRANTS, caches.grants))),
            PortProbe(client.clock),
            recorder,
            Signals(),
            self.clusters,
            cast("SlurmConnections", _NoConnections()),
            cast("Any", None),
            cast("Any", None),
        )
        self.accounting = ClusterAccounting(context, Events(recorder, SLURM_CLUSTERS))
        self.secret(f"{NAME}-rest-jwt-key", **{"rest_jwt.key": JWT})
        self.declare({f"{PATH}.externalDB": {**DATABASE, **database}})

    def declare(self, changes: dict[str, Any], *, external: bool = True) -> None:
        every = {
            "metadata.name": NAME,
            "metadata.namespace": SPACE,
            "metadata.uid": "c",
            f"{PATH}.mariadbOperator.enabled": not external,
            **changes,
        }
        self.cluster = cast("SlurmCluster", made("slurmcluster-5.0-0", every))
        put(self.caches.clusters, self.cluster)

    def kinds(self, absent: str | None) -> None:
        """Whether the kinds of mariadb-operator are installed: with None they are not."""
        for cache in (self.caches.mariadbs, self.caches.grants):
            set_absent(cache, "not found" if absent is None else absent)

    def mariadb(self, status: str, message: str) -> None:
        """What mariadb-operator reports on both objects."""
        ready = {"type": "Ready", "status": status, "message": message}
        for cache in (self.caches.mariadbs, self.caches.grants):
            path = cache.resource.path(SPACE, f"{NAME}-acct-db")
            found = self.api.objects[path] | {"status": {"conditions": [ready]}}
            put_raw(cache, found)

    def slurmdbd_conf(self) -> str:
        path = f"/api/v1/namespaces/{SPACE}/secrets/{NAME}-slurmdbd-configs"
        return base64.b64decode(self.api.objects[path]["data"]["slurmdbd.conf"]).decode()

    def secret(self, name: str, **data: bytes) -> None:
        meta = ObjectMeta(name=name, namespace=SPACE, uid=name, resource_version=digest(str(data)))
        encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
        put(self.caches.secrets, Secret(metadata=meta, data=encoded))

    def pod(self, name: str, component: str, container: str, state: Json, ready: str) -> Pod:
        labels = {
            "app.kubernetes.io/name": "slurmcluster",
            "app.kubernetes.io/instance": NAME,
            "app.kubernetes.io/component": component,
        }
        one = {"name": container, "ready": ready == "True", "restartCount": 3, **state}
        body = {
            "metadata": {
                "name": name,
                "namespace": SPACE,
                "uid": name,
                "resourceVersion": ready if component == "accounting" else "",
                "labels": labels,
            },
            "status": {
                "conditions": [{"type": "Ready", "status": ready}],
                "containerStatuses": [one],
            },
        }
        found = msgspec.convert(body, Pod)
        put(self.caches.pods, found)
        self.api.put(f"/api/v1/namespaces/{SPACE}/pods/{name}", **body)
        return found

    def slurmdbd(self, ready: str = "True") -> Pod:
        running = {"state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}
        return self.pod("slurmdbd-1", "accounting", "accounting", running, ready)

    async def reconcile(self) -> list[Finding]:
        inputs = self.clusters.inputs(self.cluster)
        images = ImageSources(SPACE, {}, {})
        return await self.accounting.reconcile(self.cluster, inputs, images, AdoptionReport())


async def test_without_its_secret_nothing_is_made_and_the_condition_names_it() -> None:
    stage = Stage()
    (found,) = await stage.reconcile()
    assert (found.ok, found.reason) == (False, "SecretNotFound")
    assert "Secret database with a key password does not exist" in found.message


@pytest.mark.parametrize(
    ("database", "password", "reason"),
    [
        ({}, b'a"b', "PasswordUnusable"),
        ({}, b"", "PasswordUnusable"),
        ({"user": ""}, b"p", "UserMissing"),
        ({"user": 'a"b'}, b"p", "Invalid"),
        ({"passwordSecretKeyRef": None}, b"p", "SecretNotFound"),
        ({"tls": {"serverCASecretRef": "ca"}}, b"p", "SecretNotFound"),
    ],
)
async def test_values_that_slurmdbd_cannot_have_are_named(
    database: dict[str, Any], password: bytes, reason: str
) -> None:
    stage = Stage(**database)
    stage.secret("database", password=password)
    (found,) = await stage.reconcile()
    assert (found.ok, found.reason) == (False, reason)
    assert "externalDB" in found.message
    if password == b'a"b':
        assert 'a"b' not in found.message


async def test_slurmdbd_is_made_and_waits_for_its_pod() -> None:
    stage = Stage()
    stage.secret("database", password=b"geheim\n")
    found = await stage.reconcile()
    assert found[0].ok is None
    names = [path.rpartition("/")[2] for path in stage.api.objects]
    for name in ("soperator-slurmdbd-configs", "soperator-accounting-svc", "soperator-accounting"):
        assert name in names


async def test_a_pod_that_is_ready_makes_accounting_available() -> None:
    """D48."""
    stage = Stage()
    stage.secret("database", password=b"p")
    stage.slurmdbd()
    found = await stage.reconcile()
    assert found[0].ok is True
    assert {one.type: one.ok for one in found[1:]}[REACHABLE] is True


async def test_without_mariadb_operator_the_cluster_works_and_its_kinds_may_come_later() -> None:
    """D73: the original panics or waits for ever where the kinds are not installed."""
    stage = Stage()
    stage.declare({}, external=False)
    stage.kinds(None)
    (found,) = await stage.reconcile()
    assert (found.ok, found.reason) == (False, "DatabaseNotServed")
    assert "embeddedDB" in found.message
    assert stage.accounting.requeue_after(stage.cluster) == ABSENT_S
    assert stage.clusters.config(stage.cluster).accounting is None
    waiting = stage.pod("soperator-controller-0", "controller", "slurmctld", {"state": {}}, "False")
    assert (
        await stage.accounting.release_slurmctld(stage.cluster, (waiting,), persistent=True) == []
    )
    stage.kinds("")
    (found,) = await stage.reconcile()
    assert (found.ok, found.reason) == (None, "WaitingForDatabase")
    assert stage.accounting.requeue_after(stage.cluster) is None
    assert stage.clusters.config(stage.cluster).accounting is not None


async def test_mariadb_operator_gets_its_objects_and_slurmdbd_the_password_of_it() -> None:
    """D73, S169."""
    stage = Stage()
    stage.declare({}, external=False)
    (found,) = await stage.reconcile()
    assert "MariaDB soperator-acct-db is not ready: it is being created" in found.message
    for plural in ("mariadbs", "grants"):
        path = f"/apis/k8s.mariadb.com/v1alpha1/namespaces/{SPACE}/{plural}/soperator-acct-db"
        assert path in stage.api.objects
    stage.mariadb("False", "pulling its image")
    (found,) = await stage.reconcile()
    assert (found.ok, "pulling its image" in found.message) == (None, True)
    stage.mariadb("True", "Running")
    stage.secret("soperator-acct-db-password", password=b"theirs")
    await stage.reconcile()
    assert "StoragePass=theirs" in stage.slurmdbd_conf()
    assert "StorageHost=soperator-acct-db" in stage.slurmdbd_conf()


async def test_a_mariadb_that_is_not_ready_is_reported_with_a_slurmdbd_that_waits_only() -> None:
    stage = Stage()
    stage.declare({}, external=False)
    await stage.reconcile()
    stage.secret("soperator-acct-db-password", password=b"p")
    stage.mariadb("False", "switching its primary")
    stage.slurmdbd("False")
    found = await stage.reconcile()
    assert found[0].ok is None
    assert "switching its primary" in found[0].message
    stage.slurmdbd()
    found = await stage.reconcile()
    assert found[0].ok is True


async def test_a_mariadb_that_is_rejected_is_reported_and_stops_nothing_else() -> None:
    stage = Stage()
    stage.declare({}, external=False)
    path = f"/apis/k8s.mariadb.com/v1alpha1/namespaces/{SPACE}/mariadbs"
    stage.api.fail(Fault(403, "Forbidden", when=lambda one: path in one.path))
    (found,) = await stage.reconcile()
    assert (found.ok, found.reason) == (False, "NotCreated")
    assert "mariadbOperator cannot be created" in found.message
    assert stage.accounting.requeue_after(stage.cluster) == 5.0


async def test_kinds_that_go_take_no_slurmdbd_from_a_cluster_that_works() -> None:
    """slurmctld would drop the records that wait in it."""
    stage = Stage()
    stage.declare({}, external=False)
    stage.secret("soperator-acct-db-password", password=b"p")
    put(stage.caches.config_maps, published())
    stage.kinds(None)
    assert stage.clusters.has_slurmdbd(stage.cluster)
    assert stage.clusters.config(stage.cluster).accounting is not None


def test_deleted_files_in_force_take_slurmdbd_from_neither_slurmrestd_nor_the_next_files() -> None:
    """A plan found that slurmrestd was replaced without slurmdbd, and once more with it."""
    stage, files = Stage(), published()
    meta = replace(files.metadata, name=f"{NAME}-slurm-configs-last-known-good")
    put(stage.caches.config_maps, replace(files, metadata=meta))
    assert stage.clusters.inputs(stage.cluster).slurmdbd == "h:1"
    assert stage.clusters.config(stage.cluster).published == files.data


def test_the_tres_of_the_last_known_good_files_stay_while_slurmdbd_is_down() -> None:
    stage, files = Stage(), published()
    text = f"{(files.data or {})['slurm.conf']}AccountingStorageTRES=gres/gpu\n"
    meta = replace(files.metadata, name=f"{NAME}-slurm-configs-last-known-good")
    put(stage.caches.config_maps, replace(files, metadata=meta, data={"slurm.conf": text}))
    stage.pod("soperator-controller-0", "controller", "slurmctld", {"state": {}}, "True")
    stage.slurmdbd("False")
    assert stage.clusters.has_database(stage.cluster)


def test_accounting_that_is_declared_while_slurmctld_starts_waits_with_its_tres() -> None:
    """slurmctld has read the files without slurmdbd, and rejects TRES that no database knows."""
    stage, files = Stage(), published()
    assert stage.clusters.has_database(stage.cluster)
    put(stage.caches.config_maps, replace(files, data={"slurm.conf": "ClusterName=a\n"}))
    stage.pod("soperator-controller-0", "controller", "slurmctld", {"state": {}}, "False")
    assert not stage.clusters.has_database(stage.cluster)
    stage.slurmdbd()
    assert stage.clusters.has_database(stage.cluster)


def test_slurmrestd_is_created_with_slurmdbd_before_the_watch_shows_the_first_files() -> None:
    stage = Stage()
    host = f"{NAME}-accounting-svc.{SPACE}:6819"
    assert stage.clusters.inputs(stage.cluster).slurmdbd == host


async def test_a_database_of_our_own_is_made_with_a_password_that_stays() -> None:
    """S169, D56."""
    stage = Stage()
    embedded = {"enabled": True, "image": "mariadb:1"}
    stage.declare({f"{PATH}.externalDB": {}, f"{PATH}.embeddedDB": embedded, OPERATOR: False})
    (found,) = await stage.reconcile()
    assert found.reason == "CreatingDatabase"
    secret = f"/api/v1/namespaces/{SPACE}/secrets/soperator-accounting-db"
    password = stage.api.objects[secret]["data"]["password"]
    stage.secret("soperator-accounting-db", password=base64.b64decode(password))
    found = await stage.reconcile()
    assert f"StoragePass={base64.b64decode(password).decode()}" in stage.slurmdbd_conf()
    assert "StorageHost=soperator-accounting-db" in stage.slurmdbd_conf()
    assert found[0].ok is None
    path = f"/apis/apps/v1/namespaces/{SPACE}/statefulsets/soperator-accounting-db"
    template = stage.api.objects[path]["spec"]["template"]
    assert base64.b64decode(password).decode() not in str(template)
    await stage.reconcile()
    assert stage.api.objects[secret]["data"]["password"] == password


async def test_a_pvc_that_cannot_follow_its_size_is_remarked_while_all_works() -> None:
    stage = Stage()
    embedded = {"enabled": True, "image": "mariadb:1"}
    databases: dict[str, Any] = {f"{PATH}.externalDB": {}, OPERATOR: False}
    stage.declare({**databases, f"{PATH}.embeddedDB": embedded})
    stage.secret("soperator-accounting-db", password=b"p")
    await stage.reconcile()
    path = f"/apis/apps/v1/namespaces/{SPACE}/statefulsets/soperator-accounting-db"
    put_raw(stage.caches.stateful_sets, stage.api.objects[path])
    stage.slurmdbd()
    stage.declare({**databases, f"{PATH}.embeddedDB": {**embedded, "storage": {"size": "99Gi"}}})
    found = await stage.reconcile()
    assert found[0].ok is True
    assert "ClaimKept" in [one.reason for one in found]


async def test_the_slurmctld_of_a_deleted_cluster_of_this_name_is_not_that_of_the_next() -> None:
    """S169: a plan with accounting found that the next one counted as one that has worked."""
    stage = Stage()
    pod = stage.pod("soperator-controller-0", "controller", "slurmctld", {"state": {}}, "True")
    assert stage.clusters.slurmctld_pods(stage.cluster) == (pod,)
    owner = OwnerReference(api_version="apps/v1", kind="StatefulSet", uid="s", controller=True)
    meta = replace(pod.metadata, owner_references=(owner,), resource_version="2")
    owned = replace(pod, metadata=meta)
    put(stage.caches.pods, owned)
    assert stage.clusters.slurmctld_pods(stage.cluster) == ()
    assert not stage.clusters.served(stage.cluster)
    meta = ObjectMeta(name="soperator-controller", namespace=SPACE, uid="s")
    put(stage.caches.stateful_sets, StatefulSet(metadata=meta))
    assert stage.clusters.slurmctld_pods(stage.cluster) == (owned,)


async def test_a_password_secret_without_its_key_is_reported() -> None:
    stage = Stage()
    embedded = {"enabled": True, "image": "mariadb:1"}
    stage.declare({f"{PATH}.externalDB": {}, f"{PATH}.embeddedDB": embedded, OPERATOR: False})
    stage.secret("soperator-accounting-db", other=b"p")
    (found,) = await stage.reconcile()
    assert (found.ok, found.reason) == (False, "SecretNotFound")
    assert "Delete the Secret" in found.message


async def test_accounting_that_is_off_has_no_part_and_no_conditions() -> None:
    stage = Stage()
    stage.declare({f"{PATH}.enabled": False})
    assert await stage.reconcile() == []
    assert REACHABLE in stage.accounting.outdated(stage.cluster)


def _ended() -> Json:
    ended = {"exitCode": 1, "finishedAt": "2026-01-01T00:00:00Z", "message": IN_VAIN}
    return {
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": ended},
    }


@pytest.mark.parametrize("ready", ["True", "False"])
async def test_a_slurmctld_that_waited_in_vain_starts_again_once_slurmdbd_serves(
    ready: str,
) -> None:
    """S169: the kubelet alone would wait up to five minutes."""
    stage = Stage()
    stage.secret("database", password=b"p")
    stage.slurmdbd(ready)
    pod = stage.pod("soperator-controller-0", "controller", "slurmctld", _ended(), "False")
    found = await stage.accounting.release_slurmctld(stage.cluster, (pod,), persistent=True)
    exists = any("soperator-controller-0" in path for path in stage.api.objects)
    assert exists is (ready == "False")
    assert [one.reason for one in found] == ([] if ready == "True" else ["WaitingForAccounting"])


async def test_tres_reach_a_slurmctld_that_works_once_the_database_answers() -> None:
    """S169: slurmctld ends at TRES that it cannot add to the database."""
    stage = Stage()
    assert stage.clusters.config(stage.cluster).has_database
    stage.declare({"status": {"conditions": [{"type": "ConfigApplied", "status": "True"}]}})
    assert stage.clusters.served(stage.cluster)
    stage.slurmdbd("False")
    assert not stage.clusters.config(stage.cluster).has_database
    stage.slurmdbd()
    assert stage.clusters.config(stage.cluster).has_database
