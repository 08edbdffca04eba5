"""What a cluster is made of, and that it stays so."""

from __future__ import annotations

import base64
from collections import Counter

import msgspec
import pytest

from penstock.api.kubernetes.kinds import PODS, SECRETS
from penstock.api.kubernetes.meta import Json
from penstock.controllers.runtime.settings import Settings
from penstock.kube import Selector
from penstock.kube.runtime.events import EVENTS
from support.operator_kit import Lab, Node, lab, made, quickstart

pytestmark = pytest.mark.api

STARTED = ("ConfigMap", "Controller", "RestApi", "NodeSet")
API = "slinky.slurm.net/v1beta1"
CONTROLLER: Json = {
    "apiVersion": API,
    "kind": "Controller",
    "metadata": {"name": "slurm"},
    "spec": {"extraConf": "MinJobAge=2\n"},
}
RESTAPI: Json = {
    "apiVersion": API,
    "kind": "RestApi",
    "metadata": {"name": "slurm"},
    "spec": {"controllerRef": {"name": "slurm"}},
}
NODESET: Json = {
    "apiVersion": API,
    "kind": "NodeSet",
    "metadata": {"name": "compute"},
    "spec": {
        "controllerRef": {"name": "slurm"},
        "replicas": 2,
        "partition": {"enabled": True},
    },
}


async def test_a_controller_and_a_nodeset_of_a_few_lines_become_a_cluster(api_node: Node) -> None:
    """S007, feature rows 1 and 22."""
    async with lab(api_node) as lab_:
        async with lab_.operator():
            await lab_.apply(CONTROLLER, RESTAPI, NODESET)
            await lab_.until(lambda: lab_.ready("NodeSet", "compute"))
            keys = {
                name: lab_.get("Secret", name) for name in ("slurm-auth-slurm", "slurm-auth-jwt")
            }
            for name, secret in keys.items():
                assert secret is not None
                # They stay when the Controller goes, as slurmctld's state does.
                assert "ownerReferences" not in secret["metadata"], name
                assert len(base64.b64decode(next(iter(secret["data"].values())))) >= 256
            pod = lab_.get("Pod", "compute-0")
            assert pod is not None
            images = {one["name"]: one["image"] for one in pod["spec"]["containers"]}
            assert images["slurmd"] == Settings().images.slurmd
            conf = lab_.get("ConfigMap", "slurm-config")
            assert conf is not None
            assert "MinJobAge=2" in conf["data"]["slurm.conf"]
        async with lab_.operator():
            await lab_.apply({**CONTROLLER, "spec": {"extraConf": "MinJobAge=3\n"}})
            await lab_.until(lambda: lab_.ready("Controller", "slurm"))
            await lab_.calm()
            assert keys == {name: lab_.get("Secret", name) for name in keys}


async def test_a_key_that_is_there_is_used_and_never_written(api_node: Node) -> None:
    """S067, feature row 10."""
    async with lab(api_node) as lab_, lab_.operator() as running:
        value = base64.b64encode(b"k" * 64).decode()
        theirs: Json = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "slurm-auth-slurm"},
            "data": {"slurm.key": value},
        }
        await lab_.apply(theirs)
        await lab_.until(lambda: lab_.get("Secret", "slurm-auth-slurm") is not None)
        await lab_.apply(CONTROLLER)
        await lab_.until(lambda: lab_.ready("Controller", "slurm"))
        found = await lab_.client.get(SECRETS, lab_.namespace, "slurm-auth-slurm")
        assert found.data == {"slurm.key": value}
        path = f"/api/v1/namespaces/{lab_.namespace}/secrets"
        assert [one for one in running.writes if one.startswith(f"PATCH {path}")] == []


async def test_every_label_of_workers_finds_exactly_the_workers(api_node: Node) -> None:
    """S008."""
    async with lab(api_node) as lab_, lab_.operator():
        await start(lab_)
        for label in (
            "slinky.slurm.net/component=slurmd",
            "app.kubernetes.io/name=slurmd",
            "app.kubernetes.io/component=worker",
        ):
            found = await lab_.client.list(PODS, Selector(lab_.namespace, label))
            assert [one.metadata.name for one in found.items] == ["compute-0", "compute-1"], label


async def test_both_spellings_of_the_jwt_key_name_the_same_secret(api_node: Node) -> None:
    """S068: in a Controller, and the newer one wins; nothing is generated beside it."""
    async with lab(api_node, clusters=3) as lab_, lab_.operator():
        secret: Json = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "external-auth"},
            "data": {
                name: base64.b64encode(name.encode() * 64).decode()
                for name in ("slurm.key", "jwt_hs256.key")
            },
        }
        key: Json = {"name": "external-auth", "key": "jwt_hs256.key"}
        other: Json = {"name": "absent", "key": "none"}
        slurm: Json = {"slurmKeyRef": {"name": "external-auth", "key": "slurm.key"}}
        references: tuple[Json, ...] = (
            {"jwtHs256KeyRef": key},
            {"jwtKeyRef": key},
            {"jwtHs256KeyRef": other, "jwtKeyRef": key},
        )
        for space, reference in zip(lab_.clusters, references, strict=True):
            controller = {**CONTROLLER, "spec": {**CONTROLLER["spec"], **slurm, **reference}}
            await lab_.apply(secret, controller, RESTAPI, NODESET, namespace=space)
        for space in lab_.clusters:
            await lab_.until(lambda space=space: lab_.ready("NodeSet", "compute", space))
        await lab_.calm()
        first, *others = (made(lab_, space) for space in lab_.clusters)
        assert len(first) > 10
        for space in lab_.clusters:
            assert {"slurm-auth-slurm", "slurm-auth-jwt"} & set(
                lab_.names("Secret", space)
            ) == set()
        for one in others:
            assert one == first


