"""One operator for both APIs, or one for each, before a real API server."""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from api.kube_support import Kubectl, namespace_of
from api.test_webhooks import CONTROLLER, Site, free_port, nodeset, site
from penstock.api.kubernetes.kinds import CONFIG_MAPS, SECRETS
from penstock.api.kubernetes.meta import Json
from penstock.api.kubernetes.resource import Resource
from penstock.api.nebius.slurmcluster import SLURM_CLUSTERS
from penstock.api.slinky.controller import CONTROLLERS
from penstock.api.slinky.nodeset import NODESETS
from penstock.controllers.registry import SERVED_APIS
from penstock.controllers.runtime.apis import NEBIUS, SLINKY
from penstock.kube import Client, NotFoundError
from penstock.kube.client.transport import Request
from penstock.kube.runtime.leader_election import LEASES
from penstock.local.components import Size
from penstock.local.linux import why_not
from penstock.local.node import Node
from support import nebius

pytestmark = pytest.mark.api

CRDS = Path(__file__).parents[2] / "deploy" / "crds"
UNKNOWN = {"spec.slurmNodes.login.k8sNodeFilterName": "nowhere"}
WRONG_NODESET = nodeset("probe", slurmd={"env": "A=b"})
LEASE = {one.group: one.lease for one in SERVED_APIS}


@pytest.fixture(scope="module")
def own_node() -> Generator[Node]:
    """An API server whose definitions may be changed."""
    if reason := why_not():
        pytest.skip(reason)
    with Node(f"test-apis-{secrets.token_hex(3)}") as node:
        yield node.up(Size.API)


def cluster(changes: Json | None = None, name: str = "ml") -> Json:
    made = nebius.manifest("slurmcluster-1.23-0", changes)
    return {**made, "metadata": {"name": name}}


async def answer(
    client: Client, verb: str, resource: Resource[Any], space: str, obj: Json | str, dry: bool
) -> str:
    """The words with which the API server rejects a write; empty when it accepts it."""
    params = {"dryRun": "All"} if dry else {}
    if isinstance(obj, str):
        path, body = resource.path(space, obj), b""
    else:
        path = resource.path(space)
        meta = {**obj["metadata"], "namespace": space}
        body = msgspec.json.encode({**obj, "metadata": meta})
    got = await client.transport.send(Request(verb, path, params, body))
    # A server without the kind answers in plain text.
    return "" if got.status < 300 else got.body.decode()


async def until(is_so: Callable[[], Awaitable[bool]]) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(90):
        while True:
            if await is_so():
                return
            await asyncio.sleep(0.1)


async def rejected(found: Site, resource: Resource[Any], obj: Json, words: str) -> str:
    """Wait until a create is rejected with these words."""
    said = ""

    async def is_so() -> bool:
        nonlocal said
        said = await answer(found.lab.client, "POST", resource, found.lab.namespace, obj, True)
        return words in said

    await until(is_so)
    return said


async def test_a_slurmcluster_with_an_unknown_filter_is_rejected_with_the_known_ones(
    api_node: Node,
) -> None:
    """S118: with both definitions and the configurations of deploy/operator.yaml."""
    async with site(api_node) as found, found.operator():
        said = await rejected(found, SLURM_CLUSTERS, cluster(UNKNOWN), "validate.penstock.dev")
        path = "spec.slurmNodes.login.k8sNodeFilterName"
        assert f"{path}: 'nowhere' is no entry of spec.k8sNodeFilters; known: cpu" in said
        space = found.lab.namespace
        assert not await answer(found.lab.client, "POST", SLURM_CLUSTERS, space, cluster(), True)


async def test_a_protected_secret_stays_while_its_cluster_exists(api_node: Node) -> None:
    async with site(api_node) as found, found.operator():
        client, space = found.lab.client, found.lab.namespace
        keys: Json = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": "keys",
                "labels": {"slurm.nebius.ai/webhook": "true"},
                "annotations": {"slurm.nebius.ai/cluster": "ml"},
            },
            "data": {"key": "eA=="},
        }
        free: Json = {**keys, "metadata": {"name": "free"}}
        for obj in (keys, free):
            assert not await answer(client, "POST", SECRETS, space, obj, False)
        assert not await answer(client, "POST", SLURM_CLUSTERS, space, cluster(), False)

        async def kept() -> bool:
            said = await answer(client, "DELETE", SECRETS, space, "keys", True)
            return "delete that first" in said

        async def goes() -> bool:
            return not await answer(client, "DELETE", SECRETS, space, "keys", False)

        await until(kept)
        said = await answer(client, "DELETE", SECRETS, space, "keys", False)
        assert "secrets.penstock.dev" in said
        assert not await answer(client, "DELETE", SECRETS, space, "free", False)
        assert not await answer(client, "DELETE", SLURM_CLUSTERS, space, "ml", False)
        await until(goes)


