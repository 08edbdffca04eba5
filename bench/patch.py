"""A merge patch of one object, with the moment at which the API server answered."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from penstock.api.kubernetes.meta import Json
from penstock.api.kubernetes.resource import Resource
from penstock.kube import Client, HttpTransport, from_kubeconfig
from penstock.local.node import Node


def merge(node: Node, resource: Resource[Any], namespace: str, name: str, body: Json) -> float:
    """Patch it; returns seconds of the epoch."""

    async def patch() -> float:
        transport = HttpTransport(from_kubeconfig([node.kubeconfig_path]))
        try:
            await Client(transport, field_manager="bench").patch(resource, namespace, name, body)
            return time.time()
        finally:
            await transport.close()

    return asyncio.run(patch())
