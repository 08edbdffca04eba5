"""What is made for an Accounting (F14), and what restarts slurmdbd for it and what does not."""

from __future__ import annotations

import base64
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from penstock.api.kubernetes.meta import Json
from penstock.api.slinky.accounting import Accounting
from penstock.render.slinky.accounting import slurmdbd as render
from penstock.render.slinky.accounting.slurmdbd import SlurmdbdInputs
from penstock.render.slinky.accounting.slurmdbd_conf import slurmdbd_conf
from penstock.slurm.conf.document import Document
from penstock.slurm.conf.storage_password import password_problem
from unit.render.test_golden import GOLDEN, dumped

FIXTURE = Path(__file__).parents[2] / "fixtures/slinky/f14-accounting.yaml"


def accounting(**spec: Any) -> Accounting:
    document = yaml.safe_load(FIXTURE.read_text())
    document["metadata"]["uid"] = "00000000-0000-0000-0000-000000000005"
    document["spec"] |= spec
    return msgspec.convert(document, Accounting)


def given(obj: Accounting, password: str = "secret") -> SlurmdbdInputs:
    return SlurmdbdInputs(
        image="penstock/slurmdbd",
        conf=slurmdbd_conf(obj, password),
        jwt_key=b"jwt-key",
        slurm_key_hash="hash-of-slurm-key",
        jwt_key_hash="hash-of-jwt-key",
        jwks_hash="hash-of-jwks",
    )


def made(obj: Accounting, what: SlurmdbdInputs | None = None) -> dict[str, Json]:
    return {one["kind"]: one for one in render.objects(obj, what or given(obj))}


def container(obj: Accounting) -> Json:
    return made(obj)["StatefulSet"]["spec"]["template"]["spec"]["containers"][0]


