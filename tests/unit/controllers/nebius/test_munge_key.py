"""S111: a worker whose munge key differs, on simulated Kubernetes nodes."""

from __future__ import annotations

import asyncio

import pytest

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
