"""The certificate in its Secret, the trust in the configurations, the server that follows."""

from __future__ import annotations

import asyncio
import base64
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from penstock.api.kubernetes.kinds import Secret, WebhookConfiguration
from penstock.api.kubernetes.meta import Json
from penstock.controllers.admission.webhooks import Webhooks, values
from penstock.controllers.runtime.settings import Settings
from penstock.controllers.runtime.settings import Webhooks as Options
from penstock.kube import Client, Manager
from penstock.kube.runtime.leader import Leader
from penstock.kube.webhook.certificates import Bundle, expiry
from penstock.simulation.manual_clock import ManualClock, settle
from unit.controllers.stage import drop, put
from unit.kube.fake_api import FakeApi
from unit.kube.test_webhook import HOST, serial, shown, trusting

SECRET = "/api/v1/namespaces/system/secrets/penstock-operator-webhook-certificates"
DAY = 86_400.0


class Site:
    """Webhooks whose caches a test fills by hand."""

    def __init__(self, **options: Any) -> None:
        self.api, self.clock = FakeApi(), ManualClock()
        self.configured = 0
        self.clock.wall = datetime.now(UTC).timestamp()
        self.client = Client(self.api, clock=self.clock)
        manager = Manager(self.client)
        chosen = Options(host=HOST, hosts=(HOST,), **options)
        settings = Settings(namespace="system", webhooks=chosen)
        self.webhooks = Webhooks(manager, settings, {}, [manager.leader])
        self.configure("")

    async def look(self) -> float | None:
        """One reconcile, after which the cache shows the Secret as it is."""
        result = await self.webhooks.reconcile(self.client)
        self.see()
        return result.requeue_after

    def see(self) -> None:
        found = self.api.objects.get(SECRET)
        if found is not None:
            put(self.webhooks._secrets, msgspec.convert(found, Secret, strict=False))

    def configure(self, *bundles: str, uid: str = "u", **annotations: str) -> None:
        """Two configurations whose webhooks have these caBundles."""
        hooks = [
            {"name": f"hook-{number}", "clientConfig": {"caBundle": text}}
            for number, text in enumerate(bundles)
        ]
        self.configured += 1
        meta: Json = {"name": "penstock-operator-webhook", "uid": uid, "annotations": annotations}
        meta["resourceVersion"] = str(self.configured)
        found = msgspec.convert({"metadata": meta, "webhooks": hooks}, WebhookConfiguration)
        for _, cache in self.webhooks._configurations:
            put(cache, found)

    @property
    def bundle(self) -> Bundle:
        found = Bundle.read(values(msgspec.convert(self.api.objects[SECRET], Secret, strict=False)))
        assert found is not None
        return found

    def applied(self, plural: str) -> list[Json]:
        """What was written of a resource since the last time."""
        bodies = [
            msgspec.json.decode(one.body)
            for one in self.api.requests
            if one.method in ("POST", "PATCH") and plural in one.path
        ]
        self.api.requests.clear()
        return bodies


async def test_a_certificate_is_made_once_and_trusted_by_both_configurations():
    site = Site()
    site.configure("", "")
    assert await site.look() == DAY
    wanted = base64.b64encode(site.bundle.authority).decode()
    (body, _) = site.applied("webhookconfigurations")
    hooks = [{"name": f"hook-{n}", "clientConfig": {"caBundle": wanted}} for n in (0, 1)]
    assert body["webhooks"] == hooks
    assert body["metadata"] == {"name": "penstock-operator-webhook", "uid": "u"}
    site.configure(wanted, wanted)
    before = site.bundle
    await site.look()
    assert site.applied("") == []
    assert site.bundle == before


async def test_a_ca_bundle_that_somebody_took_out_comes_again():
    """`kubectl replace` and charts of old releases write it empty."""
    site = Site()
    await site.look()
    wanted = base64.b64encode(site.bundle.authority).decode()
    site.applied("")
    site.configure(wanted, "")
    await site.look()
    bodies = site.applied("webhookconfigurations")
    assert [len(one["webhooks"]) for one in bodies] == [2, 2]


