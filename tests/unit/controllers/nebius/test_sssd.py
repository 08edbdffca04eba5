"""sssd.conf and certificates of a directory: absent, faulty, changed and deleted files."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fault_plans import worker_sets
from fault_plans.kinds import path_of
from penstock.api.cluster import marks
from penstock.api.kubernetes.meta import Json
from unit.controllers.nebius.lab import CORE, CURRENT, NODESETS, OLDER, SPACE, Lab, played

NAME = "compute"
CONF = "[sssd]\ndomains = company\n[domain/company]\nid_provider = ldap\n"
SECRET, CERTIFICATES = "company-sssd", "company-ca"
NODE_SET = path_of(SPACE, worker_sets.OF_NEBIUS, NAME)
DAEMONS = ("slurm-controller-0", "slurm-login-0")
FIELDS = {
    "sssdConfSecretRefName": SECRET,
    "sssdLdapCAConfigMapRefName": CERTIFICATES,
}


def put(lab: Lab, conf: str | None = CONF, name: str = SECRET, key: str = "sssd.conf") -> None:
    """Create the Secret, or change it; without a `conf` it has another key."""
    data = {key: base64.b64encode((conf or "").encode()).decode()}
    if lab.find("/secrets", name) is None:
        lab.make(f"{CORE}/secrets", "Secret", name, data=data)
    else:
        lab.world.ask("PATCH", f"{CORE}/secrets/{name}", {"data": data})


def put_certificates(lab: Lab) -> None:
    lab.make(f"{CORE}/configmaps", "ConfigMap", CERTIFICATES, data={"ca.crt": "certificate"})


def put_all(lab: Lab) -> None:
    put(lab)
    put_certificates(lab)


def declare(lab: Lab, **fields: Any) -> None:
    """Declare sssd for slurmctld and logins."""
    node = {"sssd": {"image": "sssd:1"}, **fields}
    lab.world.edit_cluster(SPACE, {"slurmNodes": {"controller": node, "login": node}})


def declare_workers(lab: Lab, **fields: Any) -> None:
    given = {"image": {"repository": "sssd", "tag": "1"}, "resources": {}}
    lab.world.ask("PATCH", NODE_SET, {"spec": {"sssd": given, **fields}})


def declared(
    play: Callable[[Lab], Awaitable[None]],
    shape: str = CURRENT,
    *,
    fields: Json,
    workers: Json | None = None,
    before: Callable[[Lab], None] = lambda _: None,
) -> None:
    """Play a story of a cluster that has sssd from the beginning; of NodeSets with `workers`."""

    def all_before(lab: Lab) -> None:
        before(lab)
        lab.world.declare(2)
        declare(lab, **fields)
        if workers is not None:
            declare_workers(lab, **workers)

    played(play, shape, replicas=-1, before=all_before)


def words(lab: Lab, plural: str = "slurmclusters", name: str = "slurm") -> tuple[str, str]:
    """Reason and message of Stalled."""
    return lab.condition("Stalled", plural, name)[1:]


def of_workers(lab: Lab) -> tuple[str, str]:
    return words(lab, NODESETS, NAME)


def warnings(lab: Lab, reason: str) -> list[str]:
    """Objects about which a warning was emitted."""
    every: list[Json] = lab.world.server.objects("events.k8s.io/events", SPACE)
    return [one["regarding"]["kind"] for one in every if one["reason"] == reason]


def pod(lab: Lab, name: str) -> Json:
    return lab.get("/pods", name)


def uids(lab: Lab, prefix: str = "") -> set[str]:
    return {pod(lab, name)["metadata"]["uid"] for name in lab.pods(prefix)}


def mark(lab: Lab, name: str) -> str:
    return pod(lab, name)["metadata"].get("annotations", {}).get(marks.SSSD_HASH, "")


def has_sssd(lab: Lab, name: str) -> bool:
    if name not in lab.pods():
        return False
    spec = pod(lab, name)["spec"]
    return "sssd" in [one["name"] for one in spec.get("initContainers", [])]


@pytest.mark.parametrize("shape", [CURRENT, OLDER])
def test_the_default_secret_is_created_once_and_stays_as_it_is(shape: str) -> None:
    async def play(lab: Lab) -> None:
        await lab.until(lambda: lab.find("/secrets", "slurm-sssd-conf"))
        put(lab, name="slurm-sssd-conf")
        await asyncio.sleep(30)
        data = lab.get("/secrets", "slurm-sssd-conf")["data"]
        assert base64.b64decode(data["sssd.conf"]).decode() == CONF
        await lab.available()
        assert words(lab) == ("", "")

    declared(play, shape, fields={})


def test_a_default_secret_of_a_node_set_is_the_node_sets() -> None:
    async def play(lab: Lab) -> None:
        await lab.until(lambda: lab.find("/secrets", "slurm-nodeset-compute-sssd-conf"))
        owners = lab.get("/secrets", "slurm-nodeset-compute-sssd-conf")["metadata"][
            "ownerReferences"
        ]
        assert [one["kind"] for one in owners] == ["NodeSet"]
        await lab.available()
        assert all(has_sssd(lab, one) for one in lab.pods(NAME))
        assert of_workers(lab) == ("", "")

    declared(play, fields={}, workers={})


def test_an_absent_secret_is_named_and_logins_and_slurmctld_run_without_it() -> None:
    async def play(lab: Lab) -> None:
        await lab.until(lambda: words(lab)[0] == "SecretNotFound")
        assert f"Secret {SECRET} of namespace {SPACE} does not exist" in words(lab)[1]
        assert "spec.slurmNodes.controller.sssdConfSecretRefName" in words(lab)[1]
        assert "spec.slurmNodes.login.sssdConfSecretRefName" in words(lab)[1]
        await lab.until(lambda: "SlurmCluster" in warnings(lab, "SecretNotFound"))
        for name in DAEMONS:
            await lab.until(lambda name=name: has_sssd(lab, name))
        await lab.until(lambda: lab.phase() == "Available")
        before = uids(lab)
        put(lab)
        await lab.until(lambda: lab.condition()[0] == "True")
        assert uids(lab) == before

    declared(play, fields={"sssdConfSecretRefName": SECRET})


@pytest.mark.parametrize(
    ("conf", "key", "reason", "fault"),
    [
        (CONF, "sssd.config", "SecretNotFound", "has no key sssd.conf"),
        ("", "sssd.conf", "SecretNotFound", "is empty in key sssd.conf"),
        ("[sssd]\nservices = nss\n", "sssd.conf", "SssdConfInvalid", "no section [domain/NAME]"),
        ("#[domain/x]\n", "sssd.conf", "SssdConfInvalid", "no section [domain/NAME]"),
    ],
)
def test_a_file_that_sssd_cannot_use_is_reported_until_it_is_right(
    conf: str, key: str, reason: str, fault: str
) -> None:
    async def play(lab: Lab) -> None:
        await lab.until(lambda: words(lab)[0] == reason and fault in words(lab)[1])
        await lab.until(lambda: of_workers(lab)[0] == reason and fault in of_workers(lab)[1])
        put(lab)
        await lab.until(lambda: words(lab) == of_workers(lab) == ("", ""))
        await lab.available()

    named = {"sssdConfSecretRefName": SECRET}
    declared(play, fields=named, workers=named, before=lambda lab: put(lab, conf, key=key))


def test_a_file_with_windows_line_ends_or_a_mebibyte_is_no_fault() -> None:
    def before(lab: Lab) -> None:
        put(lab, CONF.replace("\n", "\r\n"))
        put(lab, "# x\n" * 180_000 + CONF, name="large")

    async def play(lab: Lab) -> None:
        await lab.available()
        assert words(lab) == of_workers(lab) == ("", "")

    small, large = ({"sssdConfSecretRefName": name} for name in (SECRET, "large"))
    declared(play, fields=small, workers=large, before=before)


def test_new_workers_wait_for_the_secret_and_for_certificates() -> None:
    """Jobs would fail on a worker that does not know their users."""

    async def play(lab: Lab) -> None:
        await lab.until(lambda: of_workers(lab)[0] == "SecretNotFound")
        await lab.until(lambda: lab.phase() == "Available")
        await asyncio.sleep(30)
        assert lab.pods(NAME) == []
        put(lab)
        await lab.until(lambda: of_workers(lab)[0] == "ConfigMapNotFound")
        assert f"ConfigMap {CERTIFICATES} of namespace {SPACE} does not exist" in of_workers(lab)[1]
        await lab.until(lambda: "NodeSet" in warnings(lab, "ConfigMapNotFound"))
        await asyncio.sleep(30)
        assert lab.pods(NAME) == []
        put_certificates(lab)
        await lab.until(lambda: len(lab.pods(NAME)) == 2)
        await lab.available()

    declared(play, fields={}, workers=FIELDS)


def test_a_secret_that_is_deleted_is_reported_and_changes_no_pod() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        await lab.until(lambda: all(mark(lab, one) for one in DAEMONS))
        before = uids(lab)
        for kind, name in (("secrets", SECRET), ("configmaps", CERTIFICATES)):
            lab.world.ask("DELETE", f"{CORE}/{kind}/{name}", {})
        await lab.until(lambda: words(lab)[0] == of_workers(lab)[0] == "SecretNotFound")
        assert "ConfigMap" in words(lab)[1]
        await asyncio.sleep(30)
        assert uids(lab) == before
        put_all(lab)
        await lab.until(lambda: words(lab) == of_workers(lab) == ("", ""))
        assert uids(lab) == before

    declared(play, fields=FIELDS, workers=FIELDS, before=put_all)


def test_a_changed_file_is_delivered_and_replaces_no_pod() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        await lab.until(lambda: all(mark(lab, one) for one in DAEMONS))
        before, old = uids(lab), mark(lab, "slurm-login-0")
        put(lab, f"{CONF}cache_credentials = true\n")
        await lab.until(lambda: mark(lab, "slurm-login-0") != old)
        await lab.until(lambda: mark(lab, "slurm-controller-0") == mark(lab, "slurm-login-0"))
        old = mark(lab, "slurm-login-0")
        path = f"{CORE}/configmaps/{CERTIFICATES}"
        lab.world.ask("PATCH", path, {"data": {"ca.crt": "another"}})
        await lab.until(lambda: mark(lab, "slurm-login-0") != old)
        assert not any(mark(lab, one) for one in lab.pods(NAME))
        await lab.settled(1)
        assert await lab.settled() == []
        assert uids(lab) == before

    declared(play, fields=FIELDS, workers=FIELDS, before=put_all)
