"""ConfigMaps and Secrets of others, however many and large, do not fill the operator's memory."""

from __future__ import annotations

import base64
import subprocess
import sys
from collections.abc import Callable

import pytest

from api.kube_support import namespace_of, running, until
from penstock.api.kubernetes.kinds import CONFIG_MAPS, SECRETS, ConfigMap, Secret
from penstock.api.kubernetes.resource import Resource
from penstock.controllers.caches.store import CacheStore
from penstock.kube import Manager
from penstock.kube.cache.on_demand import NotLoadedError
from penstock.local.node import Node as LocalNode

pytestmark = pytest.mark.api

COUNT = 60
SIZE = 900_000
SCRIPT = """
import asyncio, sys
from pathlib import Path
from penstock.api.kubernetes.kinds import CONFIG_MAPS
from penstock.kube import Cache, Client, HttpTransport, from_kubeconfig

def peak():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))

async def main(path, namespace, on_demand):
    client = Client(HttpTransport(from_kubeconfig([Path(path)])))
    cache = Cache(client, CONFIG_MAPS, namespaces=[namespace], raw=True, on_demand=on_demand)
    before = peak()
    task = asyncio.ensure_future(cache.run())
    await cache.wait_synced()
    print(len(cache), peak() - before)
    task.cancel()

asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3] == "True"))
"""


def grown(node: LocalNode, namespace: str, *, on_demand: bool) -> int:
    """Bytes by which a process grows that watches the ConfigMaps of a namespace."""
    words = [sys.executable, "-c", SCRIPT, str(node.kubeconfig_path), namespace, str(on_demand)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    count, size = map(int, done.stdout.split())
    assert count >= COUNT
    return size


async def test_a_namespace_full_of_large_objects_costs_little_memory(
    api_node: LocalNode, figure: Callable[[str], None]
) -> None:
    async with namespace_of(api_node) as (client, space):
        for number in range(COUNT):
            meta = {"namespace": space, "name": f"big-{number}"}
            data = {"k": f"{number:09}" * (SIZE // 9)}
            await client.create(CONFIG_MAPS, {"kind": "ConfigMap", "metadata": meta, "data": data})
        whole = grown(api_node, space, on_demand=False)
        part = grown(api_node, space, on_demand=True)
        figure(
            f"{COUNT} ConfigMaps, {COUNT * SIZE >> 20} MiB: a process that watches them grows by "
            f"{whole >> 20} MiB with their content, by {part >> 20} MiB without"
        )
        assert whole > COUNT * SIZE
        assert part < COUNT * SIZE / 4, f"{part / 2**20:.0f} of {whole / 2**20:.0f} MiB"


@pytest.mark.parametrize("resource", [CONFIG_MAPS, SECRETS])
async def test_the_operator_reads_a_large_object_when_it_needs_it(
    api_node: LocalNode, resource: Resource[ConfigMap | Secret]
) -> None:
    async with namespace_of(api_node) as (client, space):
        text = base64.b64encode(b"x" * SIZE).decode()[: SIZE // 4 * 4]
        meta = {"namespace": space, "name": "big"}
        await client.create(
            resource, {"kind": resource.kind, "metadata": meta, "data": {"k": text}}
        )
        key = f"{space}/big"
        async with running(CacheStore(Manager(client, namespaces=[space])).of(resource)) as cache:
            found = cache.get(key)
            assert found is not None
            with pytest.raises(NotLoadedError, match=f"{resource.kind} {key}"):
                assert found.data
            await until(cache, lambda: cache.get(key) is not found)
            found = cache.get(key)
            assert found is not None
            assert found.data == {"k": text}
