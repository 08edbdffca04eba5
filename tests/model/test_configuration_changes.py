"""Many changes of a configuration, good and bad, in random order and at random paces.

Beside tests/e2e/test_configuration_changes.py, which does the same on real Slurm, with fewer seeds.
`PENSTOCK_CHANGES_SEEDS=500 pytest -n auto THIS_FILE` plays more.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from fault_plans.logs import logging
from fault_plans.plan import Layout
from fault_plans.world import GROUP, NODESET, World
from penstock.simulation.event_loop import simulate

PARTITIONS = "/apis/penstock.dev/v1alpha1/namespaces/slurm/partitions"
BAD_QOS = "AllowQos=nosuch"
CHANGES = 16
SEEDS = range(1, 1 + int(os.environ.get("PENSTOCK_CHANGES_SEEDS") or 12))


@dataclass
class Declared:
    """What is declared, and of it the last that Slurm can take."""

    slice: int = 40
    raw: int = 50
    compute: int = 30
    wide: int | None = None
    bad: str = ""
    bad_compute: str = ""
    bad_wide: bool = False

    def extra_conf(self) -> str:
        lines = [
            f"SchedulerTimeSlice={self.slice}",
            f"PartitionName=raw Nodes=ALL MaxTime={self.raw}",
            *filter(None, [self.bad]),
        ]
        return "\n".join(lines) + "\n"


@dataclass
class Story:
    """Declares one thing after the other."""

    world: World
    chance: random.Random
    declared: Declared = field(default_factory=Declared)
    told: list[str] = field(default_factory=list[str])

    def controller(self) -> None:
        spec = {"extraConf": self.declared.extra_conf()}
        self.world.ask("PATCH", f"{GROUP}/controllers/slurm", {"spec": spec})

    def nodeset(self) -> None:
        config = f"MaxTime={self.declared.compute} {self.declared.bad_compute}".strip()
        spec = {"partition": {"enabled": True, "config": config}}
        self.world.ask("PATCH", f"{GROUP}/nodesets/{NODESET}", {"spec": spec})

    def partition(self) -> None:
        one = self.declared
        spec: dict[str, Any] = {
            "controllerRef": {"name": "slurm"},
            "nodeSets": [NODESET],
            "maxTime": str(one.wide),
            "allowQos": ["nosuch"] if one.bad_wide else None,
        }
        if self.world.find("penstock.dev/partitions", "wide") is not None:
            self.world.ask("PATCH", f"{PARTITIONS}/wide", {"spec": spec})
            return
        body = {
            "apiVersion": "penstock.dev/v1alpha1",
            "kind": "Partition",
            "metadata": {"name": "wide", "namespace": "slurm"},
            "spec": {key: value for key, value in spec.items() if value is not None},
        }
        self.world.ask("POST", PARTITIONS, body)

    async def good(self) -> None:
        one, minutes = self.declared, self.chance.randrange(1, 59)
        kind = self.chance.choice(("key", "raw", "compute", "wide", "wide"))
        self.told.append(f"{kind} {minutes}")
        match kind:
            case "key":
                one.slice, one.bad = minutes, ""
                self.controller()
            case "raw":
                one.raw, one.bad = minutes, ""
                self.controller()
            case "compute":
                one.compute, one.bad_compute = minutes, ""
                self.nodeset()
            case _ if one.wide is not None and self.chance.random() < 0.3:
                one.wide, one.bad_wide = None, False
                self.told[-1] = "no wide"
                self.world.ask("DELETE", f"{PARTITIONS}/wide", {})
            case _:
                one.wide, one.bad_wide = minutes, False
                self.partition()

    async def bad(self) -> None:
        """Make one that Slurm refuses: what was good before it is in effect before."""
        await self.settled()
        one, kind = self.declared, self.chance.choice(("key", "compute", "wide"))
        self.told.append(f"bad {kind}")
        match kind:
            case "key":
                one.bad = "BogusKey=1"
                self.controller()
            case "compute":
                one.bad_compute = BAD_QOS
                self.nodeset()
            case _:
                if one.wide is None:
                    one.wide = 7
                    self.partition()
                    await self.settled()
                one.bad_wide = True
                self.partition()

    def found(self) -> dict[str, int | None]:
        """What slurmctld has, by partition, and the key of its file."""
        shown = {
            name: one["maximums"]["time"]["number"] if one["maximums"]["time"]["set"] else None
            for name, one in self.world.slurm.ctld.partitions.items()
        }
        key = next(
            (int(line.partition("=")[2]) for line in self.file() if line.startswith("Scheduler")),
            None,
        )
        return {**shown, "slice": key}

    def file(self) -> list[str]:
        found = self.world.find("/configmaps", "slurm-config") or {"data": {"slurm.conf": ""}}
        return found["data"]["slurm.conf"].splitlines()

    def expected(self) -> dict[str, int]:
        one = self.declared
        times = {"raw": one.raw, NODESET: one.compute, "slice": one.slice}
        return times if one.wide is None else {**times, "wide": one.wide}

    async def settled(self) -> None:
        await self.until(lambda: self.found() == self.expected())

    async def until(self, holds: Callable[[], bool]) -> None:
        for _ in range(1200):
            if holds():
                return
            await asyncio.sleep(0.05)
        raise AssertionError(f"{self.told}: {self.found()}, wanted {self.expected()}")


async def _changes(seed: int) -> None:
    world, chance = World(seed, Layout()), random.Random(seed)
    world.declare(1)
    story = Story(world, chance)
    story.controller()
    story.nodeset()
    world.operator()
    await asyncio.sleep(60.0)
    for _ in range(CHANGES):
        if chance.random() < 1 / 3:
            await story.bad()
        else:
            await story.good()
        await asyncio.sleep(chance.choice((0.05, 0.3, 1.0, 3.0, 40.0)))
    await story.settled()
    # And so it stays, also for a slurmctld that starts with its file.
    await asyncio.sleep(90.0)
    await story.settled()
    world.slurm.reads({"slurm.conf": "\n".join(story.file())})
    await story.settled()
    assert not {line for line in story.file() if "Bogus" in line or "nosuch" in line}
    for process in world.processes:
        await process.stop()


@pytest.mark.parametrize("seed", SEEDS)
def test_the_last_good_declaration_is_in_effect_whatever_was_refused(seed: int) -> None:
    with logging(show=False):
        simulate(_changes(seed))