async def test_it_is_renewed_in_time_in_the_same_secret():
    site = Site()
    await site.look()
    first = site.bundle
    seconds = 0.0
    while site.bundle == first:
        site.clock.wall += DAY
        seconds += DAY
        await site.look()
    assert seconds / DAY == 60
    assert site.bundle.authority == first.authority
    assert expiry(site.bundle.leaf) > expiry(first.leaf)
    body = site.applied("secrets")[-1]
    # Of two that renew at the same moment one is refused.
    assert body["metadata"]["resourceVersion"]


async def test_the_secret_goes_with_the_configuration_and_does_not_come_back():
    """`helm uninstall` leaves nothing: the cluster's collector takes what has lost its owner."""
    site = Site()
    await site.look()
    (owner,) = site.api.objects[SECRET]["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("ValidatingWebhookConfiguration", "u")
    for path in [one for one in site.api.objects if "webhookconfigurations" in one]:
        del site.api.objects[path]
    site.configure("", uid="another")
    site.applied("")
    before = site.bundle
    await site.look()
    assert site.bundle == before
    (body,) = site.applied("secrets")
    assert [one["uid"] for one in body["metadata"]["ownerReferences"]] == ["another"]
    for cache in (site.webhooks._secrets, *(one for _, one in site.webhooks._configurations)):
        for found in tuple(cache):
            drop(cache, found)
    del site.api.objects[SECRET]
    assert await site.look() is None
    assert SECRET not in site.api.objects


async def test_a_secret_that_is_broken_is_made_anew():
    site = Site()
    site.api.put(SECRET, data={"tls.crt": "bm9uZQ==", "tls.key": "%"})
    site.see()
    await site.look()
    assert site.bundle.leaf


async def test_one_that_another_process_made_first_is_taken():
    """The cache does not show it yet: nothing is overwritten and nobody made to trust it."""
    site = Site()
    site.configure("")
    other = Site()
    await other.look()
    made = other.api.objects[SECRET]
    site.api.put(SECRET, data=made["data"])
    assert (await site.webhooks.reconcile(site.client)).requeue_after == 1.0
    assert site.api.objects[SECRET]["data"] == made["data"]
    assert not [one for one in site.api.requests if "configurations" in one.path]
    site.see()
    await site.look()
    assert site.applied("webhookconfigurations")


@pytest.mark.parametrize("own", [True, False])
async def test_what_cert_manager_injects_is_left_to_it(own: bool):
    """Feature row 64."""
    site = Site(own=own)
    site.configure("", **{"cert-manager.io/inject-ca-from": "system/x"})
    await site.look()
    assert site.applied("webhookconfigurations") == []


async def test_a_given_secret_is_waited_for_trusted_and_never_written():
    site = Site(own=False)
    site.configure("")
    assert await site.look() is None
    other = Site()
    await other.look()
    site.api.put(SECRET, data=other.api.objects[SECRET]["data"])
    site.see()
    await site.look()
    assert site.applied("secrets") == []
    assert other.bundle == site.bundle


async def test_the_server_shows_what_is_in_the_secret_and_what_follows_it():
    site = Site()
    await site.look()
    running = asyncio.ensure_future(site.webhooks.serve())
    try:
        await settle()
        server = site.webhooks.server
        first = site.bundle
        assert serial(await shown(server, trusting(first))) == serial(first)
        site.api.put(SECRET, data={**site.api.objects[SECRET]["data"], "tls.crt": "bm9uZQ=="})
        site.see()
        await settle()
        assert serial(await shown(server, trusting(first))) == serial(first)
        await site.look()
        await settle()
        assert serial(await shown(server, trusting(site.bundle))) == serial(site.bundle)
        assert serial(site.bundle) != serial(first)
        gauge = site.client.metrics.certificate_expiry
        assert gauge._value.get() == expiry(site.bundle.leaf).timestamp()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def test_values_that_are_not_base64_are_left_out():
    secret = Secret(data={"a": "YQ==", "b": "%"})
    assert values(secret) == {"a": b"a"}
    assert values(None) == {}


async def test_the_lease_of_any_api_group_is_enough_to_keep_the_certificate():
    """Another operator may lead for the other group; the certificate is of one's own name."""
    site, clock = Site(), ManualClock()
    first, second = (Leader(Client(site.api, clock=clock)) for _ in range(2))
    manager, settings = Manager(site.client), Settings(webhooks=Options(host=HOST))
    Webhooks(manager, settings, {}, [first, second])
    names = [[one.name for one in leader._controllers] for leader in (first, second)]
    assert names == [["webhook"], ["webhook-1"]]
