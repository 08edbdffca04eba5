"""Which slurmrestd is asked for each cluster, with which key, and what is known without one."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import msgspec
import pytest

from penstock.api.cluster.cluster_ref import ControllerRef
from penstock.api.kubernetes.kinds import Secret
from penstock.api.kubernetes.meta import ObjectMeta
from penstock.api.kubernetes.spec_parts import ServiceSpec
from penstock.api.slinky.controller import Controller, ControllerSpec
from penstock.api.slinky.restapi import RestApi, RestApiSpec
from penstock.controllers.caches.secrets import SecretReader
from penstock.controllers.observed.members import cluster_keys
from penstock.controllers.observed.slinky_endpoints import (
    ControllerEndpoints,
    oldest_restapi,
    service_url,
)
from penstock.controllers.runtime.signals import SLURM
from penstock.controllers.runtime.slurm_connections import (
    LIFETIME_S,
    SlurmConnection,
    SlurmConnections,
    Tokens,
)
from penstock.kube.client.clock import SystemClock
from penstock.kube.runtime.declaration import Signals
from penstock.simulation.slurm.slurmrestd import SimulatedSlurmrestd
from penstock.slurm.auth import jwt
from penstock.slurm.known import Known, Unknown
from penstock.slurm.mirror.nodes_and_jobs import Mirror
from penstock.slurm.mirror.pace import MOST_STRETCH
from penstock.slurm.mirror.snapshot import Snapshot
from penstock.slurm.rest.http import exchange
from support import nodesets
from unit.controllers.stage import drop, new_clusters, put

KEY, OTHER_KEY = b"k" * 64, b"o" * 64
CONTROLLER = Controller(
    metadata=ObjectMeta(name="slurm", namespace="slurm", uid="c"), spec=ControllerSpec()
)
NODESET = nodesets.nodeset()


def restapi(
    name: str = "slurm", *, created: str = "2026-01-01T00:00:00Z", deleted: str | None = None
) -> RestApi:
    return RestApi(
        metadata=ObjectMeta(
            name=name,
            namespace="slurm",
            uid=name,
            creation_timestamp=created,
            deletion_timestamp=deleted,
        ),
        spec=RestApiSpec(controller_ref=ControllerRef(name="slurm")),
    )


def secret(key: bytes, version: int = 1) -> Secret:
    meta = ObjectMeta(
        name="slurm-auth-jwt", namespace="slurm", uid="s", resource_version=str(version)
    )
    return Secret(metadata=meta, data={"jwt.key": base64.b64encode(key).decode()})


class Cluster:
    """A Controller's link, brought up to date when asked."""

    def __init__(self, rest: SimulatedSlurmrestd) -> None:
        self.rest = rest
        self.caches = new_clusters().caches
        secrets = SecretReader(self.caches.secrets)
        self.asked: list[str] = []
        self.told: list[str] = []
        signals = Signals()
        signals.on(SLURM, lambda key, _: self.told.append(key))
        endpoints = ControllerEndpoints(self.caches, secrets, self._url)
        self.links = SlurmConnections(endpoints, signals, SystemClock(), exchange)
        put(self.caches.controllers, CONTROLLER)

    def _url(self, restapi: RestApi) -> str:
        self.asked.append(restapi.metadata.name)
        return self.rest.url

    async def look(self) -> None:
        await self.links.reconcile("slurm/slurm")
        link = self.links.first(cluster_keys(NODESET))
        if link is not None and link.client is not None:
            # The mirror's task begins to run, and has asked once.
            await self.asking(link)

    async def asking(self, link: SlurmConnection) -> Snapshot:
        """What Slurm says; the mirror may have to begin first."""
        while link.mirror.snapshot.asked_at is None:
            await asyncio.sleep(0)
            await link.mirror.poll()
        return await link.mirror.poll()


@asynccontextmanager
async def cluster(key: bytes = KEY) -> AsyncGenerator[Cluster]:
    async with SimulatedSlurmrestd(key=key) as rest:
        rest.slurmctld.register("compute-0")
        made = Cluster(rest)
        running = asyncio.ensure_future(made.links.run())
        try:
            yield made
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


