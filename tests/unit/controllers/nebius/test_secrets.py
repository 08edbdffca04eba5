"""Keys of a SlurmCluster: created once, and used as they are."""

from __future__ import annotations

import asyncio
import base64
import threading
from types import SimpleNamespace
from typing import Any, cast

import pytest

from penstock.api.kubernetes.meta import Json, ObjectMeta
from penstock.api.nebius import names
from penstock.api.nebius.slurmcluster import SlurmCluster
from penstock.controllers.nebius.context import NebiusContext
from penstock.controllers.nebius.secrets import ClusterSecrets
from penstock.controllers.runtime.report import Events
from penstock.render.parts import ssh_host_keys
from unit.controllers.nebius.lab import CORE, JOB, SHAPES, SPACE, Lab, played

KEYS = {"slurm-munge": names.MUNGE_KEY, "slurm-rest-jwt-key": names.JWT_KEY}


def data(lab: Lab) -> dict[str, dict[str, str]]:
    return {name: lab.get("/secrets", name)["data"] for name in KEYS}


@pytest.mark.parametrize("shape", SHAPES)
def test_keys_stay_while_all_else_changes(shape: str) -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        before = data(lab)
        assert all(base64.b64decode(before[name][key]) for name, key in KEYS.items())
        await lab.world.crash(lab.world.processes[0])
        second = lab.world.operator()
        lab.world.edit_cluster(SPACE, {"customSlurmConfig": "KillWait=31\n"})
        lab.world.scale(1)
        await lab.available()
        assert data(lab) == before
        await lab.world.crash(second)

    played(play, shape)


def test_a_key_that_exists_is_used_and_not_written() -> None:
    key = base64.b64encode(b"0" * 32).decode()

    def before(lab: Lab) -> None:
        lab.make(f"{CORE}/secrets", "Secret", "slurm-rest-jwt-key", data={names.JWT_KEY: key})

    async def play(lab: Lab) -> None:
        await lab.available()
        found = lab.get("/secrets", "slurm-rest-jwt-key")
        assert found["data"] == {names.JWT_KEY: key}
        assert "ownerReferences" not in found["metadata"]

    played(play, before=before)


def test_a_secret_without_the_key_is_left_and_no_worker_is_drained_or_deleted() -> None:
    def before(lab: Lab) -> None:
        lab.make(f"{CORE}/secrets", "Secret", "slurm-rest-jwt-key", data={"other": "a2V5"})

    async def play(lab: Lab) -> None:
        await asyncio.sleep(60)
        assert lab.get("/secrets", "slurm-rest-jwt-key")["data"] == {"other": "a2V5"}
        assert lab.deletes() == []
        assert lab.condition()[0] != ""

    played(play, before=before)


def notes(lab: Lab, reason: str) -> list[str]:
    every: list[Json] = lab.world.server.objects("events.k8s.io/events", SPACE)
    return [one["note"] for one in every if one["reason"] == reason]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_deleted_key_of_a_working_cluster_is_there_again_and_the_same(shape: str) -> None:
    """A new pod with another key would be locked out, and take the cluster's jobs with it."""

    async def play(lab: Lab) -> None:
        await lab.available()
        before = data(lab)
        for name in KEYS:
            uid = lab.get("/secrets", name)["metadata"]["uid"]
            lab.world.ask("DELETE", f"{CORE}/secrets/{name}", {})
            await lab.until(lambda: lab.find("/secrets", name) is not None)  # noqa: B023
            assert lab.get("/secrets", name)["metadata"]["uid"] != uid
        assert data(lab) == before
        (owner,) = lab.get("/secrets", "slurm-munge")["metadata"]["ownerReferences"]
        assert owner["uid"] == lab.cluster["metadata"]["uid"]
        await lab.until(lambda: len(notes(lab, "KeyRestored")) == len(KEYS))
        await lab.available()
        assert lab.deletes() == []

    played(play, shape)


def test_a_key_that_its_user_changed_and_deleted_is_there_as_it_was_last() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        lab.world.objects.forgives.add("slurm-munge")
        changed = base64.b64encode(b"n" * 64).decode()
        path = f"{CORE}/secrets/slurm-munge"
        lab.world.ask("PATCH", path, {"data": {names.MUNGE_KEY: changed}})
        await asyncio.sleep(5)
        lab.world.ask("PATCH", path, {"data": {names.MUNGE_KEY: "c2hvcnQ="}})
        await lab.until(lambda: lab.condition()[1] == "KeyUnusable")
        lab.world.ask("DELETE", path, {})
        await lab.until(lambda: lab.find("/secrets", "slurm-munge") is not None)
        assert data(lab)["slurm-munge"] == {names.MUNGE_KEY: changed}
        await lab.available()

    played(play)


def test_a_key_that_no_daemon_can_read_is_not_what_is_restored() -> None:
    """Who emptied a key and deletes its Secret wants one that works."""

    async def play(lab: Lab) -> None:
        await lab.available()
        before = data(lab)["slurm-rest-jwt-key"]
        lab.world.objects.forgives.add("slurm-rest-jwt-key")
        path = f"{CORE}/secrets/slurm-rest-jwt-key"
        lab.world.ask("PATCH", path, {"data": {names.JWT_KEY: "", "other": "a2V5"}})
        await asyncio.sleep(5)
        lab.world.ask("DELETE", path, {})
        await lab.until(lambda: lab.find("/secrets", "slurm-rest-jwt-key") is not None)
        assert data(lab)["slurm-rest-jwt-key"] == before
        await lab.available()

    played(play)


