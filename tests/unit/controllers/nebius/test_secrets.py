"""Keys of a SlurmCluster: created once, and used as they are."""

from __future__ import annotations

import asyncio
import base64

import pytest

from penstock.api.nebius import names
from unit.controllers.nebius.lab import CORE, SHAPES, SPACE, Lab, played

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
