"""Server-side apply against a real API server: silent when nothing differs, exact when it does."""

from __future__ import annotations

import copy
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from api.kube_support import Node, namespace_of
from penstock.api.kubernetes.kinds import CONFIG_MAPS, DEPLOYMENTS, SECRETS, SERVICES, STATEFUL_SETS
from penstock.api.kubernetes.meta import Json
from penstock.api.kubernetes.resource import Resource
from penstock.kube import Applier, Client, NotOursError

pytestmark = pytest.mark.api

POD: Json = {
    "metadata": {"labels": {"app": "x"}},
    "spec": {
        "initContainers": [
            {"name": "logfile", "image": "alpine", "restartPolicy": "Always", "args": ["a", "b"]}
        ],
        "containers": [
            {
                "name": "slurmctld",
                "image": "img:1",
                "args": ["-D"],
                "env": [
                    {"name": "A", "value": "1"},
                    {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
                ],
                "ports": [{"name": "slurmctld", "containerPort": 6817}],
                "resources": {"requests": {"cpu": "0.5", "memory": "1024Mi"}, "limits": {"cpu": 1}},
                "readinessProbe": {"tcpSocket": {"port": "slurmctld"}},
                "securityContext": {"capabilities": {"drop": ["ALL"]}},
                "volumeMounts": [
                    {"name": "etc", "mountPath": "/etc/slurm"},
                    {"name": "scratch", "mountPath": "/scratch"},
                ],
            }
        ],
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"key": "t", "operator": "Exists", "effect": "NoSchedule"}],
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {"app": "x"}},
            }
        ],
        "volumes": [
            {
                "name": "etc",
                "projected": {
                    "sources": [
                        {"configMap": {"name": "conf"}},
                        {"secret": {"name": "key", "items": [{"key": "k", "path": "p"}]}},
                    ]
                },
            },
            {"name": "scratch", "emptyDir": {"sizeLimit": "0.5Gi"}},
        ],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}
                    ]
                }
            }
        },
    },
}


def config_map() -> Json:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "conf", "labels": {"app": "x"}},
        "data": {"slurm.conf": "ClusterName=x\n", "gres.conf": ""},
    }


def secret() -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "key"},
        "data": {"slurm.key": "aGVsbG8="},
    }


def service() -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "svc", "annotations": {"note": "1"}},
        "spec": {
            "type": "LoadBalancer",
            "selector": {"app": "x"},
            "ports": [
                {"name": "slurmctld", "port": 6817, "targetPort": "slurmctld"},
                {"name": "udp", "port": 6817, "protocol": "UDP"},
            ],
        },
    }


def stateful_set() -> Json:
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "sts"},
        "spec": {
            "replicas": 1,
            "serviceName": "svc",
            "selector": {"matchLabels": {"app": "x"}},
            "template": copy.deepcopy(POD),
            "volumeClaimTemplates": [
                {
                    "metadata": {"name": "statesave"},
                    "spec": {
                        "accessModes": ["ReadWriteOnce"],
                        "resources": {"requests": {"storage": "4096Mi"}},
                    },
                }
            ],
        },
    }


def deployment() -> Json:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "dep"},
        "spec": {
            "selector": {"matchLabels": {"app": "x"}},
            "strategy": {"type": "RollingUpdate"},
            "template": copy.deepcopy(POD),
        },
    }


KINDS: list[tuple[Resource[Any], Json]] = [
    (CONFIG_MAPS, config_map()),
    (SECRETS, secret()),
    (SERVICES, service()),
    (STATEFUL_SETS, stateful_set()),
    (DEPLOYMENTS, deployment()),
]
IDS = [manifest["kind"] for _, manifest in KINDS]


class World:
    def __init__(self, client: Client, namespace: str) -> None:
        self.client = client
        self.applier = Applier(client)
        self.namespace = namespace

    def placed(self, manifest: Json) -> Json:
        placed = copy.deepcopy(manifest)
        placed["metadata"]["namespace"] = self.namespace
        return placed

    async def live(self, resource: Resource[Any], manifest: Json) -> Json:
        name = manifest["metadata"]["name"]
        return msgspec.json.decode(await self.client.get_raw(resource, self.namespace, name))