def test_a_secret_of_the_user_is_not_the_clusters_once_it_is_restored() -> None:
    """The garbage collector would delete it with the cluster, and its own program not take it."""
    key = base64.b64encode(b"0" * 64).decode()

    def before(lab: Lab) -> None:
        lab.make(f"{CORE}/secrets", "Secret", "slurm-munge", data={names.MUNGE_KEY: key})

    async def play(lab: Lab) -> None:
        await lab.available()
        lab.world.ask("DELETE", f"{CORE}/secrets/slurm-munge", {})
        await lab.until(lambda: lab.find("/secrets", "slurm-munge") is not None)
        found = lab.get("/secrets", "slurm-munge")
        assert found["data"] == {names.MUNGE_KEY: key}
        assert not found["metadata"].keys() & {"labels", "ownerReferences"}
        await lab.available()

    played(play, before=before)


def test_a_key_of_a_deleted_cluster_is_not_what_the_next_one_of_its_name_restores() -> None:
    """A restored one would be nobody's; its slurmctld may still answer for a moment."""

    async def play(lab: Lab) -> None:
        await lab.available()
        lab.make(f"{CORE}/configmaps", "ConfigMap", "stays")
        uid = lab.get("/configmaps", "stays")["metadata"]["uid"]
        # The garbage collector leaves what one of its owners still needs.
        more = {"apiVersion": "v1", "kind": "ConfigMap", "name": "stays", "uid": uid}
        path, owned = f"{CORE}/secrets/slurm-munge", {"ownerReferences": [FORMER, more]}
        lab.world.ask("PATCH", path, {"metadata": {**owned, "labels": None}})
        await asyncio.sleep(5)
        lab.world.ask("DELETE", path, {})
        await lab.until(lambda: lab.find("/secrets", "slurm-munge") is not None)
        found = lab.get("/secrets", "slurm-munge")["metadata"]
        (owner,) = found["ownerReferences"]
        assert owner["uid"] != FORMER["uid"]
        assert found["labels"]
        await lab.available()

    played(play)


FORMER = {
    "apiVersion": "slurm.nebius.ai/v1",
    "kind": "SlurmCluster",
    "name": "slurm",
    "uid": "former",
    "controller": True,
}
OTHER = {
    "apiVersion": "slinky.slurm.net/v1beta1",
    "kind": "Controller",
    "name": "records",
    "uid": "other",
    "controller": True,
}


def test_no_cluster_begins_with_a_key_that_was_generated_for_another_one() -> None:
    key = base64.b64encode(b"0" * 64).decode()
    name = "slurm-rest-jwt-key"

    def before(lab: Lab) -> None:
        lab.make(f"{CORE}/secrets", "Secret", name, data={names.JWT_KEY: key})
        lab.make(f"{CORE}/configmaps", "ConfigMap", "stays")
        uid = lab.get("/configmaps", "stays")["metadata"]["uid"]
        # The garbage collector leaves what one of its owners still needs.
        more = {"apiVersion": "v1", "kind": "ConfigMap", "name": "stays", "uid": uid}
        owners = {"metadata": {"ownerReferences": [OTHER, more]}}
        lab.world.ask("PATCH", f"{CORE}/secrets/{name}", owners)

    async def play(lab: Lab) -> None:
        await lab.until(lambda: lab.condition()[1] == "KeyOfOtherCluster")
        assert lab.condition()[2].startswith(
            f"Secret {name} was generated for Controller records, whose key stays its own. Delete "
            "this SlurmCluster"
        )
        await asyncio.sleep(30)
        assert lab.pods() == []
        assert lab.get("/secrets", name)["data"] == {names.JWT_KEY: key}
        lab.world.ask("DELETE", f"{CORE}/secrets/{name}", {})
        await lab.available()

    played(play, before=before)


def test_the_jail_is_filled_while_keys_are_made() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        assert all(
            lab.made.index(f"jobs/{JOB}") < lab.made.index(f"secrets/{name}") for name in KEYS
        )

    played(play)


async def test_other_clusters_are_reconciled_while_keys_of_ssh_are_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They take a second of CPU: in the event loop leases and watches would wait for it."""
    goes_on, others, created = threading.Event(), asyncio.Event(), list[str]()

    def generate() -> dict[str, str]:
        assert goes_on.wait(10), "the event loop waits for the keys"
        return {}

    async def create_secret(*given: Any) -> None:
        created.append(given[-1]["metadata"]["name"])
        if len(created) == len(KEYS):
            others.set()

    monkeypatch.setattr(ssh_host_keys, "generate", generate)
    objects = SimpleNamespace(create_secret=create_secret)

    def nothing(*_: Any) -> Any:
        return SimpleNamespace(former={})

    def states(*_: Any) -> Any:
        return SimpleNamespace(of=nothing)

    def never(_: Any) -> bool:
        return False

    context = SimpleNamespace(
        caches=SimpleNamespace(secrets={}),
        objects=objects,
        secrets=None,
        clusters=SimpleNamespace(served=never),
        states=states,
    )
    secrets = ClusterSecrets(cast("NebiusContext", context))
    cluster = SlurmCluster(metadata=ObjectMeta(name="slurm", namespace=SPACE))
    making = asyncio.create_task(secrets.apply(cluster, cast("Events", None)))
    await others.wait()
    await asyncio.sleep(0.1)
    goes_on.set()
    await making
    assert created == [*KEYS, names.sshd_keys_secret(cluster)]
