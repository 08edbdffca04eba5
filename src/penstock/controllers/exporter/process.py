"""The process of one exporter: its parts, start and end.

In a SlurmCluster it needs these rights in the namespace of the cluster, and `list` and `watch` of
Kubernetes nodes for one label:

    rules:
    - apiGroups: [""]
      resources: [secrets]
      resourceNames: [<cluster>-rest-jwt-key]
      verbs: [get]
    - apiGroups: [""]
      resources: [configmaps]
      resourceNames: [<cluster>-slurm-exporter-state]
      verbs: [get, patch]
    - apiGroups: [""]
      resources: [pods]
      verbs: [list, watch]
"""

from __future__ import annotations

import asyncio
import signal
from contextlib import AsyncExitStack
from pathlib import Path

import structlog

from penstock.controllers.exporter.access import KeyTokens, ScontrolTokens, StaticToken, Tokens
from penstock.controllers.exporter.arguments import Arguments
from penstock.controllers.exporter.collection import Collection, Pace
from penstock.controllers.exporter.history import NodeHistory
from penstock.controllers.exporter.own_metrics import OwnMetrics
from penstock.controllers.exporter.places import Places
from penstock.controllers.exporter.saved_state import (
    ConfigMapState,
    FileState,
    NoState,
    SavedState,
    load,
)
from penstock.controllers.exporter.server import serving
from penstock.controllers.exporter.source import SlurmrestdSource
from penstock.kube import Client, Clock, SystemClock
from penstock.kube.client import config
from penstock.kube.client.transport import HttpTransport
from penstock.slurm.rest.records_client import RecordsClient

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


async def run(arguments: Arguments) -> None:
    """Run until SIGTERM. Raises ConfigError and OSError when it cannot start."""
    async with AsyncExitStack() as stack:
        if arguments.standalone:
            await _run(arguments, None, SystemClock(), stack)
            return
        path = Path(arguments.kubeconfig) if arguments.kubeconfig else None
        transport = HttpTransport(config.load(path))
        stack.push_async_callback(transport.close)
        client = Client(transport)
        await _run(arguments, client, client.clock, stack)


async def _run(
    arguments: Arguments, client: Client | None, clock: Clock, stack: AsyncExitStack
) -> None:
    tokens = _tokens(arguments, client, clock)
    state = _state(arguments, client)
    source = SlurmrestdSource(
        RecordsClient(arguments.slurmrestd, tokens.token),
        tokens,
        clock,
        arguments.job_source,
        arguments.lookback_s,
    )
    collection = Collection(
        source,
        state,
        NodeHistory(await load(state, clock)),
        clock,
        Pace(arguments.interval_s, arguments.inflight),
        OwnMetrics(),
        vpenso_names=arguments.vpenso_names,
    )
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    background = [collection.run()]
    if client is not None:
        places = Places(client, arguments.namespace, arguments.cluster)
        collection.places = places.by_node
        background.append(places.run())
    ports = await stack.enter_async_context(
        serving(collection, arguments.metrics, arguments.monitoring)
    )
    log.info("serving", cluster=arguments.cluster, slurmrestd=arguments.slurmrestd, ports=ports)
    async with asyncio.TaskGroup() as group:
        running = [group.create_task(one) for one in background]
        await ended.wait()
        for task in running:
            task.cancel()


def _tokens(arguments: Arguments, client: Client | None, clock: Clock) -> Tokens:
    if arguments.static_token:
        return StaticToken(clock, arguments.static_token)
    if client is None:
        return ScontrolTokens(clock, arguments.scontrol, arguments.key_interval_s)
    return KeyTokens(client, arguments.namespace, arguments.cluster, arguments.key_interval_s)


def _state(arguments: Arguments, client: Client | None) -> SavedState:
    if arguments.state_file:
        return FileState(Path(arguments.state_file))
    if client is None:
        return NoState()
    return ConfigMapState(client, arguments.namespace, arguments.cluster)
