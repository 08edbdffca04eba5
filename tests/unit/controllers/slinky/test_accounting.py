"""The whole operator and an Accounting, on simulated machines: S169, S072, D1, D17 and F14."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from copy import deepcopy
from typing import Any

from fault_plans.plan import Layout
from fault_plans.world import CORE, GROUP, SPACE, World
from penstock.api.cluster import marks
from penstock.api.kubernetes.meta import Json
from penstock.preview.report import render_report
from penstock.preview.state import ClusterCopy
from penstock.render.parts.digest import digest
from penstock.simulation.event_loop import EPOCH, simulate
from support.plans import effects_of

POD = "records-accounting-0"
JWT = b"jwt"
KEYS: Json = {
    "slurmKeyRef": {"name": "keys", "key": "slurm.key"},
    "jwtKeyRef": {"name": "keys", "key": "jwt.key"},
}
STORAGE: Json = {"host": "db", "passwordKeyRef": {"name": "database", "key": "password"}}
NONE = "AccountingStorageType=accounting_storage/none\n"
DENIED = "[t] error: mysql_real_connect failed: 1045 Access denied for user 'slurm'@'h'\n"


class Lab:
    """A small cluster with an operator. A deaf slurmdbd goes on saying what `log` has."""

    def __init__(self) -> None:
        self.world = World(1, Layout())
        self.log = ""
        self.deaf = False
        self._logs = self.world.server.logs
        self.world.server.logs = self._said

    def _said(self, namespace: str, name: str, container: str) -> str | None:
        if container != "slurmdbd":
            return self._logs(namespace, name, container)
        if not self.deaf:
            self.log = self._logs(namespace, name, container) or ""
        return self.log

    def hash(self) -> str:
        return digest(JWT + (self.conf() or "").encode())

    def conf(self) -> str | None:
        found = self.world.find("/secrets", "records-accounting")
        return base64.b64decode(found["data"]["slurmdbd.conf"]).decode() if found else None

    def secret(self, name: str, **data: str | bytes) -> None:
        raw = {k: v if isinstance(v, bytes) else v.encode() for k, v in data.items()}
        encoded = {k: base64.b64encode(v).decode() for k, v in raw.items()}
        body = {"kind": "Secret", "metadata": {"name": name, "namespace": SPACE}, "data": encoded}
        if self.world.find("/secrets", name) is None:
            self.world.ask("POST", f"{CORE}/secrets", body)
        else:
            self.world.ask("PATCH", f"{CORE}/secrets/{name}", {"data": encoded})

    def keys(self) -> None:
        """The Secret that Accountings name, with the slurm.key that the Controller has."""
        own = self.world.find("/secrets", "slurm-auth-slurm")
        key = base64.b64decode(own["data"]["slurm.key"]) if own else b"slurm"
        if own is None:
            self.secret("slurm-auth-slurm", **{"slurm.key": key})
        self.secret("keys", **{"slurm.key": key, "jwt.key": JWT})

    def accounting(self, name: str = "records", **spec: Any) -> None:
        whole: Json = {"external": False, **KEYS, "storageConfig": STORAGE, **spec}
        body = {"kind": "Accounting", "metadata": {"name": name, "namespace": SPACE}, "spec": whole}
        if self.world.find("slinky.slurm.net/accountings", name) is None:
            self.world.ask("POST", f"{GROUP}/accountings", body)
        else:
            self.patch(f"{GROUP}/accountings/{name}", {"spec": whole})

    def patch(self, path: str, body: Json) -> None:
        self.world.ask("PATCH", path, body)

    def refer(self, name: str | None) -> None:
        """Have the Controller name an Accounting."""
        ref = {"name": name} if name else None
        self.patch(f"{GROUP}/controllers/slurm", {"spec": {"accountingRef": ref}})

    def slurm_conf(self) -> str:
        found = self.world.find("/configmaps", "slurm-config")
        return found["data"]["slurm.conf"] if found else ""

    def says(self, plural: str, name: str, type_: str = "Ready") -> tuple[str, str, str]:
        """Status, reason and message of a condition."""
        found: Json = self.world.find(f"slinky.slurm.net/{plural}", name) or {}
        for one in found.get("status", {}).get("conditions", ()):
            if one["type"] == type_:
                return one["status"], one["reason"], one.get("message", "")
        return "", "", ""

    def uid(self, pod: str) -> str:
        found = self.world.find("/pods", pod)
        return found["metadata"]["uid"] if found else ""

    def set_ready(self, status: str) -> None:
        path = f"{CORE}/pods/{POD}/status"
        body = {"status": {"conditions": [{"type": "Ready", "status": status}]}}
        self.world.server.ask("PATCH", path, body, kind="strategic", user="kubelet")

    async def until(self, holds: Callable[[], object], seconds: float = 120) -> None:
        for _ in range(int(seconds * 10)):
            if holds():
                return
            await asyncio.sleep(0.1)
        told = [self.says("controllers", "slurm"), self.says("accountings", "records")]
        raise AssertionError((told, self.log, self.slurm_conf()))

    async def ready(self, plural: str, name: str) -> None:
        await self.until(lambda: self.says(plural, name)[0] == "True")


@asynccontextmanager
async def operated() -> AsyncGenerator[Lab]:
    """A lab with an operator, which ends with the block."""
    lab = Lab()
    lab.world.declare(1)
    process = lab.world.operator()
    yield lab
    await lab.world.crash(process)


def played(play: Callable[[Lab], Awaitable[None]]) -> None:
    async def run() -> None:
        async with operated() as lab:
            await play(lab)

    simulate(run())


async def served(lab: Lab) -> None:
    """A cluster with an Accounting, from the start."""
    lab.refer("records")
    lab.keys()
    lab.secret("database", password="one")
    lab.accounting()
    await lab.ready("accountings", "records")
    await lab.ready("controllers", "slurm")


def test_slurmctld_is_told_when_the_accounting_comes_later_and_when_it_goes() -> None:
    """S004, D1: without a new pod of slurmctld."""

    async def play(lab: Lab) -> None:
        await lab.ready("controllers", "slurm")
        slurmctld = lab.uid("slurm-controller-0")
        lab.refer("records")
        await lab.until(lambda: lab.says("controllers", "slurm")[1] == "AccountingNotFound")
        assert NONE in lab.slurm_conf()
        lab.keys()
        lab.secret("database", password="one")
        lab.accounting(service={"port": 16819})
        await lab.until(lambda: "AccountingStorageHost=records-accounting\n" in lab.slurm_conf())
        assert "AccountingStorageType=accounting_storage/slurmdbd\n" in lab.slurm_conf()
        assert "AccountingStoragePort=16819\n" in lab.slurm_conf()
        await lab.ready("controllers", "slurm")
        lab.world.ask("DELETE", f"{GROUP}/accountings/records", {})
        await lab.until(
            lambda: "AccountingStorageType=accounting_storage/none\n" in lab.slurm_conf()
        )
        await lab.until(lambda: not lab.uid(POD))
        lab.refer(None)
        await lab.ready("controllers", "slurm")
        assert lab.uid("slurm-controller-0") == slurmctld

    played(play)


def test_a_first_slurmctld_waits_for_its_accounting() -> None:
    """S031: without one it would give the cluster an id that slurmdbd may refuse later."""

    async def run() -> None:
        lab = Lab()
        world = lab.world
        body = {"kind": "Controller", "metadata": {"name": "slurm", "namespace": SPACE}}
        spec = {"clusterName": "x", "accountingRef": {"name": "records"}}
        world.ask("POST", f"{GROUP}/controllers", {**body, "spec": spec})
        world.declare_restapi(SPACE)
        process = world.operator()
        await lab.until(lambda: lab.says("controllers", "slurm")[1] == "AccountingNotFound")
        await lab.until(lambda: lab.says("restapis", "slurm")[1] == "AccountingNotFound")
        await asyncio.sleep(30)
        assert world.find("apps/statefulsets", "slurm-controller") is None
        assert world.find("apps/deployments", "slurm-restapi") is None
        lab.keys()
        lab.secret("database", password="one")
        lab.accounting()
        await lab.ready("controllers", "slurm")
        await lab.ready("restapis", "slurm")
        await world.crash(process)

    simulate(run())


def test_what_is_missing_is_named_and_what_runs_goes_on() -> None:
    """F14: the keys, the password, and a password that cannot be written."""

    async def play(lab: Lab) -> None:
        lab.accounting()
        await lab.until(lambda: lab.says("accountings", "records")[1] == "SecretNotFound")
        told = lab.says("accountings", "records")[2]
        assert "spec.slurmKeyRef: there is no Secret keys with a key slurm.key" in told
        assert "spec.storageConfig.passwordKeyRef: there is no Secret database" in told
        assert lab.conf() is None
        lab.keys()
        lab.secret("database", password='a"b')
        await lab.until(lambda: lab.says("accountings", "records")[1] == "PasswordUnusable")
        assert "quote" in lab.says("accountings", "records")[2]
        lab.secret("database", password="one\n")
        await lab.ready("accountings", "records")
        assert "StoragePass=one\n" in (lab.conf() or "")
        slurmdbd = lab.uid(POD)
        lab.world.ask("DELETE", f"{CORE}/secrets/database", {})
        await lab.until(lambda: lab.says("accountings", "records")[1] == "SecretNotFound")
        assert "StoragePass=one\n" in (lab.conf() or "")
        assert lab.uid(POD) == slurmdbd

    played(play)


def test_a_changed_password_is_handed_over_without_a_new_pod() -> None:
    """D17: and the kubelet is told to look, again if it did not."""

    async def play(lab: Lab) -> None:
        await served(lab)
        slurmdbd, slurmctld = lab.uid(POD), lab.uid("slurm-controller-0")
        lab.deaf = True
        lab.secret("database", password="two")
        await lab.until(lambda: lab.says("accountings", "records")[1] == "ConfigDelivering")
        assert "StoragePass=two\n" in (lab.conf() or "")
        pod: Json = lab.world.find("/pods", POD) or {}
        assert pod["metadata"]["annotations"][marks.CONFIG_HASH] == lab.hash()
        await lab.until(
            lambda: (
                marks.CONFIG_REFRESH
                in (lab.world.find("/pods", POD) or {})["metadata"]["annotations"]
            )
        )
        lab.deaf = False
        await lab.ready("accountings", "records")
        assert (lab.uid(POD), lab.uid("slurm-controller-0")) == (slurmdbd, slurmctld)
        events = [one["reason"] for one in lab.world.server.objects("events.k8s.io/events")]
        assert events.count("ConfigDelivered") == 1

    played(play)


def test_a_refused_slurmdbd_conf_is_told_in_its_words() -> None:
    async def play(lab: Lab) -> None:
        await served(lab)
        lab.accounting(extraConf="Bogus=1\n")
        await lab.until(lambda: lab.says("accountings", "records")[1] == "ConfigRefused")
        assert "unrecognized key: Bogus" in lab.says("accountings", "records")[2]
        lab.accounting(extraConf="")
        await lab.ready("accountings", "records")

    played(play)


def test_a_database_that_refuses_is_told_and_believed_again_when_the_pod_is_ready() -> None:
    """S169: from the pod's condition, so nothing is asked while all is well."""

    async def play(lab: Lab) -> None:
        await served(lab)
        lab.deaf, lab.log = True, lab.log + DENIED
        lab.set_ready("False")
        await lab.until(lambda: lab.says("accountings", "records")[1] == "DatabaseRefuses")
        assert "Access denied for user" in lab.says("accountings", "records")[2]
        assert lab.says("accountings", "records", "DatabaseReachable")[0] == "False"
        lab.set_ready("True")
        await lab.ready("accountings", "records")
        assert lab.says("accountings", "records", "DatabaseReachable")[0] == "True"

    played(play)


