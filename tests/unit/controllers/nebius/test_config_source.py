"""The hash of a SlurmCluster's configuration, which the operator and the jail compute apart."""

from __future__ import annotations

import hashlib

import pytest

from penstock.slurm.conf.manifest import MANIFEST
from unit.controllers.nebius.lab import SHAPES, SPACE, Lab, played


@pytest.mark.parametrize("shape", SHAPES)
def test_the_hash_is_that_of_the_manifest_in_the_jail(shape: str) -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        manifest = lab.world.jails[SPACE].files[MANIFEST]
        assert lab.cluster["status"]["effectiveConfigHash"] == hashlib.sha256(manifest).hexdigest()

    played(play, shape)