def has_answered(at: Cluster) -> bool:
    link = at.links.first(cluster_keys(NODESET))
    return link is not None and link.has_answered


async def test_the_slurmrestd_of_the_restapi_is_asked_with_tokens_that_it_accepts():
    async with cluster() as at:
        put(at.caches.restapis, restapi())
        put(at.caches.secrets, secret(KEY))
        await at.look()
        link = at.links.first(cluster_keys(NODESET))
        assert link is not None
        found = link.mirror.snapshot
        assert isinstance(found.nodes, Known)
        assert list(found.nodes.value) == ["compute-0"]
        assert has_answered(at)
        assert set(at.told) == {"slurm/slurm"}


async def test_nothing_was_asked_before_there_is_somebody_to_ask():
    async with cluster() as at:
        assert not has_answered(at)
        put(at.caches.restapis, restapi())
        put(at.caches.secrets, secret(KEY))
        await at.links.reconcile("slurm/slurm")
        assert not has_answered(at)
        await at.look()
        assert has_answered(at)


async def test_without_a_restapi_nothing_is_known_and_the_reason_is():
    async with cluster() as at:
        await at.look()
        link = at.links.first(cluster_keys(NODESET))
        assert link is not None
        assert link.client is None
        why = Unknown("no RestApi refers to Controller slurm")
        assert link.mirror.snapshot.nodes == why
        assert has_answered(at)


async def test_a_restapi_that_goes_takes_the_knowledge_with_it():
    async with cluster() as at:
        put(at.caches.restapis, restapi())
        put(at.caches.secrets, secret(KEY))
        await at.look()
        link = at.links.first(cluster_keys(NODESET))
        assert link is not None
        await link.mirror.poll()
        drop(at.caches.restapis, restapi())
        await at.look()
        assert link.client is None
        assert isinstance(link.mirror.snapshot.nodes, Unknown)
        assert isinstance((await link.mirror.poll()).jobs, Unknown)


async def test_without_a_key_no_token_is_made_up():
    async with cluster() as at:
        put(at.caches.restapis, restapi())
        await at.look()
        link = at.links.first(cluster_keys(NODESET))
        assert link is not None
        found = link.mirror.snapshot.nodes
        assert isinstance(found, Unknown)
        assert "slurm-auth-jwt" in found.why
        assert at.rest.calls == []


async def test_a_changed_key_signs_the_tokens_from_then_on():
    """Feature row 67."""
    async with cluster(OTHER_KEY) as at:
        put(at.caches.restapis, restapi())
        put(at.caches.secrets, secret(KEY))
        await at.look()
        link = at.links.first(cluster_keys(NODESET))
        assert link is not None
        assert isinstance((await link.mirror.poll()).nodes, Unknown)
        put(at.caches.secrets, secret(OTHER_KEY, 2))
        await at.look()
        assert isinstance((await link.mirror.poll()).nodes, Known)


async def test_a_look_that_finds_nothing_new_leaves_the_connection_as_it_is():
    async with cluster() as at:
        put(at.caches.restapis, restapi())
        put(at.caches.secrets, secret(KEY))
        await at.look()
        link = at.links.first(cluster_keys(NODESET))
        assert link is not None
        before = link.client
        await at.look()
        assert link.client is before


async def test_the_link_ends_with_its_controller():
    async with cluster() as at:
        await at.look()
        link = at.links.first(cluster_keys(NODESET))
        assert link is not None
        assert link.tasks
        drop(at.caches.controllers, CONTROLLER)
        await at.look()
        assert at.links.first(cluster_keys(NODESET)) is None
        await asyncio.wait(link.tasks, timeout=10)
        assert all(task.cancelled() for task in link.tasks)
        assert at.told == ["slurm/slurm", "slurm/slurm"]


async def test_a_nodeset_of_another_namespace_gets_no_link():
    async with cluster() as at:
        await at.look()
        ref = ControllerRef(name="slurm", namespace="slurm")
        spec = msgspec.structs.replace(NODESET.spec, controller_ref=ref)
        meta = msgspec.structs.replace(NODESET.metadata, namespace="abroad")
        assert at.links.first(cluster_keys(msgspec.structs.replace(NODESET, spec=spec))) is not None
        assert (
            at.links.first(cluster_keys(msgspec.structs.replace(NODESET, spec=spec, metadata=meta)))
            is None
        )
        elsewhere = ControllerRef(name="slurm", namespace="elsewhere")
        spec = msgspec.structs.replace(spec, controller_ref=elsewhere)
        assert at.links.first(cluster_keys(msgspec.structs.replace(NODESET, spec=spec))) is None