def test_an_outside_slurmdbd_is_named_to_slurmctld_and_nothing_is_made_for_it() -> None:
    """S072, D1, feature 15: also where there was one inside before."""

    async def play(lab: Lab) -> None:
        await served(lab)
        lab.accounting(external=True, externalConfig={"host": "dbd.example.com"})
        await lab.until(lambda: "AccountingStorageHost=dbd.example.com\n" in lab.slurm_conf())
        assert "AccountingStoragePort=6819\n" in lab.slurm_conf()
        await lab.until(lambda: lab.says("accountings", "records")[1] == "External")
        assert "dbd.example.com:6819" in lab.says("accountings", "records")[2]
        await lab.until(lambda: not lab.uid(POD))
        for resource in ("/secrets", "/services", "apps/statefulsets"):
            assert lab.world.find(resource, "records-accounting") is None
        lab.accounting()
        await lab.until(lambda: lab.uid(POD))
        await lab.ready("accountings", "records")

    played(play)


def test_what_somebody_deletes_is_made_again() -> None:
    async def play(lab: Lab) -> None:
        await served(lab)
        paths = {
            "/secrets": f"{CORE}/secrets",
            "/services": f"{CORE}/services",
            "apps/statefulsets": f"/apis/apps/v1/namespaces/{SPACE}/statefulsets",
        }
        for resource, path in paths.items():
            lab.world.ask("DELETE", f"{path}/records-accounting", {})
            await lab.until(
                lambda resource=resource: lab.world.find(resource, "records-accounting") is not None
            )
        await lab.ready("accountings", "records")

    played(play)