async def test_the_namespace_of_the_controller_may_be_named(api_node: Node) -> None:
    """S006."""
    async with lab(api_node, clusters=2) as lab_, lab_.operator():
        plain, named = lab_.clusters
        for space, ref in (
            (plain, {"name": "slurm"}),
            (named, {"name": "slurm", "namespace": named}),
        ):
            spec = {**NODESET["spec"], "controllerRef": ref}
            await lab_.apply(CONTROLLER, RESTAPI, {**NODESET, "spec": spec}, namespace=space)
            await lab_.until(lambda space=space: lab_.ready("NodeSet", "compute", space))
        await lab_.calm()
        one, other = made(lab_, plain), made(lab_, named)
        assert one == other
        assert len(one) > 10


async def test_a_controller_of_another_namespace_is_not_used(api_node: Node) -> None:
    """S006."""
    async with lab(api_node, clusters=2) as lab_, lab_.operator():
        home, abroad = lab_.clusters
        await lab_.apply(CONTROLLER, RESTAPI, NODESET)
        await lab_.until(lambda: lab_.ready("NodeSet", "compute"))
        await lab_.calm()
        before = made(lab_, home)
        ref: Json = {"controllerRef": {"name": "slurm", "namespace": home}}
        stranger: Json = {
            **NODESET,
            "metadata": {"name": "stranger"},
            "spec": {**ref, "replicas": 3},
        }
        await lab_.apply(stranger, {**RESTAPI, "spec": ref}, namespace=abroad)
        await lab_.until(
            lambda: lab_.condition("NodeSet", "stranger", namespace=abroad) is not None
        )
        await lab_.until(lambda: lab_.condition("RestApi", "slurm", namespace=abroad) is not None)
        await lab_.calm()
        found = lab_.condition("NodeSet", "stranger", namespace=abroad)
        assert found is not None
        assert (found.status, found.reason) == ("False", "Invalid")
        assert made(lab_, abroad) == {}
        assert made(lab_, home) == before
        await lab_.user.delete(lab_.seen["NodeSet"].resource, abroad, "stranger")
        await lab_.until(lambda: lab_.names("NodeSet", abroad) == [])


@pytest.mark.parametrize(
    ("kind", "name", "edit"),
    [
        ("ConfigMap", "slurm-config", {"data": {"slurm.conf": "ClusterName=mine\n"}}),
        ("Service", "slurm-controller", {"spec": {"selector": {"mine": "yes"}}}),
        ("StatefulSet", "slurm-controller", {"spec": {"replicas": 0}}),
    ],
)
async def test_what_was_deleted_or_edited_by_hand_comes_back(
    api_node: Node, kind: str, name: str, edit: Json
) -> None:
    """S027."""
    async with lab(api_node) as lab_, lab_.operator():
        await start(lab_)
        await lab_.calm()
        before = made(lab_)
        old = lab_.get(kind, name)
        assert old is not None
        await lab_.patch(kind, name, edit)
        await lab_.until(lambda: made(lab_) == before and changed(lab_, kind, name, old))
        await lab_.delete(kind, name)
        await lab_.until(lambda: made(lab_) == before and another(lab_, kind, name, old))
        await lab_.calm()
        told = await counted(lab_)
        assert told[f"Created {kind} {name}"] == 2
        edits = [note for note in told if note.startswith(f"Updated {kind} {name}: ")]
        assert [told[note] for note in edits] == [1]


async def test_the_same_manifests_again_change_nothing(api_node: Node) -> None:
    async with lab(api_node) as lab_, lab_.operator() as running:
        await start(lab_)
        await lab_.calm(2)
        before = list(running.writes)
        objects = quickstart()
        await lab_.apply(*(objects[kind] for kind in STARTED))
        await lab_.calm(2)
        assert running.writes == before


async def start(lab_: Lab) -> None:
    """The example, up to Ready, without the part that takes long to make keys for."""
    objects = quickstart()
    await lab_.apply(*(objects[kind] for kind in STARTED))
    await lab_.until(lambda: lab_.ready("NodeSet", "compute"))


def changed(lab_: Lab, kind: str, name: str, old: Json) -> bool:
    now = lab_.get(kind, name)
    return (
        now is not None and now["metadata"]["resourceVersion"] != old["metadata"]["resourceVersion"]
    )


def another(lab_: Lab, kind: str, name: str, old: Json) -> bool:
    now = lab_.get(kind, name)
    return now is not None and now["metadata"]["uid"] != old["metadata"]["uid"]


async def counted(lab_: Lab) -> Counter[str]:
    """How often each event of the namespace happened, by its note."""
    found = Counter[str]()
    async for page in lab_.client.pages(EVENTS, Selector(lab_.namespace)):
        for item in page.items or ():
            event = msgspec.json.decode(item)
            found[event["note"]] += event.get("series", {}).get("count", 1)
    return found