def test_manifests_are_byte_for_byte_as_recorded() -> None:
    """S082, D21, D31, D38, feature 14."""
    text = dumped(render.objects(accounting(), given(accounting())))
    path = GOLDEN / "accounting.yaml"
    if os.environ.get("PENSTOCK_WRITE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()


def test_slurmdbd_with_munge_has_the_sidecar_and_no_key_of_its_own() -> None:
    """S163."""
    obj = accounting(slurmKeyRef=None, mungeKeyRef={"name": "site", "key": "site.key"})
    found = made(obj, replace(given(obj), slurm_key_hash="", munge_image="penstock/munge"))
    spec = found["StatefulSet"]["spec"]["template"]["spec"]
    (munge,) = spec["initContainers"]
    assert (munge["name"], munge["image"]) == ("munge", "penstock/munge")
    assert {"name": "munge-socket", "mountPath": "/run/munge"} in spec["containers"][0][
        "volumeMounts"
    ]
    assert spec["containers"][0]["env"] == [{"name": "SLURMDBD_AUTH", "value": "auth/munge"}]
    assert "slurm.key" not in str(spec)
    conf = slurmdbd_conf(obj, "secret")
    assert "AuthType=auth/munge\nAuthAltTypes=auth/jwt\n" in conf
    assert "use_client_ids" not in conf


@pytest.mark.parametrize(
    ("image", "copied"),
    [
        ("example/slurmdbd:24.11-0.1.0", True),
        ("example/slurmdbd:25.05-ubuntu24.04", True),
        ("example/slurmdbd:25.11.2", False),
        ("example/slurmdbd:26.05", False),
        ("example/slurmdbd@sha256:0123", False),
    ],
)
def test_a_slurmdbd_that_wants_a_private_file_reads_copies(image: str, copied: bool) -> None:
    """24.11 ends with `should be 600 is 640 accessible for group or others`."""
    named = container(accounting(slurmdbd={"image": image}))
    bare = accounting(slurmdbd={})
    default = made(bare, replace(given(bare), image=image))["StatefulSet"]
    for one in (named, default["spec"]["template"]["spec"]["containers"][0]):
        found = {each["name"]: each["value"] for each in one.get("env", ())}
        assert (found.get("SLURMDBD_ETC") == "/run/penstock/etc") is copied
        assert (found.get("SLURM_CONF") == "/run/penstock/etc/slurm.conf") is copied
        assert (found.get("SLURMDBD_USER") == "401") is copied


def test_the_conf_is_that_of_slurm_operator() -> None:
    """The order and the headings of section 2.5 of the facts, with the user's lines at the end."""
    assert slurmdbd_conf(accounting(jwksKeyRef=None), "secret") == (
        "#\n### GENERAL ###\nDbdHost=records-accounting-0\nDbdPort=6819\nSlurmUser=slurm\n"
        "#\n### PLUGINS & PARAMETERS ###\nAuthType=auth/slurm\nAuthAltTypes=auth/jwt\n"
        "AuthAltParameters=jwt_key=/etc/slurm/jwt.key\nAuthInfo=use_client_ids\n"
        "#\n### STORAGE ###\nStorageType=accounting_storage/mysql\nStorageHost=mariadb.databases\n"
        "StoragePort=3307\nStorageUser=slurm\nStorageLoc=accounting\nStoragePass=secret\n"
        "#\n### LOGGING ###\nLogFile=/dev/null\n"
        "#\n### EXTRA CONFIG ###\nPurgeEventAfter=12months\n"
    )


def test_options_that_a_user_sets_are_joined_to_the_required_ones() -> None:
    """D13: with their letter case."""
    mine = "AuthInfo=ttl=60\nAuthAltParameters=userclaimfield=Name"
    document = Document.parse(slurmdbd_conf(accounting(extraConf=mine), "x"))
    assert document.get("AuthInfo") == "ttl=60,use_client_ids"
    assert document.options("AuthAltParameters") == (
        "jwks=/etc/slurm/jwks.json",
        "jwt_key=/etc/slurm/jwt.key",
        "userclaimfield=Name",
    )


def test_a_user_may_leave_out_the_name_of_the_databases_user() -> None:
    storage = {"host": "db", "passwordKeyRef": {"name": "n", "key": "k"}}
    text = slurmdbd_conf(accounting(storageConfig=storage), "x y")
    assert "StorageUser" not in text
    assert 'StoragePort=3306\nStorageLoc=slurm_acct_db\nStoragePass="x y"\n' in text


@pytest.mark.parametrize(
    ("password", "words"),
    [("", "empty"), ("a#b", "#"), ('a"b', "quote"), ("a\nb", "line break"), ("a\tb", "printed")],
)
def test_a_password_that_cannot_stand_in_the_file_is_reported(password: str, words: str) -> None:
    assert words in password_problem(password)
    assert password_problem("p$%&/()=?äö \\x") == ""


def test_a_changed_password_changes_the_secret_and_no_pod() -> None:
    """D17: it is taken over without a restart."""
    obj = accounting()
    old, new = made(obj), made(obj, given(obj, "another"))
    assert old["StatefulSet"] == new["StatefulSet"]
    text = base64.b64decode(new["Secret"]["data"]["slurmdbd.conf"]).decode()
    assert "StoragePass=another\n" in text
    assert given(obj).conf_hash != given(obj, "another").conf_hash


def test_nobody_without_the_key_can_try_passwords_against_the_hash() -> None:
    one = given(accounting())
    assert one.conf_hash != replace(one, jwt_key=b"another").conf_hash


@pytest.mark.parametrize("key", ["slurm_key_hash", "jwt_key_hash", "jwks_hash"])
def test_another_key_restarts_slurmdbd(key: str) -> None:
    obj = accounting()
    old, new = made(obj), made(obj, replace(given(obj), **{key: "another"}))
    assert old["StatefulSet"]["spec"]["template"] != new["StatefulSet"]["spec"]["template"]


def test_a_program_of_the_users_own_is_restarted_for_another_file() -> None:
    obj = accounting(slurmdbd={"command": ["slurmdbd", "-D"]})
    assert not render.has_own_entrypoint(obj)
    found = container(obj)
    assert found["command"] == ["slurmdbd", "-D"]
    assert found["readinessProbe"]["tcpSocket"] == {"port": "slurmdbd"}
    assert made(obj)["StatefulSet"] != made(obj, given(obj, "another"))["StatefulSet"]


def test_labels_of_the_template_are_the_pods_and_those_of_the_object_are_nobodys() -> None:
    """D21, D37, D38."""
    obj = accounting(template={"metadata": {"labels": {"tier": "x", "helm.sh/chart": "c"}}})
    msgspec.structs.force_setattr(obj.metadata, "annotations", {"kubectl": "x"})
    found = made(obj)["StatefulSet"]["spec"]["template"]["metadata"]
    assert found["labels"]["tier"] == "x"
    assert "helm.sh/chart" not in found["labels"]
    assert "kubectl" not in found["annotations"]


def test_no_probe_ends_a_slurmdbd_that_waits_for_its_database() -> None:
    """S169, D31: the database may be late by hours."""
    found = container(accounting())
    assert "livenessProbe" not in found
    assert "startupProbe" not in found
    assert made(accounting())["Service"]["spec"]["publishNotReadyAddresses"] is True