def test_a_settled_accounting_is_neither_written_nor_read() -> None:
    async def play(lab: Lab) -> None:
        await served(lab)
        await asyncio.sleep(60)
        seen: list[str] = []

        def logs(_namespace: str, _name: str, container: str) -> str | None:
            seen.append(container)
            return lab.log

        lab.world.server.logs = logs
        lab.world.server.store.listeners.append(
            lambda change: seen.append(f"{change.resource} {change.key}")
        )
        await asyncio.sleep(600)
        busy = ("slurmdbd", "accounting", "secrets")
        assert [one for one in seen if any(word in one for word in busy)] == []

    played(play)


def test_a_plan_says_that_a_changed_password_restarts_nothing() -> None:
    """`penstock plan`, on a copy of what there is."""

    async def run() -> ClusterCopy:
        async with operated() as lab:
            await served(lab)
        store = lab.world.server.store
        return ClusterCopy(
            {
                resource: {
                    (one["metadata"].get("namespace", ""), one["metadata"]["name"]): one
                    for one in lab.world.server.objects(resource)
                }
                for resource in store.resources
            },
            {f"{SPACE}/slurm": "nobody asked"},
        )

    live = simulate(run())
    secret = deepcopy(live.objects["/secrets"][SPACE, "database"])
    secret["data"] = {"password": base64.b64encode(b"two").decode()}
    told = render_report(effects_of(live, [("/secrets", secret)], EPOCH + 600))
    assert "update Secret slurm/records-accounting: data.slurmdbd.conf" in told
    assert "records-accounting: slurmdbd.conf takes effect by a signal; slurmdbd runs on" in told
    assert "No pod restarts or ends at once." in told
    assert "two" not in told


