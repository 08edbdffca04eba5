from __future__ import annotations

import asyncio

import msgspec
import pytest

from penstock.api.kubernetes.kinds import CONFIG_MAPS, PODS
from penstock.kube import (
    ALL,
    AlreadyExistsError,
    Backoff,
    Client,
    Config,
    ConflictError,
    HttpTransport,
    InvalidError,
    Metrics,
    NotFoundError,
    NotLeaderError,
    Retry,
    ServerError,
    TooManyRequestsError,
    UnreachableError,
)
from penstock.kube.cache.store import version_of
from penstock.kube.client.client import list_all
from penstock.kube.client.credentials import FileCredentials, Material
from penstock.kube.client.errors import Status, api_error, status_error
from penstock.simulation.manual_clock import ManualClock, settle
from unit.kube.fake_api import FakeApi, Fault, served

PATH = "/api/v1/namespaces/a/configmaps/x"
MANIFEST = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"namespace": "a", "name": "x"},
    "data": {"k": "v"},
}


def make(api: FakeApi, clock: ManualClock, concurrency: int = 32) -> Client:
    retry = Retry(backoff=Backoff(1.0, 5.0, random=lambda: 1.0))
    return Client(api, clock=clock, retry=retry, concurrency=concurrency)


async def finished(clock: ManualClock, task: asyncio.Task[object]) -> None:
    """Turn the clock until the task is done."""
    while not task.done():
        await clock.advance(1)
    task.exception()


async def test_what_is_created_can_be_read_back() -> None:
    client = make(FakeApi(), ManualClock())
    made = await client.create(CONFIG_MAPS, MANIFEST)
    assert made.data == {"k": "v"}
    assert await client.get(CONFIG_MAPS, "a", "x") == made


async def test_errors_carry_the_servers_reason_and_message() -> None:
    api = FakeApi()
    client = make(api, ManualClock())
    with pytest.raises(NotFoundError, match="configmaps/x not found"):
        await client.get(CONFIG_MAPS, "a", "x")
    api.fail(Fault(422, "Invalid"))
    with pytest.raises(InvalidError) as caught:
        await client.create(CONFIG_MAPS, MANIFEST)
    assert (caught.value.code, caught.value.reason) == (422, "Invalid")


async def test_a_busy_servers_retry_after_is_waited_for() -> None:
    api, clock = FakeApi(), ManualClock()
    api.put(PATH)
    api.fail(Fault(429, "TooManyRequests", retry_after=7))
    task = asyncio.ensure_future(make(api, clock).get(CONFIG_MAPS, "a", "x"))
    await clock.advance(6.9)
    assert len(api.requests) == 1
    await clock.advance(0.2)
    assert (await task).metadata.name == "x"


@pytest.mark.parametrize("fault", [Fault(500), Fault(503), Fault(cut=True), Fault(429)])
async def test_a_passing_failure_is_not_seen_by_the_caller(fault: Fault) -> None:
    api, clock = FakeApi(), ManualClock()
    api.put(PATH)
    fault.times = 2
    api.fail(fault)
    task = asyncio.ensure_future(make(api, clock).get(CONFIG_MAPS, "a", "x"))
    await finished(clock, task)
    assert task.result().metadata.name == "x"


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault(500), ServerError),
        (Fault(cut=True), UnreachableError),
        (Fault(429), TooManyRequestsError),
    ],
)
async def test_retries_are_bounded(fault: Fault, error: type[Exception]) -> None:
    api, clock = FakeApi(), ManualClock()
    fault.times = 1000
    api.fail(fault)
    task = asyncio.ensure_future(make(api, clock).get(CONFIG_MAPS, "a", "x"))
    await finished(clock, task)
    assert isinstance(task.exception(), error)
    assert len(api.requests) == 4


async def test_a_request_without_an_answer_times_out() -> None:
    api, clock = FakeApi(), ManualClock()
    api.fail(Fault(hang=True, times=4))
    task = asyncio.ensure_future(make(api, clock).get(CONFIG_MAPS, "a", "x"))
    await finished(clock, task)
    assert isinstance(task.exception(), UnreachableError)


async def test_a_create_that_was_cut_after_it_succeeded_shows_as_already_there() -> None:
    api, clock = FakeApi(), ManualClock()
    api.fail(Fault(lost=True))
    task = asyncio.ensure_future(make(api, clock).create(CONFIG_MAPS, MANIFEST))
    await finished(clock, task)
    assert isinstance(task.exception(), AlreadyExistsError)
    assert PATH in api.objects


async def test_a_create_without_a_name_is_never_sent_twice() -> None:
    api, clock = FakeApi(), ManualClock()
    api.fail(Fault(cut=True))
    manifest = {"metadata": {"namespace": "a", "generateName": "x-"}}
    with pytest.raises(UnreachableError):
        await make(api, clock).create(CONFIG_MAPS, manifest)
    assert len(api.requests) == 1


async def test_an_eviction_that_a_budget_rejects_is_not_repeated() -> None:
    api, clock = FakeApi(), ManualClock()
    api.fail(Fault(429, "TooManyRequests", retry_after=10))
    eviction = {"kind": "Eviction", "metadata": {"namespace": "a", "name": "p"}}
    with pytest.raises(TooManyRequestsError) as caught:
        await make(api, clock).create(PODS, eviction, subresource="eviction")
    assert caught.value.retry_after == 10
    assert api.requests[0].path == "/api/v1/namespaces/a/pods/p/eviction"


