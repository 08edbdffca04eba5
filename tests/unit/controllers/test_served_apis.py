"""Which API groups a process leads, with a tiny one beside those of the product."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from penstock.api.kubernetes.kinds import CLAIMS, CONFIG_MAPS, PODS
from penstock.api.nebius.group import NAME as NEBIUS_GROUP
from penstock.api.penstock.group import GROUP as PENSTOCK_GROUP
from penstock.api.slinky.group import NAME as SLINKY_GROUP
from penstock.controllers.observed.watching import own_key
from penstock.controllers.operator import Operator, candidate
from penstock.controllers.registry import SERVED_APIS
from penstock.controllers.runtime.apis import APIS, NEBIUS, SHARED, SLINKY
from penstock.controllers.runtime.served_api import ApiControllers, ApiParts, ServedApi
from penstock.controllers.runtime.settings import Settings, Webhooks
from penstock.kube import Client, Manager, NotLeaderError, Recorder, Result
from penstock.kube.client.transport import Request
from penstock.kube.runtime.declaration import Watch
from penstock.simulation.manual_clock import ManualClock, settle
from support.tiny_api import CREWS, GROUP
from unit.kube.fake_api import FakeApi, Fault

LEASES = "/apis/coordination.k8s.io/v1/namespaces/system/leases"
CREW = "/apis/tiny.example.org/v1/namespaces/a/crews/x"
MADE = "/api/v1/namespaces/a/configmaps/x"
SERVED = Webhooks(port=9443)


class CrewReconciler:
    """Makes a ConfigMap for each Crew."""

    name = "crew"
    watches = (Watch(CREWS, own_key),)
    signals = ()

    def __init__(self, parts: ApiParts) -> None:
        self._client, self._crews = parts.client, parts.store.of(CREWS)

    async def run(self, key: str, /) -> Result:
        crew = self._crews.get(key)
        if crew is not None:
            meta = {"namespace": crew.metadata.namespace, "name": crew.metadata.name}
            manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
            await self._client.create(CONFIG_MAPS, manifest)
        return Result()


def build(parts: ApiParts) -> ApiControllers:
    return ApiControllers((CrewReconciler(parts),))


TINY = ServedApi(GROUP, "tiny-lease", ("crew",), ("crew",), build)
ALL = (*SERVED_APIS, TINY)


class Process:
    """An operator of some API groups."""

    def __init__(self, api: FakeApi, clock: ManualClock, identity: str, *apis: str) -> None:
        settings = Settings(apis=apis, identity=identity, lease_namespace="system")
        client = Client(api, clock=clock)
        self.manager, leaders = candidate(api, settings, client=client, apis=ALL)
        self.clients = {name: one.client for name, one in leaders.items()}
        recorder = Recorder(client, "test", identity)
        self.operator = Operator(
            client, self.manager, recorder, settings, leaders=leaders, apis=ALL
        )
        self.task = asyncio.ensure_future(self.manager.run())

    async def end(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


@asynccontextmanager
async def process(
    api: FakeApi, clock: ManualClock, identity: str, *apis: str
) -> AsyncGenerator[Process]:
    made = Process(api, clock, identity, *apis)
    try:
        await clock.advance(5)
        yield made
    finally:
        await made.end()


def new(*apis: str, webhooks: Webhooks = SERVED) -> tuple[Operator, Manager]:
    client = Client(FakeApi())
    manager, recorder = Manager(client), Recorder(client, "test", "test")
    settings = Settings(apis=apis, webhooks=webhooks)
    return Operator(client, manager, recorder, settings, apis=ALL), manager


def groups(manager: Manager) -> set[str]:
    """Groups of ours that are watched."""
    return {one.group for one, _ in manager.watched} & {*APIS, SHARED, GROUP}


def selector(manager: Manager, plural: str) -> str:
    (found,) = (labels for one, labels in manager.watched if one.plural == plural)
    return found


def holder(api: FakeApi, lease: str) -> str:
    found = api.objects.get(f"{LEASES}/{lease}")
    return found["spec"]["holderIdentity"] if found else ""


def test_groups_have_the_names_of_the_kinds() -> None:
    assert (SLINKY_GROUP, NEBIUS_GROUP, PENSTOCK_GROUP.name) == (SLINKY, NEBIUS, SHARED)
    assert tuple(one.group for one in SERVED_APIS) == APIS


def test_leases_have_the_names_of_the_original_operators() -> None:
    """In one namespace an original operator and ours never act at the same time."""
    assert [one.lease for one in SERVED_APIS] == ["slurm-operator", "e21479ae.nebius.ai"]


@pytest.mark.parametrize(
    ("apis", "watched"),
    [
        ((SLINKY,), {SLINKY, SHARED}),
        ((NEBIUS,), {NEBIUS, SHARED}),
        (APIS, {*APIS, SHARED}),
        ((GROUP,), {GROUP, SHARED}),
    ],
)
async def test_a_group_that_is_not_named_is_neither_watched_nor_admitted(
    apis: tuple[str, ...], watched: set[str]
) -> None:
    operator, manager = new(*apis)
    assert groups(manager) == watched
    assert operator.webhooks is not None
    paths = operator.webhooks.paths
    for group, path in (
        (SLINKY, "/validate-slinky-slurm-net-v1beta1-nodeset"),
        (SLINKY, "/mutate--v1-binding"),
        (NEBIUS, "/validate-slurm-nebius-ai-v1-slurmcluster"),
        (NEBIUS, "/validate--v1-secret"),
        (SHARED, "/validate-penstock-dev-v1alpha1-partition"),
    ):
        assert (path in paths) is (group in watched), path


async def test_only_pods_of_the_named_groups_are_watched() -> None:
    """Pods and PVCs of the other API may be thousands, and belong to another operator."""
    _, slinky = new(SLINKY)
    assert "slurmcluster" not in selector(slinky, PODS.plural)
    assert selector(slinky, CLAIMS.plural) == "app.kubernetes.io/name=slurmd"
    _, both = new(*APIS)
    assert selector(both, PODS.plural).endswith(",login,slurmcluster)")
    assert selector(both, CLAIMS.plural) == "app.kubernetes.io/name in (slurmd,slurmcluster)"


async def test_slinkys_clusters_are_no_part_of_a_process_of_the_other_api() -> None:
    operator, _ = new(NEBIUS)
    for read in (lambda: operator.clusters, lambda: operator.connections):
        with pytest.raises(LookupError, match="does not serve"):
            read()


def test_a_process_imports_the_reconcilers_of_its_own_groups_only() -> None:
    """Each module costs CPU and memory at every start."""
    code = (
        "import sys, penstock.controllers.operator, penstock.controllers.registry.slinky;"
        "print(*(one for one in sys.modules if one.startswith('penstock.controllers.nebius')"
        " or one.startswith('penstock.render.nebius')))"
    )
    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert printed.stdout.split() == []


async def test_reconcilers_of_all_groups_have_different_names() -> None:
    """The name is that of the work queue in metrics and of the setting of its workers."""
    seen: list[str] = []
    for api in ALL:
        seen += (one.name for one in api.build(parts()).reconcilers)
    assert len(seen) == len(set(seen)) > len(SERVED_APIS)


def parts() -> ApiParts:
    found: list[ApiParts] = []
    client = Client(FakeApi())

    def keep(given: ApiParts) -> ApiControllers:
        found.append(given)
        return ApiControllers(())

    apis = [replace(TINY, build=keep)]
    manager, recorder = Manager(client), Recorder(client, "test", "test")
    Operator(client, manager, recorder, Settings(apis=(GROUP,)), apis=apis)
    return found[0]


async def test_two_operators_of_different_groups_lead_side_by_side() -> None:
    api, clock = FakeApi(), ManualClock()
    api.put(CREW, spec={"cluster": "c"})
    async with process(api, clock, "one", SLINKY), process(api, clock, "two", NEBIUS):
        assert holder(api, "slurm-operator") == "one"
        assert holder(api, "e21479ae.nebius.ai") == "two"
        assert MADE not in api.objects, "nobody leads for the tiny group"
        async with process(api, clock, "three", GROUP):
            assert holder(api, "tiny-lease") == "three"
            assert MADE in api.objects


async def test_a_process_of_two_groups_works_for_the_one_whose_lease_it_has() -> None:
    api, clock = FakeApi(), ManualClock()
    api.put(CREW, spec={"cluster": "c"})
    async with process(api, clock, "one", GROUP):
        del api.objects[MADE]
        async with process(api, clock, "both", NEBIUS, GROUP) as both:
            assert (holder(api, "e21479ae.nebius.ai"), holder(api, "tiny-lease")) == ("both", "one")
            with pytest.raises(NotLeaderError):
                await both.clients[GROUP].create(CONFIG_MAPS, {"metadata": {"namespace": "a"}})
            assert MADE not in api.objects


async def test_definitions_that_come_later_are_found_and_delay_no_other_group() -> None:
    api, clock = FakeApi(), ManualClock()
    lacking = Fault(404, "NotFound", times=10_000, when=about(f"/{NEBIUS}/", f"/{SLINKY}/"))
    api.fail(lacking)
    api.put(CREW, spec={"cluster": "c"})
    async with process(api, clock, "all", SLINKY, NEBIUS, GROUP) as made:
        assert made.manager.not_ready() is None
        assert MADE in api.objects
        found = made.operator.clusters.caches.controllers
        api.put(f"/apis/{SLINKY}/v1beta1/namespaces/a/controllers/slurm", spec={})
        assert found.get("a/slurm") is None
        api.faults.remove(lacking)
        await clock.advance(30)
        await settle()
        assert found.get("a/slurm") is not None


def about(*words: str) -> Callable[[Request], bool]:
    return lambda request: any(word in request.path for word in words)