def test_the_oldest_restapi_that_stays_speaks_for_the_cluster():
    early, late = restapi("b", created="2026-01-01T00:00:00Z"), restapi("a", created="2026-02-01")
    assert oldest_restapi((late, early)) is early
    assert oldest_restapi((late, restapi("b", deleted="2026-03-01T00:00:00Z"))) is late
    assert oldest_restapi((restapi("z"), restapi("y"))) == restapi("y")
    assert oldest_restapi(()) is None


@pytest.mark.parametrize(("port", "shown"), [(None, 6820), (8080, 8080)])
def test_a_restapi_is_reached_by_its_service(port: int | None, shown: int):
    """D15, S082."""
    spec = RestApiSpec(controller_ref=ControllerRef(name="slurm"), service=ServiceSpec(port=port))
    found = service_url(msgspec.structs.replace(restapi(), spec=spec))
    assert found == f"http://slurm-restapi.slurm:{shown}"


def test_a_token_is_kept_and_renewed_before_it_ends():
    now = [1_800_000_000.0]
    token = Tokens(KEY, lambda: now[0])
    first = token()
    assert jwt.verify(KEY, first, now[0])["sun"] == "slurm"
    now[0] += 0.79 * LIFETIME_S
    assert token() == first
    now[0] += 0.02 * LIFETIME_S
    second = token()
    assert second != first
    assert jwt.verify(KEY, second, now[0] + 0.99 * LIFETIME_S)


def test_a_clock_that_was_put_back_gets_a_token_that_is_valid_then():
    now = [1_800_000_000.0]
    token = Tokens(KEY, lambda: now[0])
    first = token()
    now[0] -= 3600
    assert token() != first
    assert jwt.verify(KEY, token(), now[0])


async def test_a_mirror_that_breaks_is_run_again_and_takes_nobody_with_it(
    monkeypatch: pytest.MonkeyPatch,
):
    runs: list[int] = []
    again = asyncio.Event()

    async def broken(_: object) -> None:
        runs.append(1)
        if len(runs) > 1:
            again.set()
            await asyncio.get_running_loop().create_future()
        raise RuntimeError("an answer nobody thought of")

    monkeypatch.setattr("penstock.controllers.runtime.slurm_connections.Mirror.run", broken)
    monkeypatch.setattr("penstock.controllers.runtime.slurm_connections.RESTART_S", 0.0)
    async with cluster() as at:
        await at.links.reconcile("slurm/slurm")
        async with asyncio.timeout(60):
            await again.wait()
        assert at.links.first(cluster_keys(NODESET)) is not None


async def test_a_cluster_is_at_rest_while_only_its_own_answers_are_followed(
    monkeypatch: pytest.MonkeyPatch,
):
    used: list[Mirror] = []

    def record_use(mirror: Mirror) -> None:
        used.append(mirror)

    monkeypatch.setattr(Mirror, "record_use", record_use)
    async with cluster() as at:
        await at.links.reconcile("slurm/slurm")
        link = at.links.peek("slurm/slurm")
        assert link is not None
        assert used == []
        assert at.links.get("slurm/slurm") is link
        assert used == [link.mirror]


async def test_the_more_clusters_there_are_the_longer_one_at_rest_waits():
    async with cluster() as at:
        for number in range(200):
            name = f"slurm-{number}"
            meta = ObjectMeta(name=name, namespace="slurm", uid=name)
            put(at.caches.controllers, Controller(metadata=meta, spec=ControllerSpec()))
            await at.links.reconcile(f"slurm/{name}")
        link = at.links.peek("slurm/slurm-0")
        assert link is not None
        monotonic = time.monotonic()
        assert link.mirror.stretch == 1
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(time, "monotonic", lambda: monotonic + 3600)
            assert link.mirror.stretch == MOST_STRETCH