@asynccontextmanager
async def world(node: Node) -> AsyncGenerator[World]:
    async with namespace_of(node) as (client, namespace):
        yield World(client, namespace)


@pytest.mark.parametrize(("resource", "manifest"), KINDS, ids=IDS)
async def test_an_object_as_asked_is_not_written_again(
    api_node: Node, resource: Resource[Any], manifest: Json
) -> None:
    """D25."""
    async with world(api_node) as w:
        asked = w.placed(manifest)
        made = await w.applier.ensure(resource, asked, None)
        assert made.done == "created"
        live = await w.live(resource, asked)
        again = await w.applier.ensure(resource, asked, live)
        assert (again.done, again.changed) == ("unchanged", ())
        restarted = await Applier(w.client).ensure(resource, asked, live)
        after = await w.live(resource, asked)
        assert after["metadata"]["resourceVersion"] == live["metadata"]["resourceVersion"]
        assert restarted.done == "unchanged", restarted.changed


@pytest.mark.parametrize("by", ["merge", "apply"])
async def test_a_hand_edit_is_undone(api_node: Node, by: str) -> None:
    async with world(api_node) as w:
        asked = w.placed(stateful_set())
        await w.applier.ensure(STATEFUL_SETS, asked, None)
        hand = Client(w.client.transport, field_manager="kubectl-edit")
        if by == "merge":
            patch: Json = {"spec": {"template": {"spec": {"nodeSelector": {"extra": "yes"}}}}}
            await hand.patch(STATEFUL_SETS, w.namespace, "sts", patch)
        else:
            edit = w.placed(stateful_set())
            edit["spec"]["template"]["spec"]["nodeSelector"] = {"other": "yes"}
            await hand.apply(STATEFUL_SETS, edit)
        live = await w.live(STATEFUL_SETS, asked)
        done = await w.applier.ensure(STATEFUL_SETS, asked, live)
        assert done.done == "updated"
        assert "spec.template.spec.nodeSelector" in done.changed
        found = done.live["spec"]["template"]["spec"]["nodeSelector"]
        assert found == {"kubernetes.io/os": "linux"}
        live = await w.live(STATEFUL_SETS, asked)
        assert (await w.applier.ensure(STATEFUL_SETS, asked, live)).done == "unchanged"


async def test_what_others_add_stays(api_node: Node) -> None:
    async with world(api_node) as w:
        asked = w.placed(config_map())
        await w.applier.ensure(CONFIG_MAPS, asked, None)
        hand = Client(w.client.transport, field_manager="somebody")
        patch: Json = {"metadata": {"labels": {"theirs": "1"}}, "data": {"theirs": "1"}}
        await hand.patch(CONFIG_MAPS, w.namespace, "conf", patch)
        live = await w.live(CONFIG_MAPS, asked)
        assert (await w.applier.ensure(CONFIG_MAPS, asked, live)).done == "unchanged"
        asked["data"]["more"] = "1"
        done = await w.applier.ensure(CONFIG_MAPS, asked, live)
        assert done.live["data"]["theirs"] == "1"


