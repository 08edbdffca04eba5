"""Objects of `slurm.nebius.ai` that are made to harm: each is reported at its field, or harmless.

An operator leads all namespaces. The good ones among them go on meanwhile.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from declarations.properties import put
from e2e_kit.api import condition
from penstock.api.kubernetes.kinds import CLAIMS, CONFIG_MAPS, JOBS, PODS, SECRETS, SERVICES
from penstock.api.kubernetes.meta import Json
from penstock.api.kubernetes.resource import Resource
from penstock.api.nebius.nodeset import NODE_SETS
from penstock.api.nebius.slurmcluster import SLURM_CLUSTERS
from penstock.controllers.runtime.apis import NEBIUS
from penstock.controllers.runtime.settings import Settings
from penstock.kube.client.transport import Request
from support.operator_kit import NAMESPACES, Lab, Node, Running, lab

pytestmark = [
    pytest.mark.api,
    # Of aiohttp, for what a user sends: kubectl is another program.
    pytest.mark.filterwarnings("ignore:Sending a large body"),
]

EXAMPLES = Path(__file__).parents[2] / "examples"
RESOURCES: dict[str, Resource[Any]] = {
    "SlurmCluster": SLURM_CLUSTERS,
    "NodeSet": NODE_SETS,
    "PersistentVolumeClaim": CLAIMS,
    "Secret": SECRETS,
    "Service": SERVICES,
    "ConfigMap": CONFIG_MAPS,
}
BASELINE = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "baseline"}}}
HOST: Json = {"name": "host", "mountPath": "/host", "volumeSource": {"hostPath": {"path": "/"}}}
SSSD = {"image": "login:1"}
TEMPLATE: Json = {
    "volumeClaimTemplateSpec": {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
}


def example(name: str = "slurmcluster-nodesets") -> list[Json]:
    """PVCs, the SlurmCluster, and one NodeSet of an example."""
    documents = list(yaml.safe_load_all((EXAMPLES / f"{name}.yaml").read_text()))
    kinds = [one["kind"] for one in documents]
    return documents[: kinds.index("NodeSet") + 1]


def changed(objects: list[Json], kind: str, fields: Json) -> list[Json]:
    """The objects, that of a kind with these fields."""
    made = list(objects)
    at = next(index for index, one in enumerate(made) if one["kind"] == kind)
    for path, value in fields.items():
        made[at] = put(made[at], tuple(path.split(".")), value)
    return made


class Place:
    """A namespace of the lab, and what a user does there."""

    def __init__(self, lab_: Lab, space: str) -> None:
        self.lab, self.space = lab_, space

    async def create(self, *objects: Json) -> None:
        """Create objects; each has to be accepted."""
        for one in objects:
            resource = RESOURCES[one["kind"]]
            body = msgspec.json.encode(one)
            request = Request("POST", resource.path(self.space), {}, body)
            answer = await self.lab.client.transport.send(request)
            assert answer.status == 201, answer.body

    async def again(self, one: Json) -> None:
        """Apply an object that is there."""
        meta = {**one["metadata"], "namespace": self.space}
        await self.lab.user.apply(RESOURCES[one["kind"]], {**one, "metadata": meta})

    async def read(self, kind: str, name: str) -> Json:
        """An object as it is now."""
        return json.loads(await self.lab.get_raw(RESOURCES[kind].path(self.space, name)))

    async def ready(self, kind: str, name: str) -> tuple[str, str]:
        """Reason and message of Ready."""
        found: list[Json] = (await self.read(kind, name)).get("status", {}).get("conditions", [])
        ready = condition({"status": {"conditions": found}}, "Ready")
        return ready.get("reason", ""), ready.get("message", "")

    async def until(self, kind: str, name: str, words: str) -> str:
        """Wait until the message of Ready has these words, and return its reason."""

        async def is_so() -> bool:
            return words in (await self.ready(kind, name))[1]

        try:
            await until(is_so)
        except TimeoutError:
            raise AssertionError(f"no {words!r} in {await self.ready(kind, name)}") from None
        return (await self.ready(kind, name))[0]

    async def names(self, resource: Resource[Any]) -> set[str]:
        """Names of the objects of a kind."""
        items: list[Json] = json.loads(await self.lab.get_raw(resource.path(self.space)))["items"]
        return {one["metadata"]["name"] for one in items}


async def until(is_so: Callable[[], Any]) -> None:
    """Wait until something is so. Raises TimeoutError."""
    async with asyncio.timeout(60):
        while True:
            if await is_so():
                return
            await asyncio.sleep(0.1)


@asynccontextmanager
async def places(node: Node, count: int) -> AsyncGenerator[tuple[Running, list[Place]]]:
    """So many namespaces, and an operator that leads them."""
    async with (
        lab(node, clusters=count) as lab_,
        lab_.operator(settings=Settings(apis=(NEBIUS,))) as running,
    ):
        yield running, [Place(lab_, space) for space in lab_.clusters]


HOSTILE: list[tuple[str, str, Json, str, str]] = [
    (
        "SlurmCluster",
        "cpu",
        {"spec.customSlurmConfig": "#\n" * 200_000},
        "Invalid",
        "spec.customSlurmConfig: has 400000 characters: write at most",
    ),
    (
        "SlurmCluster",
        "cpu",
        {"spec.partitionConfiguration": {"configType": "custom", "rawConfig": ["#" * 2**17] * 4}},
        "Invalid",
        "spec: has 52",
    ),
    (
        "SlurmCluster",
        "cpu",
        {"spec.jailMode": "PerWorker", "spec.slurmNodes.login.volumes.jail": TEMPLATE},
        "Invalid",
        "spec.slurmNodes.login.volumes.jail: spec.jailMode is PerWorker, and logins and slurmctld",
    ),
    (
        "SlurmCluster",
        "cpu",
        {"spec.jailMode": "None"},
        "Invalid",
        "spec.populateJail: spec.jailMode is None, so there is no jail: remove it",
    ),
    (
        "NodeSet",
        "small",
        {"spec.clusterName": "other-namespace/cpu"},
        "Invalid",
        "spec.clusterName: 'other-namespace/cpu' can be the name of no SlurmCluster",
    ),
    (
        "NodeSet",
        "small",
        {"spec.slurmd.volumes.jail": TEMPLATE},
        "JailModeConflict",
        "spec.slurmd.volumes.jail: SlurmCluster cpu has one jail for all workers",
    ),
    (
        "SlurmCluster",
        "cpu",
        {
            "spec.slurmNodes.login.sssd": SSSD,
            "spec.slurmNodes.login.sssdConfSecretRefName": "kube-system/token",
            "spec.slurmNodes.controller.sssd": SSSD,
            "spec.slurmNodes.controller.sssdConfSecretRefName": "../../secrets/token",
        },
        "SecretNotFound",
        "spec.slurmNodes.login.sssdConfSecretRefName: Secret kube-system/token of namespace",
    ),
    (
        "SlurmCluster",
        "cpu",
        {"spec.secrets": {"sshdKeysName": "../cpu-munge"}},
        "SecretNotFound",
        "spec.secrets.sshdKeysName: Secret ../cpu-munge does not exist",
    ),
]
"""Kind and name of the object, its fields, and reason and words of its condition."""


async def test_hostile_objects_are_reported_at_their_field_and_other_namespaces_go_on(
    api_node: Node,
) -> None:
    """Each twice: the same object again changes nothing."""
    async with places(api_node, len(HOSTILE) + 1) as (running, (good, *found)):
        whole = example()
        for place, (kind, _, fields, _, _) in zip(found, HOSTILE, strict=True):
            await place.create(*changed(whole, kind, fields))
        await good.create(*whole)
        await until(lambda: has_job(good))
        for place, (kind, name, _, reason, words) in zip(found, HOSTILE, strict=True):
            assert await place.until(kind, name, words) == reason, (kind, words)
        await good.lab.calm(2)
        writes = len(running.writes)
        for place, (kind, name, fields, _, words) in zip(found, HOSTILE, strict=True):
            one = next(o for o in changed(whole, kind, fields) if o["kind"] == kind)
            await place.again(one)
            assert words in (await place.ready(kind, name))[1]
        await good.lab.calm(2)
        assert running.writes[writes:] == []


async def has_job(place: Place) -> bool:
    return bool(await place.names(JOBS))


async def test_what_comes_late_is_waited_for_by_name(api_node: Node) -> None:
    """PVCs after the SlurmCluster, a Secret after that, in the wrong order of everything."""
    async with places(api_node, 1) as (_, (place,)):
        *pvcs, cluster, node_set = changed(
            example(), "SlurmCluster", {"spec.secrets": {"sshdKeysName": "mine"}}
        )
        await place.create(node_set)
        await place.until("NodeSet", "small", "spec.clusterName: there is no SlurmCluster cpu")
        await place.create(cluster)
        words = "spec.secrets.sshdKeysName: Secret mine does not exist. Create it with"
        assert await place.until("SlurmCluster", "cpu", words) == "SecretNotFound"
        secret: Json = {"kind": "Secret", "metadata": {"name": "mine"}, "data": {"key": "eA=="}}
        await place.create(secret)
        field = "spec.volumeSources[0].persistentVolumeClaim.claimName: PVC jail does not exist"
        assert await place.until("SlurmCluster", "cpu", field) == "PvcNotFound"
        for one in pvcs:
            await place.create(one)

        async def is_found() -> bool:
            return (await place.ready("SlurmCluster", "cpu"))[0] != "PvcNotFound"

        await until(is_found)
        assert await place.names(JOBS) == {"cpu-populate-jail"}


async def test_objects_of_others_are_left_and_named(api_node: Node) -> None:
    """A Service that another object controls, and keys that another cluster might have."""
    async with places(api_node, 1) as (running, (place,)):
        owner: Json = {"kind": "ConfigMap", "metadata": {"name": "theirs"}, "data": {}}
        await place.create(owner)
        uid = (await place.read("ConfigMap", "theirs"))["metadata"]["uid"]
        owners = [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "theirs", "uid": uid}
            | {"controller": True}
        ]
        meta: Json = {"name": "cpu-login-svc", "ownerReferences": owners}
        service: Json = {"selector": {"app": "theirs"}, "ports": [{"port": 22}]}
        await place.create({"kind": "Service", "metadata": meta, "spec": service})
        before = await place.read("Service", "cpu-login-svc")
        await place.create(*example())
        words = "cpu-login-svc exists and is controlled by ConfigMap theirs"
        assert await place.until("SlurmCluster", "cpu", words) == "Refused"
        assert await place.read("Service", "cpu-login-svc") == before
        assert not [one for one in running.writes if one.endswith("/services/cpu-login-svc")]


async def test_a_volume_of_the_host_is_what_the_namespace_permits(api_node: Node) -> None:
    """Pods are of the user's namespace, so its pod security decides, and its words are shown."""
    async with places(api_node, 1) as (_, (place,)):
        await place.lab.client.patch(NAMESPACES, "", place.space, BASELINE)
        whole = example("slurmcluster-without-jail")
        mounts = {"spec.slurmd.volumes.customVolumeMounts": [HOST]}
        await place.create(*changed(whole, "NodeSet", mounts))
        words = "The namespace enforces pod security `baseline`, which rejects a worker"
        assert await place.until("NodeSet", "plain", words) == "PodSecurityRefused"
        _, message = await place.ready("NodeSet", "plain")
        assert '"host"' in message.partition("hostPath volumes")[2]
        assert not {one for one in await place.names(PODS) if one.startswith("plain-")}
