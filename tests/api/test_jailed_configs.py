"""sconfigcontroller before a real API server, with the rights of its documented Role."""

from __future__ import annotations

import asyncio
import base64
import os
import signal
import socket
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import ClientError, ClientSession

from api.kube_support import Kubectl, client_of, eventually
from penstock.api import crd
from penstock.api.kubernetes.kinds import CONFIG_MAPS
from penstock.api.nebius.jailed_config import INFO, JAILED_CONFIGS, JailedConfig
from penstock.api.nebius.names import JAIL_MARKER
from penstock.controllers.jailed_config import process
from penstock.controllers.jailed_config.arguments import Arguments, parse
from penstock.controllers.jailed_config.process import ConfigController
from penstock.kube import Client, HttpTransport, from_kubeconfig
from penstock.local.node import Node
from penstock.simulation.slurm.slurmctld import SimulatedSlurmctld
from penstock.simulation.slurm.slurmrestd import SimulatedSlurmrestd
from support.operator_kit import Impersonating, Recording

pytestmark = pytest.mark.api

KEY = b"k" * 32
USER = "sconfigcontroller"


@dataclass
class Site:
    """A namespace with a jail, a slurmrestd and a running process."""

    client: Client
    namespace: str
    jail: Path
    slurm: SimulatedSlurmctld
    transport: Recording

    async def until(self, is_so: Callable[[], Any]) -> None:
        async with asyncio.timeout(30):
            await eventually(lambda: bool(is_so()))

    async def declare(self, name: str, key: str, path: str, *actions: str) -> None:
        """Create a JailedConfig with one file."""
        manifest = {
            "apiVersion": JAILED_CONFIGS.api_version,
            "kind": JAILED_CONFIGS.kind,
            "metadata": {
                "name": name,
                "namespace": self.namespace,
                "labels": {"app.kubernetes.io/instance": self.namespace},
            },
            "spec": {
                "configMap": {"name": name},
                "items": [{"key": key, "path": path}],
                "updateActions": list(actions),
            },
        }
        await self.client.create(JAILED_CONFIGS, manifest)

    def read(self, name: str) -> str | None:
        path = self.jail / "etc/slurm" / name
        return path.read_text() if path.exists() else None

    async def jailed(self, name: str) -> JailedConfig:
        return await self.client.get(JAILED_CONFIGS, self.namespace, name)

    async def has(self, name: str, **reasons: str) -> None:
        """Wait until the conditions have these reasons."""
        async with asyncio.timeout(30):
            while True:
                found = (await self.jailed(name)).status.conditions
                if {one.type: one.reason for one in found} == reasons:
                    return
                await asyncio.sleep(0.05)


def role(cluster: str) -> list[dict[str, Any]]:
    """The rules in the docstring of the process."""
    lines = (process.__doc__ or "").split("    rules:\n")[1].split("\n\n")[0]
    return yaml.safe_load("rules:\n" + lines.replace("<cluster>", cluster))["rules"]


def arguments(namespace: str, jail: Path, url: str, *more: str) -> Arguments:
    words = [f"--cluster-namespace={namespace}", f"--cluster-name={namespace}", "--leader-elect"]
    words += [f"--jail-path={jail}", f"--slurmapiserver={url}", *more]
    return parse(words, {"POD_NAME": "one"})


def prepare(node: Node, namespace: str, jail: Path) -> None:
    kubectl = Kubectl(node)
    definition = crd.definition(INFO)
    kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", manifest=definition)
    kubectl(
        "wait",
        "--for=condition=Established",
        "--timeout=30s",
        "crd/jailedconfigs.slurm.nebius.ai",
    )
    kubectl("create", "namespace", namespace)
    rbac = "rbac.authorization.k8s.io"
    meta = {"name": USER, "namespace": namespace}
    objects: list[dict[str, Any]] = [
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "Role",
            "metadata": meta,
            "rules": role(namespace),
        },
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": meta,
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": USER},
            "subjects": [{"apiGroup": rbac, "kind": "User", "name": USER}],
        },
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": f"{namespace}-rest-jwt-key", "namespace": namespace},
            "data": {"rest_jwt.key": base64.b64encode(KEY).decode()},
        },
    ]
    whole = {"apiVersion": "v1", "kind": "List", "items": objects}
    kubectl("apply", "-f", "-", manifest=whole)
    marker = jail / JAIL_MARKER[1:]
    marker.parent.mkdir(parents=True)
    marker.touch()


