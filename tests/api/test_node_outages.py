"""NodeConfigurators and reboots of Kubernetes nodes before a real API server."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.api.kubernetes.kinds import DAEMON_SETS, NODES, PODS
from penstock.api.kubernetes.kinds import Node as KubernetesNode
from penstock.api.kubernetes.meta import Json
from penstock.api.nebius.labels import configurator_selector
from penstock.api.nebius.node_configurator import NODE_CONFIGURATORS, NodeConfigurator
from penstock.controllers.rebooter.arguments import Arguments
from penstock.controllers.rebooter.process import Rebooter
from penstock.kube import Client, NotFoundError
from penstock.kube.client.client import decode
from penstock.local.recipes import ROOT
from penstock.model import node_mark
from support.operator_kit import IDENTITY, INSTALLED, RBAC, Lab, Node, lab

pytestmark = pytest.mark.api

NAME = "slurm-rebooter"
IMAGE = {"repository": "r.example/rebooter", "tag": "5.0.0"}


async def until(is_so: Callable[[], Awaitable[Any]]) -> None:
    async with asyncio.timeout(60):
        while True:
            if await is_so():
                return
            await asyncio.sleep(0.1)


def configurator(**rebooter: object) -> Json:
    return {
        "apiVersion": NODE_CONFIGURATORS.api_version,
        "kind": "NodeConfigurator",
        "metadata": {"name": NAME},
        "spec": {"rebooter": {"enabled": True, **rebooter}},
    }


async def declare(lab_: Lab, one: Json) -> NodeConfigurator:
    made = {**one, "metadata": {**one["metadata"], "namespace": lab_.namespace}}
    return await lab_.user.apply(NODE_CONFIGURATORS, made)


async def daemon_set(lab_: Lab) -> Json | None:
    try:
        body = await lab_.client.get_raw(DAEMON_SETS, lab_.namespace, f"{NAME}-ds")
    except NotFoundError:
        return None
    return decode(body, dict[str, Any])


async def conditions(lab_: Lab) -> dict[str, str]:
    found = await lab_.client.get(NODE_CONFIGURATORS, lab_.namespace, NAME)
    return {one.type: f"{one.status}/{one.reason}" for one in found.status.conditions}


async def test_the_daemon_set_comes_and_goes_and_is_written_once(api_node: Node) -> None:
    """S092."""
    async with lab(api_node) as lab_, lab_.operator() as running:
        await declare(lab_, configurator(image=IMAGE, resources={"limits": {"memory": "1Gi"}}))
        await until(lambda: daemon_set(lab_))

        async def reported() -> bool:
            return (await conditions(lab_)).get("Served", "").startswith("True")

        await until(reported)
        # The API server's defaults are no difference: one apply creates it, one changes it.
        await declare(lab_, configurator(image=IMAGE, resources={"limits": {"memory": "2Gi"}}))

        async def changed() -> bool:
            return "2Gi" in str(await daemon_set(lab_))

        await until(changed)
        await lab_.calm()
        applied = [one for one in running.writes if "/daemonsets/" in one]
        assert len(applied) == 2
        await declare(lab_, configurator(enabled=False))

        async def gone() -> bool:
            return await daemon_set(lab_) is None

        await until(gone)


async def test_the_pods_of_soperators_daemon_set_stay_until_the_spec_changes(
    api_node: Node,
) -> None:
    async with lab(api_node) as lab_:
        obj = await declare(lab_, configurator(image=IMAGE))
        selector = configurator_selector(NAME)
        container = {"name": "rebooter", "image": "r.example/rebooter:5.0.0", "args": ["-old"]}
        owner = {
            "apiVersion": NODE_CONFIGURATORS.api_version,
            "kind": "NodeConfigurator",
            "name": NAME,
            "uid": obj.metadata.uid,
            "controller": True,
        }
        of_soperator: Json = {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {
                "name": f"{NAME}-ds",
                "namespace": lab_.namespace,
                "labels": selector,
                "ownerReferences": [owner],
            },
            "spec": {
                "selector": {"matchLabels": selector},
                "template": {"metadata": {"labels": selector}, "spec": {"containers": [container]}},
            },
        }
        soperator = Client(lab_.client.transport, field_manager="manager")
        await soperator.create(DAEMON_SETS, of_soperator)
        before = await daemon_set(lab_)
        assert before is not None
        async with lab_.operator():

            async def adopted() -> bool:
                return (await conditions(lab_)).get("PodsAdopted") == "True/PodsAsTheyWere"

            await until(adopted)
            found = await daemon_set(lab_)
            assert found is not None
            assert found["spec"]["template"] == before["spec"]["template"]
            await declare(lab_, configurator(image=IMAGE, logLevel="debug"))

            async def replaced() -> bool:
                return "-log-level=debug" in str(await daemon_set(lab_))

            await until(replaced)


class OneNode:
    """A Kubernetes node without a kubelet."""

    def __init__(self, lab_: Lab) -> None:
        self._lab = lab_
        self.name = f"machine-{secrets.token_hex(3)}"

    @asynccontextmanager
    async def there(self) -> AsyncGenerator[None]:
        client = self._lab.client
        machine = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.name}}
        await client.create(NODES, machine)
        await self.report({"nodeInfo": _info("boot-1"), "conditions": [_condition("Ready")]})
        pod: Json = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": "rebooter",
                "namespace": self._lab.namespace,
                "labels": configurator_selector(NAME),
            },
            "spec": {
                "nodeName": self.name,
                "containers": [{"name": "rebooter", "image": "x"}],
            },
        }
        await client.create(PODS, pod)
        status = {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [
                {
                    "name": "rebooter",
                    "ready": True,
                    "image": "x",
                    "imageID": "",
                    "restartCount": 0,
                }
            ],
        }
        space = self._lab.namespace
        await client.patch(PODS, space, "rebooter", {"status": status}, subresource="status")
        try:
            yield
        finally:
            await client.delete(NODES, "", self.name)

    async def report(self, status: Json) -> None:
        """What a kubelet or a checker writes."""
        await self._lab.user.patch(
            NODES, "", self.name, {"status": status}, kind="strategic", subresource="status"
        )

    async def ask(self, state: str = "True") -> None:
        await self.report({"conditions": [_condition("SlurmNodeReboot", state)]})

    async def get(self) -> KubernetesNode:
        return await self._lab.client.get(NODES, "", self.name)

    async def mark(self) -> node_mark.NodeMark | None:
        return node_mark.read((await self.get()).metadata.annotations)


def _condition(type_: str, status: str = "True") -> Json:
    return {
        "type": type_,
        "status": status,
        "reason": "Asked",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "lastHeartbeatTime": "2026-01-01T00:00:00Z",
    }


def _info(boot_id: str) -> Json:
    names = (
        "machineID",
        "systemUUID",
        "kernelVersion",
        "osImage",
        "containerRuntimeVersion",
        "kubeletVersion",
        "kubeProxyVersion",
        "operatingSystem",
        "architecture",
    )
    return {**dict.fromkeys(names, "x"), "bootID": boot_id}


@asynccontextmanager
async def allowed(lab_: Lab) -> AsyncGenerator[None]:
    """The operator has the rights that the chart gives it on request."""
    rights = yaml.safe_load((ROOT / "charts/slurm-operator/files/rights.yaml").read_text())
    name = f"outages-{lab_.namespace}"
    meta: Json = {"apiVersion": f"{RBAC}/v1", "metadata": {"name": name}}
    role: Json = {**meta, "kind": "ClusterRole", "rules": rights["outages"]}
    binding: Json = {
        **meta,
        "kind": "ClusterRoleBinding",
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": IDENTITY}],
    }
    for one in (role, binding):
        await lab_.client.apply(INSTALLED[one["kind"]], one)
    try:
        yield
    finally:
        for one in (role, binding):
            await lab_.client.delete(INSTALLED[one["kind"]], "", name)


async def test_a_node_is_marked_rebooted_once_answered_and_released(
    api_node: Node, tmp_path: Path
) -> None:
    """S115: the API server takes the writes of operator and rebooter, with the chart's rights."""
    calls, boot_id = tmp_path / "calls", tmp_path / "boot_id"
    boot_id.write_text("boot-1")
    async with lab(api_node) as lab_, lab_.operator(), allowed(lab_):
        machine = OneNode(lab_)
        async with machine.there():
            await machine.ask()

            async def may() -> bool:
                mark = await machine.mark()
                return mark is not None and mark.step is node_mark.Step.REBOOT

            await until(may)
            assert (await machine.get()).spec.unschedulable
            stub = ("sh", "-c", f"echo called >> {calls}")
            arguments = Arguments(machine.name, stub, boot_id, "/", "info")
            rebooter = asyncio.create_task(Rebooter(lab_.client, arguments).run())
            try:

                async def called() -> bool:
                    return await asyncio.to_thread(calls.exists)

                await until(called)
                found = await machine.get()
                assert found.metadata.annotations[node_mark.REBOOT_STARTED] == "boot-1"
                condition = found.condition("SlurmNodeReboot")
                assert condition is not None
                assert condition.reason == "NodeRebooting"
                assert condition.last_transition_time == "2026-01-01T00:00:00Z"
                await machine.report({"nodeInfo": _info("boot-2")})

                async def released() -> bool:
                    return await machine.mark() is None

                await until(released)
                found = await machine.get()
                assert not found.spec.unschedulable
                condition = found.condition("SlurmNodeReboot")
                assert condition is not None
                assert (condition.status, condition.reason) == ("False", "NodeRebooted")
                # Somebody writes the old condition again.
                await machine.ask()

                async def answered() -> bool:
                    found = (await machine.get()).condition("SlurmNodeReboot")
                    return found is not None and found.status == "False"

                await until(answered)
                assert await machine.mark() is None
                assert calls.read_text() == "called\n"
            finally:
                rebooter.cancel()
                await asyncio.wait([rebooter])


async def test_without_the_right_to_cordon_a_node_stays_and_an_event_names_the_value(
    api_node: Node,
) -> None:
    async with lab(api_node) as lab_, lab_.operator():
        machine = OneNode(lab_)
        async with machine.there():
            await machine.ask()

            async def emitted() -> bool:
                path = "/apis/events.k8s.io/v1/namespaces/default/events"
                text = (await lab_.get_raw(path)).decode()
                return machine.name in text and "manager.nodeOutages" in text

            await until(emitted)
            assert not (await machine.get()).spec.unschedulable