PROBES: dict[str, tuple[Resource[Any], Json, str]] = {
    SLINKY: (NODESETS, WRONG_NODESET, "spec.slurmd.env"),
    NEBIUS: (SLURM_CLUSTERS, cluster(UNKNOWN), "known: cpu"),
}
"""Of each group a kind, an object that only a webhook rejects, and with which words."""


@pytest.mark.parametrize(("lacking", "there"), [(NEBIUS, SLINKY), (SLINKY, NEBIUS)])
async def test_an_operator_of_both_apis_serves_the_one_whose_definitions_there_are(
    own_node: Node, lacking: str, there: str
) -> None:
    """The others may come later; the operator that runs serves them then.

    A definition that serves no version answers like none. One that is deleted while its
    storage initializes stays for minutes.
    """
    kubectl = Kubectl(own_node)
    files = sorted(CRDS.glob(f"{lacking}_*.yaml"))
    async with site(own_node) as found:
        for file in files:
            await asyncio.to_thread(kubectl, "apply", *FORCED, "-f", "-", manifest=unserved(file))
        resource = PROBES[lacking][0]
        path = resource.path(found.lab.namespace)
        await until(lambda: lacks(found.lab.client, path))
        async with found.operator(active=False):
            await rejected(found, *PROBES[there])
            for file in files:
                await asyncio.to_thread(kubectl, "apply", *FORCED, "-f", str(file))
            await rejected(found, *PROBES[lacking])


@pytest.mark.parametrize("served", [(SLINKY, NEBIUS), (SLINKY,), (NEBIUS,)])
async def test_the_bare_word_nodeset_reaches_slinky_wherever_that_is_installed(
    own_node: Node, tmp_path: Path, served: tuple[str, ...]
) -> None:
    """S002: kubectl takes the first group that has the name."""
    kubectl, cached = Kubectl(own_node), f"--cache-dir={tmp_path}"
    nodesets = {SLINKY: nodeset("compute"), NEBIUS: nebius.manifest("nodesets-5.0-0")}
    async with namespace_of(own_node) as (client, space):
        for api, (resource, _, _) in PROBES.items():
            for file in sorted(CRDS.glob(f"{api}_*.yaml")):
                given = yaml.safe_load(file.read_text()) if api in served else unserved(file)
                await asyncio.to_thread(kubectl, "apply", *FORCED, "-f", "-", manifest=given)
            await until(partial(is_served, client, resource.path(space), api in served))
        for api in served:
            obj = nodesets[api]
            manifest: Json = {**obj, "metadata": {"name": "one", "namespace": space}}
            await asyncio.to_thread(kubectl, "create", cached, "-f", "-", manifest=manifest)
        names = ("nodeset", "nodesets", *(f"nodesets.{api}" for api in served))
        found = [
            await asyncio.to_thread(kubectl, "get", cached, "-n", space, name, "-o", "name")
            for name in names
        ]
        wanted = (served[0], served[0], *served)
        assert found == [f"nodeset.{api}/one\n" for api in wanted]


async def is_served(client: Client, path: str, wanted: bool) -> bool:
    """Whether the API server knows a path exactly if that is wanted."""
    return await lacks(client, path) is not wanted


FORCED = ("--server-side", "--force-conflicts")


def unserved(file: Path) -> Json:
    """A definition of which no version is served."""
    found: Json = yaml.safe_load(file.read_text())
    for version in found["spec"]["versions"]:
        version["served"] = False
    return found


async def lacks(client: Client, path: str) -> bool:
    """Whether the API server does not know a path."""
    return (await client.transport.send(Request("GET", path))).status == 404


@asynccontextmanager
async def process(
    node: Node, space: str, api: str, name: str = ""
) -> AsyncGenerator[asyncio.subprocess.Process]:
    """An operator of one API group, or of several, in a process of its own."""
    running = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "penstock.controllers", "--leader-elect", f"--namespaces={space}"),
        *("--metrics-port=0", f"--health-port={free_port('127.0.0.1')}"),
        env={
            **os.environ,
            "KUBECONFIG": str(node.kubeconfig_path),
            "POD_NAMESPACE": space,
            "POD_NAME": name or f"operator-of-{api}",
            "PENSTOCK_APIS": api,
        },
        stdout=asyncio.subprocess.DEVNULL,
    )
    try:
        yield running
    finally:
        await end(running)


