"""slurmdbd of a SlurmCluster: its file, its objects, and slurmrestd's half of its API."""

from __future__ import annotations

import base64
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from penstock.api.cluster.marks import SLURM_KEY_HASH
from penstock.api.kubernetes.meta import Json
from penstock.api.nebius.accounting import AccountingNode, has_slurmdbd
from penstock.render.nebius import accounting
from penstock.render.nebius.cluster import slurmrestd
from penstock.render.nebius.config.slurm_conf import slurmdbd_in
from penstock.render.nebius.config.slurmdbd_conf import slurmdbd_conf
from penstock.slurm.conf.document import ConfError
from penstock.translate.nebius.database import database
from support.nebius_clusters import CURRENT, OLDER, SHAPES, Rendered, of_shape

PATH = "spec.slurmNodes.accounting"
EXTERNAL = {
    f"{PATH}.mariadbOperator.enabled": False,
    f"{PATH}.externalDB": {
        "enabled": True,
        "host": "db.example.com",
        "user": "books",
        "passwordSecretKeyRef": {"name": "database", "key": "password"},
    },
}
TLS = {"serverCASecretRef": "ca", "clientCertSecretRef": "client"}


def external(shape: str = CURRENT, changes: dict[str, Any] | None = None, **more: Any) -> Rendered:
    return of_shape(shape, deepcopy({**EXTERNAL, **(changes or {})}), **more)


def node(found: Rendered) -> AccountingNode:
    return found.inputs.spec.slurm_nodes.accounting


def conf(changes: dict[str, Any] | None = None, password: str = "p w", tls: str = "") -> list[str]:
    found = external(changes=changes)
    where = database(found.inputs.cluster)
    return slurmdbd_conf(node(found), where, password, tls).splitlines()


def objects(found: Rendered, text: str = "text", text_hash: str = "hash") -> dict[str, Json]:
    every = accounting.objects(found.inputs, text, text_hash)
    return {one["kind"]: one for one in every}


def pod(found: Rendered) -> Json:
    return objects(found)["Deployment"]["spec"]["template"]["spec"]


def container(found: Rendered) -> Json:
    return pod(found)["containers"][0]


def test_the_file_has_the_database_of_the_user_and_a_password_with_blanks():
    lines = conf()
    for line in (
        "DbdHost=accounting",
        "DbdPort=6819",
        "SlurmUser=slurm",
        "AuthType=auth/munge",
        "AuthAltTypes=auth/jwt",
        "StorageHost=db.example.com",
        "StorageUser=books",
        "StorageLoc=slurm_acct_db",
        "StoragePort=3306",
        'StoragePass="p w"',
        "PurgeJobAfter=12month",
        "ArchiveTXN=no",
    ):
        assert line in lines
    assert not [line for line in lines if line.startswith("StorageParameters")]


def test_jwt_needs_no_rest_enabled():
    """The original has these lines only with `rest.enabled`."""
    assert "AuthAltTypes=auth/jwt" in conf({"spec.slurmNodes.rest.enabled": False})


def test_certificates_and_parameters_of_the_user_are_one_sorted_list():
    lines = conf(
        {
            f"{PATH}.externalDB.tls": TLS,
            f"{PATH}.externalDB.storageParameters": {"SSL_CIPHER": "x", "SSL_CA": "/other"},
        },
        tls="d1",
    )
    own = "SSL_CA=/etc/slurm/ca.crt,SSL_CERT=/etc/slurm/tls.crt"
    assert f'StorageParameters="{own},SSL_CIPHER=x,SSL_KEY=/etc/slurm/tls.key"' in lines or (
        f"StorageParameters={own},SSL_CIPHER=x,SSL_KEY=/etc/slurm/tls.key" in lines
    )
    assert lines[-1] == "# Certificates: d1"


def test_a_line_break_in_a_field_cannot_add_a_line():
    lines = conf({f"{PATH}.externalDB.host": "db\nDbdHost=evil", f"{PATH}.externalDB.user": "a"})
    assert not [line for line in lines if line.startswith("DbdHost=evil")]
    with pytest.raises(ConfError):
        conf({f"{PATH}.externalDB.user": 'a"b'})


@pytest.mark.parametrize("shape", SHAPES)
def test_a_declared_port_is_that_of_all(shape: str):
    """D70: the original has 6819 in both files, whatever the Service has."""
    found = external(shape, {f"{PATH}.slurmdbd.port": 7000})
    every = objects(found)
    assert every["Service"]["spec"]["ports"][0]["port"] == 7000
    assert container(found)["ports"][0]["containerPort"] == 7000
    assert (
        "DbdPort=7000"
        in slurmdbd_conf(node(found), database(found.inputs.cluster), "p").splitlines()
    )


def test_the_password_is_only_in_the_secret():
    found = objects(external(), "StoragePass=geheim", "hash")
    assert base64.b64decode(found["Secret"]["data"]["slurmdbd.conf"]) == b"StoragePass=geheim"
    assert "geheim" not in str(found["Deployment"]) + str(found["Service"])


