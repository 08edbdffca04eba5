"""Connections to the Slurm of SlurmClusters."""

from __future__ import annotations

import base64

from penstock.api.nebius import names
from unit.controllers.nebius.lab import CORE, SPACE, Lab, played

NAME = names.jwt_secret("slurm")
PATH = f"{CORE}/secrets/{NAME}"


def test_a_changed_key_is_used_at_once() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        lab.world.objects.forgives.add(NAME)
        key = base64.b64encode(b"another key of 32 bytes or more.").decode()
        lab.world.ask("PATCH", PATH, {"data": {names.JWT_KEY: key}})
        lab.world.scale(3)
        await lab.available()
        assert len(lab.pods("compute")) == 3

    played(play)


def test_without_a_key_nothing_is_known_and_no_worker_goes() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        lab.world.objects.forgives.add(NAME)
        lab.world.ask("PATCH", PATH, {"data": {names.JWT_KEY: None}})
        lab.world.scale(1)
        await lab.settled(60)
        assert len(lab.pods("compute")) == 2
        assert lab.deletes() == []
        key = base64.b64encode(b"another key of 32 bytes or more.").decode()
        lab.world.ask("PATCH", PATH, {"data": {names.JWT_KEY: key}})
        await lab.until(lambda: len(lab.pods("compute")) == 1)

    played(play)


def test_another_cluster_of_the_name_has_a_connection_of_its_own() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        lab.delete("slurmclusters")
        await lab.until(lambda: lab.find("/secrets", NAME) is None)
        lab.world.declare_cluster(SPACE)
        await lab.available()

    played(play)