async def holder(client: Client, space: str, api: str) -> str:
    try:
        lease = await client.get(LEASES, space, LEASE[api])
    except NotFoundError:
        return ""
    return lease.spec.holder_identity or ""


async def led(client: Client, space: str, api: str, name: str = "") -> None:
    """Wait until the operator of a group, or the one of the name, has its Lease."""

    async def is_so() -> bool:
        return await holder(client, space, api) == (name or f"operator-of-{api}")

    await until(is_so)


async def renewed(client: Client, space: str, api: str, times: int) -> None:
    """Wait until the holder renewed its Lease so often: it had time to act."""
    seen: set[str | None] = set()
    async with asyncio.timeout(60):
        while len(seen) <= times:
            seen.add((await client.get(LEASES, space, LEASE[api])).spec.renew_time)
            await asyncio.sleep(0.1)


async def test_two_operators_of_different_apis_run_side_by_side(api_node: Node) -> None:
    """Each leads by its own Lease, and neither acts on kinds of the other."""
    async with namespace_of(api_node) as (client, space):
        kubectl = Kubectl(api_node)
        await asyncio.to_thread(
            kubectl, "apply", "--server-side", "--force-conflicts", "-f", str(CRDS)
        )
        async with process(api_node, space, NEBIUS):
            await led(client, space, NEBIUS)
            assert not await holder(client, space, SLINKY)
            assert not await answer(client, "POST", CONTROLLERS, space, CONTROLLER, False)
            await renewed(client, space, NEBIUS, 2)
            alone = await client.get(CONTROLLERS, space, "slurm")
            assert not alone.status.conditions
            assert not await made(client, space)
            async with process(api_node, space, SLINKY):
                await led(client, space, SLINKY)
                assert await holder(client, space, NEBIUS) == f"operator-of-{NEBIUS}"

                async def acts() -> bool:
                    return bool(await made(client, space))

                await until(acts)
                assert not await answer(client, "POST", SLURM_CLUSTERS, space, cluster(), False)
                await renewed(client, space, SLINKY, 2)
                await until(lambda: has_status(client, space))


@pytest.mark.parametrize(("first", "second"), [(SLINKY, NEBIUS), (NEBIUS, SLINKY)])
async def test_an_operator_of_both_apis_takes_over_each_when_its_operator_goes(
    api_node: Node, first: str, second: str
) -> None:
    """In either order: each group has its Lease, so no group has two operators at a time."""
    async with namespace_of(api_node) as (client, space):
        kubectl = Kubectl(api_node)
        await asyncio.to_thread(kubectl, "apply", *FORCED, "-f", str(CRDS))
        async with (
            process(api_node, space, first) as old,
            process(api_node, space, second) as other,
        ):
            await led(client, space, first)
            await led(client, space, second)
            async with process(api_node, space, f"{SLINKY},{NEBIUS}", "both") as both:
                await renewed(client, space, first, 2)
                assert await holder(client, space, first) == f"operator-of-{first}"
                await end(old)
                await led(client, space, first, "both")
                await acts(client, space, first)
                assert await holder(client, space, second) == f"operator-of-{second}"
                await end(other)
                await led(client, space, second, "both")
                await acts(client, space, second)
                assert both.returncode is None


async def end(running: asyncio.subprocess.Process) -> None:
    """Let a process end as the kubelet does."""
    if running.returncode is None:
        running.terminate()
    await running.wait()


async def acts(client: Client, space: str, group: str) -> None:
    """Create a cluster of the group and wait until its operator has acted on it."""
    if group == SLINKY:
        assert not await answer(client, "POST", CONTROLLERS, space, CONTROLLER, False)

        async def is_made() -> bool:
            return any(name.startswith("slurm-config") for name in await made(client, space))

        await until(is_made)
        return
    assert not await answer(client, "POST", SLURM_CLUSTERS, space, cluster(), False)
    await until(lambda: has_status(client, space))


async def has_status(client: Client, space: str) -> bool:
    """Whether the operator of its API has seen the SlurmCluster."""
    live = await client.get_raw(SLURM_CLUSTERS, space, "ml")
    return "status" in msgspec.json.decode(live)


async def made(client: Client, space: str) -> list[str]:
    """Names of the ConfigMaps in a namespace."""
    body = await client.transport.send(Request("GET", CONFIG_MAPS.path(space)))
    return [one["metadata"]["name"] for one in msgspec.json.decode(body.body)["items"]]