async def test_a_conflict_is_not_repeated() -> None:
    api, clock = FakeApi(), ManualClock()
    api.put(PATH)
    patch = {"metadata": {"resourceVersion": "1"}, "data": {}}
    with pytest.raises(ConflictError):
        await make(api, clock).patch(CONFIG_MAPS, "a", "x", patch)
    assert len(api.requests) == 1


async def test_a_delete_hits_only_the_object_that_was_read() -> None:
    api, clock = FakeApi(), ManualClock()
    old = api.put(PATH)["metadata"]
    new = api.put(PATH, data={"k": "changed"})["metadata"]
    client = make(api, clock)
    with pytest.raises(ConflictError):
        await client.delete(CONFIG_MAPS, "a", "x", resource_version=old["resourceVersion"])
    with pytest.raises(ConflictError):
        await client.delete(CONFIG_MAPS, "a", "x", uid="another")
    await client.delete(
        CONFIG_MAPS, "a", "x", uid=new["uid"], resource_version=new["resourceVersion"]
    )
    assert PATH not in api.objects


async def test_at_most_that_many_requests_are_in_flight() -> None:
    api, clock = FakeApi(), ManualClock()
    api.fail(Fault(hang=True, times=3))
    client = make(api, clock, concurrency=2)
    tasks = [asyncio.ensure_future(client.get(CONFIG_MAPS, "a", "x")) for _ in range(3)]
    await settle()
    assert len(api.requests) == 2
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_who_no_longer_leads_reads_and_does_not_write() -> None:
    api = FakeApi()
    api.put(PATH)
    client = make(api, ManualClock())
    client.guard = lambda: False
    await client.get(CONFIG_MAPS, "a", "x")
    with pytest.raises(NotLeaderError):
        await client.delete(CONFIG_MAPS, "a", "x")
    assert PATH in api.objects


async def test_a_list_is_read_in_pages() -> None:
    api, clock = FakeApi(), ManualClock()
    for number in range(1201):
        api.put(f"/api/v1/namespaces/a/configmaps/{number}")
    found = await make(api, clock).list(CONFIG_MAPS)
    assert len(found.items) == 1201
    assert version_of(found.resource_version) == api.version
    assert len(api.requests) == 3


async def test_pages_of_large_objects_have_as_many_as_fit_into_their_bytes() -> None:
    api, clock = FakeApi(), ManualClock()
    for number in range(12):
        api.put(f"/api/v1/namespaces/a/configmaps/large-{number:02}", data={"k": 50_000 * "x"})
    for number in range(900):
        api.put(f"/api/v1/namespaces/a/configmaps/small-{number:03}", data={"k": "x"})
    pages = make(api, clock).pages(CONFIG_MAPS, page_bytes=200_000)
    sizes = [len(page.items or ()) async for page in pages]
    assert sum(sizes) == 912
    assert max(sizes[:3]) <= 4
    assert max(sizes) == 500


async def test_a_list_that_outlives_its_continue_token_is_read_in_one_piece() -> None:
    api, clock = FakeApi(), ManualClock()
    for number in range(600):
        api.put(f"/api/v1/namespaces/a/configmaps/{number}")
    api.fail(Fault(410, "Expired", when=lambda r: "continue" in r.params))
    items, _ = await list_all(make(api, clock), CONFIG_MAPS, ALL)
    assert len(items) == 600
    assert "continue" not in api.requests[-1].params


async def test_requests_are_counted_by_verb_resource_and_code() -> None:
    api, metrics = FakeApi(), Metrics()
    client = Client(api, clock=ManualClock(), metrics=metrics)
    with pytest.raises(NotFoundError):
        await client.get(CONFIG_MAPS, "a", "x")
    labels = {"verb": "get", "resource": "configmaps", "code": "404"}
    assert metrics.registry.get_sample_value("penstock_api_requests_total", labels) == 1


async def test_the_real_transport_speaks_http() -> None:
    api = FakeApi()
    async with served(api) as url:
        transport = HttpTransport(Config(url, FileCredentials(Material(token="t"))))
        client = Client(transport)
        try:
            await client.create(CONFIG_MAPS, MANIFEST)
            api.fail(Fault(429, retry_after=1), Fault(cut=True))
            assert (await client.get(CONFIG_MAPS, "a", "x")).data == {"k": "v"}
        finally:
            await transport.close()


async def test_a_server_that_is_not_there_is_unreachable() -> None:
    async with served(FakeApi()) as url:
        pass
    transport = HttpTransport(Config(url, FileCredentials(Material())))
    client = Client(transport, retry=Retry(attempts=1))
    try:
        with pytest.raises(UnreachableError):
            await client.get(CONFIG_MAPS, "a", "x")
    finally:
        await transport.close()


def test_a_manifest_that_does_not_fit_its_kind_is_invalid_though_the_server_blames_itself() -> None:
    message = "failed to create typed patch object (a/x; v1, Kind=ConfigMap): .data: expected map"
    assert isinstance(status_error(Status(message=message, code=500)), InvalidError)
    assert isinstance(status_error(Status(message="etcd is away", code=500)), ServerError)


@pytest.mark.parametrize(
    ("field", "error"), [("metadata.uid", ConflictError), ("spec.replicas", InvalidError)]
)
def test_a_patch_for_an_object_that_was_replaced_is_a_conflict(
    field: str, error: type[Exception]
) -> None:
    """kube-apiserver calls it invalid: nobody may change a uid."""
    details = {"causes": [{"reason": "FieldValueInvalid", "field": field, "message": "immutable"}]}
    body = {"kind": "Status", "code": 422, "reason": "Invalid", "details": details}
    assert type(api_error(422, msgspec.json.encode(body))) is error
