"""S111: a worker whose munge key differs, on simulated Kubernetes nodes."""

from __future__ import annotations

import asyncio
import base64

import pytest

from fault_plans.world import SPACE
from penstock.api.cluster.marks import KEYS
from penstock.slurm.auth.key_rotation import named
from unit.controllers.nebius.lab import CLUSTERS, CURRENT, NODESETS, OLDER, Lab, played

DENIED = "slurmd: error: Munge decode failed: Invalid credential\n"


def keep_out(lab: Lab, out: set[str], logs: dict[str, str]) -> None:
    """These slurmds run and cannot register; `logs` has the lines of pods."""
    registers = lab.world.slurm.registers

    def register(name: str, *, asked: bool = False) -> bool:
        return False if name in out else registers(name, asked=asked)

    lab.world.slurm.registers = register
    before = lab.world.server.logs

    def log(namespace: str, name: str, asked: str) -> str | None:
        return logs.get(name, "") if asked == "slurmd" else before(namespace, name, asked)

    lab.world.server.logs = log


@pytest.mark.parametrize(("shape", "plural"), [(OLDER, CLUSTERS), (CURRENT, NODESETS)])
def test_a_worker_with_another_key_is_named_until_it_is_registered(shape: str, plural: str) -> None:
    """No log is read of a worker that works, nor is another fault taken for this one."""

    async def play(lab: Lab) -> None:
        await lab.available()
        worker = max(lab.world.slurm.ctld.nodes)
        new = worker[:-1] + "2"
        name = worker.rpartition("-")[0] if plural == NODESETS else "slurm"
        out, logs = {new}, {worker: DENIED}
        keep_out(lab, out, logs)
        lab.world.scale(3)
        await asyncio.sleep(60)
        assert lab.condition("Ready", plural, name)[1] != "KeyDiffers"
        logs[new] = DENIED
        await lab.until(lambda: lab.condition("Ready", plural, name)[1] == "KeyDiffers")
        message = lab.condition("Ready", plural, name)[2]
        assert f"the munge key of {new} is not that of slurmctld (Invalid credential)" in message
        assert "Both have key munge.key of Secret slurm-munge, which was changed" in message
        out.clear()
        lab.world.slurm.registers(new)
        await lab.until(lambda: lab.condition("Ready", plural, name)[0] == "True")

    played(play, shape)


def rotate(lab: Lab, key: bytes, late: frozenset[str] = frozenset()) -> set[str]:
    """Change the key in the Secret; sidecars follow it, but those that are late.

    Returns the names of the latter, from which a test may remove some.
    """
    path = f"/api/v1/namespaces/{SPACE}/secrets/slurm-munge"
    before, left = lab.world.server.logs, set(late)

    def log(namespace: str, name: str, asked: str) -> str | None:
        if asked != "munge":
            return before(namespace, name, asked)
        return f"munge: munged has the key {'0' * 16 if name in left else named(key)}\n"

    lab.world.server.logs = log
    lab.world.objects.forgives.add("slurm-munge")
    lab.world.ask("PATCH", path, {"data": {"munge.key": base64.b64encode(key).decode()}})
    return left


def annotated(lab: Lab) -> dict[str, str]:
    """The annotation of each pod that has one."""
    return {
        pod["metadata"]["name"]: pod["metadata"]["annotations"][KEYS]
        for pod in lab.world.server.objects("/pods", SPACE)
        if KEYS in pod["metadata"].get("annotations", {})
    }


@pytest.mark.parametrize("shape", [OLDER, CURRENT])
def test_a_changed_key_is_given_to_all_pods_and_no_pod_is_replaced(shape: str) -> None:
    """S163: slurmctld's pod is annotated last, and nothing is written while the key stays."""

    async def play(lab: Lab) -> None:
        await lab.available()
        await lab.settled()
        (slurmctld,) = annotated(lab)
        assert await lab.settled() == []
        assert lab.condition("KeysInUse") == ("", "", "")
        before, gone = len(lab.world.writes), len(lab.gone)
        rotate(lab, b"n" * 64)
        await lab.until(lambda: lab.condition("KeysInUse")[0] == "True")
        patched = [
            what.rpartition("/")[2]
            for _, what in lab.world.writes[before:]
            if what.startswith("PATCH") and "/pods/" in what and not what.endswith("/status")
        ]
        assert set(lab.world.slurm.ctld.nodes) < set(annotated(lab))
        assert [one for one in annotated(lab) if "login" in one]
        assert set(annotated(lab).values()) == {named(b"n" * 64)}
        assert patched[-1] == slurmctld
        assert sorted(set(patched)) == sorted(annotated(lab))
        assert len(lab.gone) == gone
        assert await lab.settled() == []

    played(play, shape)


def test_a_pod_that_keeps_the_former_key_is_named_until_it_follows() -> None:
    """S163: such as one with munged of an older image."""

    async def play(lab: Lab) -> None:
        await lab.available()
        await lab.settled()
        worker = max(lab.world.slurm.ctld.nodes)
        late = rotate(lab, b"n" * 64, frozenset({worker}))
        await lab.until(lambda: lab.condition("KeysInUse")[0] == "False", 300)
        await asyncio.sleep(30)
        assert lab.condition("KeysInUse")[1:] == (
            "KeyChanging",
            f"munge.key was changed: munged of {worker} has the former key. Delete these pods, "
            "whose images do not follow the key. See https://penstock.dev/r/KeyChanging",
        )
        late.clear()
        await lab.until(lambda: lab.condition("KeysInUse")[0] == "True")

    played(play, CURRENT)


def test_a_key_that_munged_rejects_is_not_given_to_any_pod() -> None:
    """S163: sidecars keep the former one, and the condition has the length."""

    async def play(lab: Lab) -> None:
        await lab.available()
        await lab.settled()
        before = annotated(lab)
        rotate(lab, b"n" * 31)
        await lab.until(lambda: lab.condition("Ready")[1] == "KeyUnusable")
        assert annotated(lab) == before
        assert lab.condition("KeysInUse") == ("", "", "")

    played(play, CURRENT)
