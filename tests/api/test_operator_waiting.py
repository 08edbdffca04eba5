"""What is missing is waited for and named; it may come at any time, and nothing is restarted."""

from __future__ import annotations

import base64

import pytest

from penstock.api.kubernetes.meta import Json
from support.operator_kit import Lab, Node, lab, made

pytestmark = pytest.mark.api

API = "slinky.slurm.net/v1beta1"
REF: Json = {"controllerRef": {"name": "slurm"}}


def an(kind: str, name: str, spec: Json) -> Json:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}


def secret(name: str, **data: str) -> Json:
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": encoded}


def config_map(name: str, **data: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


async def test_a_key_that_does_not_exist_is_waited_for_and_not_invented(api_node: Node) -> None:
    """D44, S067."""
    async with lab(api_node) as lab_, lab_.operator():
        key: Json = {"slurmKeyRef": {"name": "mine", "key": "slurm.key"}}
        await lab_.apply(an("Controller", "slurm", key), an("RestApi", "slurm", REF))
        await lab_.apply(an("NodeSet", "compute", {**REF, "replicas": 1}))
        await lab_.until(lambda: lab_.has_reason("Controller", "slurm", "SecretNotFound"))
        for kind, name in (("RestApi", "slurm"), ("NodeSet", "compute")):
            await lab_.until(
                lambda kind=kind, name=name: lab_.has_reason(kind, name, "SecretNotFound")
            )
        await lab_.calm()
        assert set(made(lab_)) == {"Secret slurm-auth-jwt"}
        found = lab_.condition("Controller", "slurm")
        assert found is not None
        assert "mine" in found.message
        assert "slurm.key" in found.message
        await lab_.apply(secret("mine", other="x"))
        await lab_.calm()
        assert lab_.has_reason("Controller", "slurm", "SecretNotFound")
        await lab_.apply(secret("mine", **{"slurm.key": "k" * 64}))
        await lab_.until(lambda: lab_.ready("Controller", "slurm"))
        await lab_.until(lambda: lab_.ready("NodeSet", "compute"))
        once_each(lab_)


async def test_a_config_map_that_does_not_exist_is_waited_for(api_node: Node) -> None:
    """D36, feature row 4."""
    async with lab(api_node) as lab_, lab_.operator():
        await lab_.apply(an("Controller", "slurm", {"configFileRefs": [{"name": "files"}]}))
        await lab_.until(lambda: lab_.has_reason("Controller", "slurm", "ConfigMapNotFound"))
        await lab_.calm()
        assert lab_.names("StatefulSet") == []
        await lab_.apply(config_map("files", **{"gres.conf": "AutoDetect=off\n"}))
        await lab_.until(lambda: lab_.ready("Controller", "slurm"))
        once_each(lab_)


async def test_members_wait_for_their_controller(api_node: Node) -> None:
    async with lab(api_node) as lab_, lab_.operator():
        await lab_.apply(an("NodeSet", "compute", {**REF, "replicas": 1}))
        await lab_.apply(an("RestApi", "slurm", REF), an("LoginSet", "login", REF))
        members = (("NodeSet", "compute"), ("RestApi", "slurm"), ("LoginSet", "login"))
        for kind, name in members:
            await lab_.until(
                lambda kind=kind, name=name: lab_.has_reason(kind, name, "ControllerNotFound")
            )
        await lab_.calm()
        assert made(lab_) == {}
        await lab_.apply(an("Controller", "slurm", {}))
        for kind, name in members:
            await lab_.until(lambda kind=kind, name=name: lab_.ready(kind, name))
        once_each(lab_)


async def test_a_login_waits_for_its_sssd_conf(api_node: Node) -> None:
    """D44, feature row 20."""
    async with lab(api_node) as lab_, lab_.operator():
        sssd: Json = {**REF, "sssdConfRef": {"name": "sssd", "key": "sssd.conf"}}
        await lab_.apply(an("Controller", "slurm", {}), an("LoginSet", "login", sssd))
        await lab_.until(lambda: lab_.has_reason("LoginSet", "login", "SecretNotFound"))
        await lab_.calm()
        assert lab_.names("Deployment") == []
        await lab_.apply(secret("sssd", **{"sssd.conf": "[sssd]\n"}))
        await lab_.until(lambda: lab_.ready("LoginSet", "login"))
        once_each(lab_)


async def test_what_is_not_served_yet_is_reported(api_node: Node) -> None:
    async with lab(api_node) as lab_, lab_.operator():
        outside = {"service": {"spec": {"externalIPs": ["192.0.2.1"]}}}
        await lab_.apply(an("Controller", "slurm", {}), an("LoginSet", "login", {**REF, **outside}))
        await lab_.until(lambda: lab_.condition("LoginSet", "login", "Served") is not None)
        found = lab_.condition("LoginSet", "login", "Served")
        assert found is not None
        assert (found.status, found.reason) == ("False", "FieldsNotServed")
        assert "spec.service.spec.externalIPs" in found.message
        await lab_.until(lambda: lab_.ready("Controller", "slurm"))


async def test_an_accounting_waits_for_its_secrets_and_has_rights_to_what_it_needs(
    api_node: Node,
) -> None:
    """F14, D17, D34: under the operator's own rights, also to change its Secret."""
    async with lab(api_node) as lab_, lab_.operator():
        spec: Json = {
            "slurmKeyRef": {"name": "slurm-auth-slurm", "key": "slurm.key"},
            "jwtKeyRef": {"name": "slurm-auth-jwt", "key": "jwt.key"},
            "storageConfig": {"host": "db", "passwordKeyRef": {"name": "db", "key": "password"}},
        }
        await lab_.apply(
            an("Accounting", "records", spec),
            an("Controller", "slurm", {"accountingRef": {"name": "records"}}),
        )
        await lab_.until(lambda: lab_.has_reason("Accounting", "records", "SecretNotFound"))
        await lab_.apply(secret("db", password="one"))
        await lab_.until(lambda: lab_.ready("Accounting", "records"))
        await lab_.until(lambda: lab_.ready("Controller", "slurm"))
        await lab_.apply(secret("db", password="two"))
        await lab_.until(lambda: "StoragePass=two\n" in slurmdbd_conf(lab_))
        await lab_.until(lambda: lab_.ready("Accounting", "records"))
        once_each(lab_)
        outside: Json = {"external": True, "externalConfig": {"host": "dbd.example.com"}}
        await lab_.apply(an("Accounting", "records", {**spec, **outside}))
        await lab_.until(lambda: "records-accounting" not in lab_.names("Secret"))
        await lab_.until(lambda: "records-accounting" not in lab_.names("StatefulSet"))


def slurmdbd_conf(lab_: Lab) -> str:
    found = lab_.get("Secret", "records-accounting")
    return base64.b64decode(found["data"]["slurmdbd.conf"]).decode() if found else ""


def once_each(lab_: Lab) -> None:
    """No pod was ever replaced."""
    assert lab_.kubelet.seen
    assert {key: uids for key, uids in lab_.kubelet.seen.items() if len(uids) > 1} == {}
