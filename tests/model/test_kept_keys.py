"""Generated keys are there as long as slurmctld's state is."""

from __future__ import annotations

import asyncio

from fault_plans.logs import logging
from fault_plans.plan import Layout
from fault_plans.world import GROUP, World
from penstock.api.kubernetes.meta import Json
from penstock.simulation.event_loop import simulate

KEYS = ("slurm-auth-slurm", "slurm-auth-jwt")
CONTROLLER = f"{GROUP}/controllers/slurm"
SECRETS = "/api/v1/namespaces/slurm/secrets"


def keys(world: World) -> dict[str, Json]:
    """The generated Secrets that there are."""
    found = {name: world.find("/secrets", name) for name in KEYS}
    return {name: one for name, one in found.items() if one is not None}


def data(world: World) -> dict[str, Json]:
    return {name: one["data"] for name, one in keys(world).items()}


async def _settled() -> World:
    world = World(1, Layout())
    world.declare(1)
    world.operator()
    await asyncio.sleep(60.0)
    assert keys(world).keys() == set(KEYS)
    return world


async def _made_again() -> None:
    world = await _settled()
    before = data(world)
    pods = {name for name in ("compute-0",) if world.find("/pods", name)}
    world.ask("DELETE", CONTROLLER, {})
    await asyncio.sleep(60.0)
    assert world.find("slinky.slurm.net/controllers", "slurm") is None
    assert world.find("apps/statefulsets", "slurm-controller") is None
    assert data(world) == before
    spec: Json = {"persistence": {"enabled": True}}
    body = {"kind": "Controller", "metadata": {"name": "slurm"}, "spec": spec}
    world.ask("POST", f"{GROUP}/controllers", body)
    await asyncio.sleep(60.0)
    assert data(world) == before
    assert {name for name in pods if world.find("/pods", name)} == pods
    await world.crash(world.processes[0])


def test_a_controller_that_is_made_again_has_the_keys_that_it_had() -> None:
    """D40: they stay when it is deleted, as the claim with its state does."""
    with logging(show=False):
        simulate(_made_again())


async def _of_an_earlier_version() -> None:
    world = await _settled()
    controller = world.find("slinky.slurm.net/controllers", "slurm")
    assert controller is not None
    owner = {
        "apiVersion": "slinky.slurm.net/v1beta1",
        "kind": "Controller",
        "name": "slurm",
        "uid": controller["metadata"]["uid"],
        "controller": True,
    }
    before = data(world)
    for name in KEYS:
        world.ask("PATCH", f"{SECRETS}/{name}", {"metadata": {"ownerReferences": [owner]}})
    await asyncio.sleep(30.0)
    assert not any(one["metadata"].get("ownerReferences") for one in keys(world).values())
    assert data(world) == before
    await world.crash(world.processes[0])


def test_keys_that_belonged_to_their_controller_are_let_go() -> None:
    """D40."""
    with logging(show=False):
        simulate(_of_an_earlier_version())


async def _without_state() -> None:
    world = World(1, Layout())
    spec: Json = {"persistence": {"enabled": False}}
    body = {"kind": "Controller", "metadata": {"name": "slurm"}, "spec": spec}
    world.ask("POST", f"{GROUP}/controllers", body)
    world.operator()
    await asyncio.sleep(60.0)
    assert keys(world).keys() == set(KEYS)
    world.ask("DELETE", CONTROLLER, {})
    await asyncio.sleep(60.0)
    assert keys(world) == {}
    await world.crash(world.processes[0])


def test_keys_of_a_cluster_that_keeps_no_state_go_with_it() -> None:
    with logging(show=False):
        simulate(_without_state())