@pytest.mark.parametrize("made_by", ["ensure", "create"])
async def test_what_is_asked_for_no_more_goes(api_node: Node, made_by: str) -> None:
    async with world(api_node) as w:
        asked = w.placed(stateful_set())
        if made_by == "ensure":
            await w.applier.ensure(STATEFUL_SETS, asked, None)
        else:
            await w.client.create(STATEFUL_SETS, asked)
        less = copy.deepcopy(asked)
        container = less["spec"]["template"]["spec"]["containers"][0]
        del container["env"][0], container["volumeMounts"][1]
        del less["spec"]["template"]["spec"]["volumes"][1]
        del less["spec"]["template"]["spec"]["tolerations"]
        live = await w.live(STATEFUL_SETS, asked)
        done = await w.applier.ensure(STATEFUL_SETS, less, live)
        assert done.done == "updated"
        spec = done.live["spec"]["template"]["spec"]
        assert [e["name"] for e in spec["containers"][0]["env"]] == ["IP"]
        assert [m["name"] for m in spec["containers"][0]["volumeMounts"]] == ["etc"]
        assert [v["name"] for v in spec["volumes"]] == ["etc"]
        assert "tolerations" not in spec
        live = await w.live(STATEFUL_SETS, asked)
        assert (await w.applier.ensure(STATEFUL_SETS, less, live)).done == "unchanged"


async def test_a_service_made_by_a_plain_create_keeps_its_address(api_node: Node) -> None:
    async with world(api_node) as w:
        asked = w.placed(service())
        await w.client.create(SERVICES, asked)
        live = await w.live(SERVICES, asked)
        del asked["spec"]["ports"][1]
        done = await w.applier.ensure(SERVICES, asked, live)
        assert done.live["spec"]["clusterIP"] == live["spec"]["clusterIP"]
        assert len(done.live["spec"]["ports"]) == 1
        live = await w.live(SERVICES, asked)
        assert (await w.applier.ensure(SERVICES, asked, live)).done == "unchanged"


async def test_fields_of_a_former_manager_are_taken_over(api_node: Node) -> None:
    async with world(api_node) as w:
        former = Client(w.client.transport, field_manager="slurm-operator")
        asked = w.placed(config_map())
        theirs = copy.deepcopy(asked)
        theirs["data"]["old.conf"] = "x"
        await former.create(CONFIG_MAPS, theirs)
        live = await w.live(CONFIG_MAPS, asked)
        applier = Applier(w.client, takes_over=["slurm-operator"])
        done = await applier.ensure(CONFIG_MAPS, asked, live)
        assert sorted(done.live["data"]) == ["gres.conf", "slurm.conf"]


async def test_an_object_that_the_cache_missed_is_not_overwritten_unseen(api_node: Node) -> None:
    async with world(api_node) as w:
        owner = await w.client.create(CONFIG_MAPS, w.placed(config_map()))
        user = Client(w.client.transport, field_manager="kubectl")
        await user.create(SECRETS, w.placed(secret()))
        asked = w.placed(secret())
        asked["metadata"]["ownerReferences"] = [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "name": "conf",
                "uid": owner.metadata.uid,
                "controller": True,
            }
        ]
        with pytest.raises(NotOursError, match="controlled by nobody"):
            await w.applier.ensure(SECRETS, asked, None)
        asked["metadata"]["name"] = "ours"
        await w.applier.ensure(SECRETS, asked, None)
        assert (await w.applier.ensure(SECRETS, asked, None)).done == "unchanged"


async def test_a_value_the_server_writes_differently_is_written_once(api_node: Node) -> None:
    async with world(api_node) as w:
        asked = w.placed(secret())
        asked["stringData"] = {"other": "text"}
        await w.applier.ensure(SECRETS, asked, None)
        live = await w.live(SECRETS, asked)
        assert (await w.applier.ensure(SECRETS, asked, live)).done == "unchanged"


async def test_a_dry_comparison_sends_no_request(api_node: Node) -> None:
    async with world(api_node) as w:
        asked = w.placed(deployment())
        await w.applier.ensure(DEPLOYMENTS, asked, None)
        live = await w.live(DEPLOYMENTS, asked)
        registry = w.client.metrics.registry
        before = sum(s.value for m in registry.collect() for s in m.samples if _is_request(s.name))
        await w.applier.ensure(DEPLOYMENTS, asked, live)
        after = sum(s.value for m in registry.collect() for s in m.samples if _is_request(s.name))
        assert after == before


def _is_request(name: str) -> bool:
    return name == "penstock_api_requests_total"
