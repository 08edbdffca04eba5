"""A changed slurm.key: how every daemon of a thousand workers comes to it."""

from __future__ import annotations

import asyncio
import base64
import secrets

from bench.fleet.cluster import CLUSTER, SPACE
from bench.fleet.modes.figures import Row
from bench.fleet.operator import Operator
from bench.fleet.phase import Phase
from bench.fleet.site import Json, Site
from penstock.api.kubernetes.kinds import SECRETS
from penstock.slurm.auth import key_rotation as keyring

PART = "slurm.key"
KEY, RING = f"{CLUSTER}-auth-slurm", f"{CLUSTER}-auth-slurm-ring"
TIMEOUT_S = 300.0
LOOK_S = 0.2
SECONDS = "changed until only the new one is good"
TO_WORKERS = "writes per worker"
OTHERS = "writes but those to workers"
DELETED = "worker pods deleted"
CPU = "operator CPU per worker"
CALLS = "Slurm calls"
UNITS = {SECONDS: "s", TO_WORKERS: "", OTHERS: "", DELETED: "", CPU: "ms", CALLS: ""}


async def measure(place: Site, operator: Operator) -> tuple[Row, list[str]]:
    """All of it, with the workers that there are."""
    await operator.settled()
    before = place.uids()
    key = secrets.token_bytes(1024)
    phase = await Phase.begin(place, operator)
    body: Json = {"data": {"slurm.key": base64.b64encode(key).decode()}}
    await place.client.patch(SECRETS, SPACE, KEY, body)
    end = await _settled(place, key)
    await operator.settled()
    used = await phase.end()
    told = used.counts.requests["patch pods"]
    gone = len(before.items() - place.uids().items())
    row = {
        SECONDS: end - phase.began,
        TO_WORKERS: told / len(before),
        OTHERS: used.counts.writes - told,
        DELETED: gone + used.counts.requests["delete pods"],
        CPU: 1000 * used.cpu / len(before),
        CALLS: used.slurm,
    }
    return row, [f"changed: {used.words}"]


async def _settled(place: Site, key: bytes) -> float:
    """When the ring has this key and no other."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            ring = keyring.read((await place.client.get(SECRETS, SPACE, RING)).data)
            if ring is not None and ring.phase is keyring.Phase.SETTLED and ring.current == key:
                return loop.time()
            await asyncio.sleep(LOOK_S)