def test_a_database_of_the_operator_has_a_password_that_outlives_the_accounting() -> None:
    """S169: its PVC stays as well, and a lost Secret is made once more."""

    def password(lab: Lab) -> str:
        found = lab.world.find("/secrets", "records-accounting-db")
        return base64.b64decode(found["data"]["password"]).decode() if found else ""

    def uses_it(lab: Lab) -> bool:
        lines = (lab.conf() or "").splitlines()
        wanted = {f"StoragePass={password(lab)}", "StorageHost=records-accounting-db"}
        return bool(password(lab)) and wanted <= set(lines)

    async def play(lab: Lab) -> None:
        lab.refer("records")
        lab.keys()
        embedded: dict[str, Any] = {
            "storageConfig": None,
            "embeddedDatabase": {"image": "mariadb:1"},
        }
        lab.accounting(**embedded)
        await lab.ready("accountings", "records")
        await lab.ready("controllers", "slurm")
        assert uses_it(lab)
        first = password(lab)
        database = lab.world.find("apps/statefulsets", "records-accounting-db") or {}
        policy = database["spec"]["persistentVolumeClaimRetentionPolicy"]
        assert policy["whenDeleted"] == "Retain"

        lab.world.ask("DELETE", f"{GROUP}/accountings/records", {})
        await lab.until(
            lambda: lab.world.find("apps/statefulsets", "records-accounting-db") is None
        )
        lab.accounting(**embedded)
        await lab.ready("accountings", "records")
        assert password(lab) == first

        pod = lab.uid("records-accounting-db-0")
        lab.world.ask("DELETE", f"{CORE}/secrets/records-accounting-db", {})
        await lab.until(lambda: uses_it(lab) and password(lab) != first)
        await lab.until(lambda: lab.uid("records-accounting-db-0") not in ("", pod))

        lab.secret("database", password="one")
        lab.accounting(storageConfig=STORAGE, embeddedDatabase=None)
        await lab.until(lambda: "StorageHost=db" in (lab.conf() or ""))
        await lab.until(lambda: lab.uid("records-accounting-db-0") == "")
        assert password(lab)

    played(play)