def test_a_changed_file_changes_no_pod_unless_its_command_is_the_users():
    """D72."""
    found = external()
    assert objects(found, "a", "1")["Deployment"] == objects(found, "b", "2")["Deployment"]
    own = external(changes={f"{PATH}.slurmdbd.command": ["/start"]})
    assert objects(own, "a", "1")["Deployment"] != objects(own, "b", "2")["Deployment"]
    assert container(own)["command"] == ["/start"]
    assert "env" not in container(own)


def test_another_key_of_the_clients_replaces_the_pod():
    """slurmdbd reads its keys only at its start."""
    found = external()
    later = replace(found, inputs=replace(found.inputs, clients_key="a"))
    annotations = [
        objects(one)["Deployment"]["spec"]["template"]["metadata"]["annotations"]
        for one in (found, later)
    ]
    assert SLURM_KEY_HASH not in annotations[0]
    assert annotations[1][SLURM_KEY_HASH] == "a"


def test_slurmdbd_is_ready_while_its_database_answers_whatever_port_probe_is_declared():
    probe = {"tcpSocket": {"port": 6819}, "periodSeconds": 10}
    found = container(external(changes={f"{PATH}.slurmdbd.readinessProbe": probe}))
    assert found["readinessProbe"]["exec"]["command"] == ["test", "-e", "/run/penstock/ready"]
    assert found["readinessProbe"]["periodSeconds"] == 10
    assert "tcpSocket" not in found["readinessProbe"]
    assert "livenessProbe" not in found
    other = {"exec": {"command": ["mine"]}}
    found = container(external(changes={f"{PATH}.slurmdbd.readinessProbe": other}))
    assert found["readinessProbe"]["exec"] == other["exec"]


def test_slurmctld_reaches_a_slurmdbd_that_is_not_ready():
    assert objects(external())["Service"]["spec"]["publishNotReadyAddresses"] is True


def test_certificates_are_in_the_folder_of_the_file():
    """D71."""
    found = pod(external(changes={f"{PATH}.externalDB.tls": TLS}))
    sources = next(one for one in found["volumes"] if one["name"] == "slurm-configs")
    names = [one["secret"]["name"] for one in sources["projected"]["sources"] if "secret" in one]
    assert names == ["soperator-slurmdbd-configs", "soperator-rest-jwt-key", "ca", "client"]


def test_the_archive_has_the_size_of_the_resources():
    resources = {"cpu": "1", "storage": "5Gi"}
    found = pod(external(changes={f"{PATH}.slurmdbd.resources": resources}))
    spool = next(one for one in found["volumes"] if one["name"] == "spool")
    assert spool["emptyDir"] == {"sizeLimit": "5Gi"}


def test_names_have_the_prefix_of_the_shape():
    names = [objects(external(shape))["Deployment"]["metadata"]["name"] for shape in SHAPES]
    assert names == ["accounting", "soperator-accounting"]
    assert SHAPES == (OLDER, CURRENT)


def test_slurmdbd_is_declared_with_each_of_three_databases():
    embedded = {"enabled": True, "image": "mariadb:1"}
    none = {f"{PATH}.externalDB.enabled": False}
    assert has_slurmdbd(node(external()))
    assert has_slurmdbd(node(external(changes={**none, f"{PATH}.embeddedDB": embedded})))
    assert has_slurmdbd(node(of_shape(CURRENT)))
    assert not has_slurmdbd(node(external(changes=none)))
    assert not has_slurmdbd(node(external(changes={f"{PATH}.enabled": False})))


@pytest.mark.parametrize(
    ("replication", "host"),
    [(None, "soperator-acct-db"), ({"enabled": True}, "soperator-acct-db-primary")],
)
def test_slurmdbd_writes_to_the_primary_of_a_mariadb(replication: Json | None, host: str):
    """A Service of all pods would lead it to replicas as well."""
    changes = {f"{PATH}.mariadbOperator.replication": replication, f"{PATH}.externalDB": {}}
    found = of_shape(CURRENT, changes)
    where = database(found.inputs.cluster)
    assert (where.host, where.port, where.user) == (host, 3306, "slurm")
    assert where.password is not None
    assert where.password.name == "soperator-acct-db-password"


def test_slurmrestd_starts_again_when_the_files_in_force_name_slurmdbd():
    files = {
        "slurm.conf": "include /etc/slurm/slurm_base.conf.noedit\n",
        "slurm_base.conf.noedit": "AccountingStorageType=accounting_storage/slurmdbd\n"
        "AccountingStorageHost=h\nAccountingStoragePort=1\n",
    }
    assert slurmdbd_in(files) == "h:1"
    assert slurmdbd_in({}) == slurmdbd_in({"slurm.conf": "ClusterName=c\n"}) == ""
    none = {"spec.slurmNodes.rest.rest": None}
    without = slurmrestd.deployment(external(changes=none).inputs)["spec"]["template"]
    found = slurmrestd.deployment(external(changes=none, slurmdbd="h:1").inputs)["spec"]["template"]
    assert "openapi/slurmctld,openapi/slurmdbd" in found["spec"]["containers"][0]["args"]
    assert "openapi/slurmctld" in without["spec"]["containers"][0]["args"]
    assert found["metadata"] != without["metadata"]
