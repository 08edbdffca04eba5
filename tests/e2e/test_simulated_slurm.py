"""The simulated Slurm answers as the real one does, scenario by scenario."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial

import pytest

from e2e_kit import manifests
from e2e_kit.cluster import Cluster
from penstock.simulation.event_loop import EPOCH, simulate
from penstock.simulation.slurm.slurmctld import SimulatedSlurmctld
from penstock.simulation.slurm.slurmrestd import InMemorySlurmrestd
from penstock.slurm.auth import jwt
from penstock.slurm.rest import AuthError, Slurmrestd
from penstock.slurm.state import Node
from support.scenarios_slurm import SLURM, Notes, Slurm

NODE = "compute-0"
Scenario = Callable[[Slurm], Awaitable[Notes]]


@pytest.fixture(scope="module")
def cluster(clusters: Callable[[str], Cluster]) -> Cluster:
    cluster = clusters("agree")
    cluster.create(manifests.controller(), manifests.restapi(), manifests.nodeset(1))
    cluster.until_ready("nodesets", "compute")
    cluster.until_idle(NODE)
    return cluster


@pytest.mark.parametrize("scenario", SLURM, ids=lambda one: one.__name__)
async def test_the_simulation_agrees_with_a_real_slurm(
    cluster: Cluster, scenario: Scenario
) -> None:
    rest = Slurmrestd(cluster.url, lambda: cluster.token("slurm"))

    async def start() -> int:
        options = ("--nodelist", NODE, "--exclusive", "--output=/dev/null")
        job = await asyncio.to_thread(cluster.submit, "sleep 600", *options)
        await asyncio.to_thread(cluster.until_job, job, "RUNNING")
        return job

    async def cancel(job: int) -> None:
        await asyncio.to_thread(cluster.run, "scancel", str(job))

    async def settle(wanted: Callable[[Node], bool]) -> None:
        for _ in range(300):
            if wanted(await rest.node(NODE)):
                return
            await asyncio.sleep(0.2)
        raise AssertionError(f"the node is {await rest.node(NODE)}")

    real = await scenario(Slurm(rest, NODE, start, cancel, settle))
    assert await asyncio.to_thread(simulated, scenario) == real


async def taken(slurm: Callable[[Callable[[], str]], Slurmrestd], token: str) -> bool:
    """Whether nodes are told to who has the token."""
    try:
        await slurm(lambda: token).nodes()
    except AuthError:
        return False
    return True


async def test_a_token_is_taken_before_it_begins_and_not_after_its_end(cluster: Cluster) -> None:
    key, now = b"k" * 32, time.time()
    fake = InMemorySlurmrestd(SimulatedSlurmctld(time.time), key=key).exchange
    tokens = {
        "good": (cluster.token("slurm"), jwt.mint(key, "slurm", 600, now)),
        "early": (cluster.early("slurm"), jwt.mint(key, "slurm", 600, now + 3600)),
        "expired": (cluster.expired("slurm"), jwt.mint(key, "slurm", 60, now - 3600)),
    }
    for name, (real, simulated_) in tokens.items():
        answered = await taken(partial(Slurmrestd, cluster.url), real)
        assert answered == (name != "expired"), name
        in_memory = partial(Slurmrestd, "http://simulated", exchange=fake)
        assert await taken(in_memory, simulated_) == answered, name


def simulated(scenario: Scenario) -> Notes:
    async def main() -> Notes:
        loop = asyncio.get_running_loop()
        ctld = SimulatedSlurmctld(lambda: EPOCH + loop.time())
        ctld.register(NODE)
        rest = Slurmrestd(
            "http://simulated", lambda: "token", exchange=InMemorySlurmrestd(ctld).exchange
        )

        async def start() -> int:
            return ctld.run(NODE).id

        async def cancel(job: int) -> None:
            ctld.cancel(job)

        async def settle(wanted: Callable[[Node], bool]) -> None:
            assert wanted(await rest.node(NODE))

        return await scenario(Slurm(rest, NODE, start, cancel, settle))

    return simulate(main())
