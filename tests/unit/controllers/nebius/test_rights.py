"""Rights of a SlurmCluster's daemons: watched by our label, and found without it as well."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from copy import deepcopy

from penstock.api.kubernetes.kinds import ROLES
from penstock.api.kubernetes.meta import Json
from penstock.api.nebius.labels import NAME
from penstock.api.nebius.slurmcluster import SLURM_CLUSTERS
from penstock.controllers.caches.store import CacheStore
from penstock.controllers.observed.nebius_caches import NebiusCaches
from penstock.controllers.runtime.object_store import ObjectStore
from penstock.controllers.runtime.report import Events
from penstock.kube import Client, Manager, Recorder
from penstock.simulation.apiserver import ApiServer, Connection
from support.nebius_clusters import OLDER, of_shape

PATH = "/apis/rbac.authorization.k8s.io/v1/namespaces/correct-cpu-cluster/roles"
ROLE = "correct-cpu-cluster-sconfigcontroller-configmaps-role"


def test_a_role_that_lost_its_label_gets_it_back_and_is_not_created_twice() -> None:
    asyncio.run(_played())


async def _played() -> None:
    found = of_shape(OLDER)
    role = found.find("Role", ROLE)
    server = ApiServer(time.time)
    bare = deepcopy(role)
    del bare["metadata"]["labels"]
    assert server.ask("POST", PATH, bare, user="somebody").status == 201
    other: Json = {"kind": "Role", "metadata": {"name": "of-a-user"}, "rules": []}
    assert server.ask("POST", PATH, other, user="somebody").status == 201
    client = Client(Connection(server, "operator"))
    manager = Manager(client)
    caches = NebiusCaches(CacheStore(manager, [NAME], [NAME]))
    objects = ObjectStore(client, caches, [(ROLES, caches.roles)])
    events = Events(Recorder(client, "test", "test"), SLURM_CLUSTERS)
    running = asyncio.create_task(manager.run())
    try:
        await _until(lambda: manager.not_ready() is None)
        assert not list(caches.roles)
        await objects.apply(found.inputs.cluster, events, [role])
        await _until(lambda: bool(list(caches.roles)))
    finally:
        running.cancel()
    (one,) = caches.roles
    assert one.metadata.name == ROLE


async def _until(is_true: Callable[[], bool]) -> None:
    for _ in range(1000):
        if is_true():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("not within 10 s")
