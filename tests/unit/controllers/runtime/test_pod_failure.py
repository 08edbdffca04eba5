"""What logs of pods tell, on simulated machines: S056, S061."""

from __future__ import annotations

import asyncio
from typing import Any

from fault_plans.world import CORE, GROUP, SPACE
from penstock.api.cluster import labels as app_labels
from penstock.api.kubernetes.meta import Json
from penstock.api.slinky import labels as slinky_labels
from penstock.decide.auth.directory import FAILING
from unit.controllers.slinky.test_accounting import Lab, played

REFUSED = "error: failed to fetch remote configs: Protocol authentication error\n"
CONF = "[domain/example]\nid_provider = ldap\n"
DENIED = "[be[x]] Unable to establish connection [1432158227]: Authentication Failed\n"
CONNECTED = "[be[x]] Connection established.\n"


def says(lab: Lab, container: str, words: str) -> None:
    """Have containers of that name log these words."""
    before = lab.world.server.logs

    def log(namespace: str, name: str, asked: str) -> str | None:
        return words if asked == container else before(namespace, name, asked)

    lab.world.server.logs = log


def worker_ready(lab: Lab, status: str) -> None:
    body = {"status": {"conditions": [{"type": "Ready", "status": status}]}}
    path = f"{CORE}/pods/compute-0/status"
    lab.world.server.ask("PATCH", path, body, kind="strategic", user="kubelet")


def warnings(lab: Lab, reason: str) -> list[Json]:
    every: list[Json] = lab.world.server.objects("events.k8s.io/events", SPACE)
    return [one for one in every if one.get("reason") == reason]


def test_a_worker_with_another_key_is_told_of_with_both_secrets() -> None:
    """S061: and no log is read of a worker that works."""

    async def play(lab: Lab) -> None:
        await lab.ready("nodesets", "compute")
        says(lab, "slurmd", REFUSED)
        await asyncio.sleep(30)
        assert lab.says("nodesets", "compute")[0] == "True"
        worker_ready(lab, "False")
        await lab.until(lambda: lab.says("nodesets", "compute")[1] == "KeyDiffers")
        assert "Secret slurm-auth-slurm" in lab.says("nodesets", "compute")[2]
        assert "slurm.key" in lab.says("nodesets", "compute", "Stalled")[2]
        pod: Any = lab.world.find("/pods", "compute-0")
        assert pod["metadata"]["annotations"][slinky_labels.SLURM_KEY_HASH]
        says(lab, "slurmd", f"{REFUSED}slurmd started on Sun\n")
        await lab.until(lambda: lab.says("nodesets", "compute")[1] != "KeyDiffers")
        worker_ready(lab, "True")
        await lab.ready("nodesets", "compute")

    played(play)


def login(lab: Lab) -> None:
    """A LoginSet with a directory, and a pod of it that is ready."""
    lab.secret("sssd", **{"sssd.conf": CONF})
    spec = {
        "controllerRef": {"name": "slurm"},
        "sssdConfRef": {"name": "sssd", "key": "sssd.conf"},
    }
    meta: Json = {"name": "login", "namespace": SPACE}
    lab.world.ask(
        "POST", f"{GROUP}/loginsets", {"kind": "LoginSet", "metadata": meta, "spec": spec}
    )
    labels = app_labels.labels("login", "login")
    pod = {"kind": "Pod", "metadata": {"name": "login-a", "namespace": SPACE, "labels": labels}}
    lab.world.ask(
        "POST", f"{CORE}/pods", {**pod, "spec": {"containers": [{"name": "login", "image": "x"}]}}
    )
    body = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    path = f"{CORE}/pods/login-a/status"
    lab.world.server.ask("PATCH", path, body, kind="strategic", user="kubelet")


def test_a_loginset_warns_in_sssds_words_while_its_pods_stay_ready() -> None:
    """S056."""

    async def play(lab: Lab) -> None:
        says(lab, "login", DENIED)
        login(lab)
        await lab.until(lambda: lab.says("loginsets", "login", FAILING)[0] == "True")
        assert "Authentication Failed" in lab.says("loginsets", "login", FAILING)[2]
        await lab.ready("loginsets", "login")
        await lab.until(lambda: warnings(lab, "SssdFails"))
        # A reconcile that does not see the status of the last one yet repeats it.
        await asyncio.sleep(5)
        warned = len(warnings(lab, "SssdFails"))
        await asyncio.sleep(40)
        assert len(warnings(lab, "SssdFails")) == warned
        assert "Authentication Failed" in warnings(lab, "SssdFails")[0]["note"]
        says(lab, "login", CONNECTED)
        await lab.until(lambda: lab.says("loginsets", "login", FAILING)[0] == "False")

    played(play)