@asynccontextmanager
async def site_of(node: Node, jail: Path) -> AsyncGenerator[Site]:
    namespace = f"jail-{os.urandom(3).hex()}"
    prepare(node, namespace, jail)
    slurm = SimulatedSlurmctld()
    config = from_kubeconfig([node.kubeconfig_path])
    limited = replace(config, credentials=Impersonating(config.credentials, USER))
    transport = Recording(HttpTransport(limited))
    async with SimulatedSlurmrestd(slurm, key=KEY) as rest, client_of(node) as client:
        loop = asyncio.get_running_loop()
        slurm.rereads = lambda: loop.call_later(0.1, restart, slurm) and None
        controller = ConfigController(transport, arguments(namespace, jail, rest.url))
        task = asyncio.ensure_future(controller.manager.run())
        try:
            yield Site(client, namespace, jail, slurm, transport)
        finally:
            controller.manager.stop()
            await task
            controller.jail.close()
            await transport.close()
            Kubectl(node)("delete", "namespace", namespace, "--wait=false")


def restart(slurm: SimulatedSlurmctld) -> None:
    for one in slurm.nodes.values():
        one.started = int(slurm.clock())
    slurm.touch()


def config_map(site: Site, name: str, **data: str) -> dict[str, Any]:
    texts = {key.replace("__", "."): text for key, text in data.items()}
    return {"metadata": {"name": name, "namespace": site.namespace}, "data": texts}


async def test_a_file_appears_slurmctld_is_reconfigured_and_a_settled_object_is_silent(
    api_node: Node, tmp_path: Path
) -> None:
    async with site_of(api_node, tmp_path) as site:
        site.slurm.register("worker-0")
        configs = f"{site.namespace}-slurm-configs"
        await site.client.create(CONFIG_MAPS, config_map(site, configs, slurm__conf="1"))
        await site.client.create(CONFIG_MAPS, config_map(site, "topology", topology__conf="one"))
        await site.declare("topology", "topology.conf", "/etc/slurm/topology.conf", "Reconfigure")
        await site.has("topology", FilesWritten="Success", UpdateActionsCompleted="Success")
        assert site.slurm.reconfigured == 1
        assert (site.read("slurm.conf"), site.read("topology.conf")) == ("1", "one")
        version = (await site.jailed("topology")).metadata.resource_version
        writes = list(site.transport.writes)
        patch = {"metadata": {"annotations": {"a": "b"}}}
        await site.client.patch(CONFIG_MAPS, site.namespace, "topology", patch)
        await site.client.patch(CONFIG_MAPS, site.namespace, configs, {"data": {"slurm.conf": "2"}})
        await site.until(lambda: site.read("slurm.conf") == "2")
        await asyncio.sleep(0.3)
        assert site.transport.writes == writes
        assert (await site.jailed("topology")).metadata.resource_version == version
        assert site.slurm.reconfigured == 1


async def test_a_rejected_path_is_a_condition_and_an_event(api_node: Node, tmp_path: Path) -> None:
    async with site_of(api_node, tmp_path) as site:
        (tmp_path / "planted").symlink_to("/")
        await site.client.create(CONFIG_MAPS, config_map(site, "one", x="1"))
        await site.declare("one", "x", "/planted/tmp/x")
        await site.has("one", FilesWritten="Failed", UpdateActionsCompleted="NotWritten")
        kubectl = Kubectl(api_node)
        words = "/planted: it is a symbolic link, which is never followed; remove it"
        path = "-o=jsonpath={.items[*].note}"
        events = ("get", "events.events.k8s.io", "-n", site.namespace, path)
        await site.until(lambda: words in kubectl(*events))


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


async def test_the_program_starts_serves_probes_and_ends_at_sigterm(
    api_node: Node, tmp_path: Path
) -> None:
    namespace, jail = f"jail-{os.urandom(3).hex()}", tmp_path / "jail"
    prepare(api_node, namespace, jail)
    health, metrics = free_port(), free_port()
    program = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "penstock.controllers.jailed_config",
        f"--cluster-namespace={namespace}",
        f"--cluster-name={namespace}",
        f"--jail-path={jail}",
        "--leader-elect",
        f"--health-probe-bind-address=127.0.0.1:{health}",
        f"--metrics-bind-address=127.0.0.1:{metrics}",
        env={**os.environ, "KUBECONFIG": str(api_node.kubeconfig_path)},
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(60), ClientSession() as session:
            while await status(session, f"http://127.0.0.1:{health}/readyz") != 200:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
            assert await status(session, f"http://127.0.0.1:{health}/healthz") == 200
            async with session.get(f"http://127.0.0.1:{metrics}/metrics") as answer:
                assert "penstock_jail_files_replaced_total" in await answer.text()
            async with client_of(api_node) as client:
                meta = {"name": f"{namespace}-slurm-configs", "namespace": namespace}
                data = {"slurm.conf": "1"}
                await client.create(CONFIG_MAPS, {"metadata": meta, "data": data})
            await eventually((jail / "etc/slurm/.penstock-files").exists)
            program.send_signal(signal.SIGTERM)
            assert await program.wait() == 0
    finally:
        if program.returncode is None:
            program.kill()
            await program.wait()
        Kubectl(api_node)("delete", "namespace", namespace, "--wait=false")


async def status(session: ClientSession, url: str) -> int:
    try:
        async with session.get(url) as answer:
            return answer.status
    except ClientError:
        return 0
