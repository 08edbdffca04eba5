"""A NodeSet whose workers have enroot says what they lack for it."""

from __future__ import annotations

from fault_plans.world import GROUP
from unit.controllers.slinky.test_accounting import Lab, played

IMAGE = "ghcr.io/slinkyproject/slurmd-pyxis:26.05-ubuntu26.04"


def test_rights_that_containers_lack_are_a_condition_until_they_are_given() -> None:
    """S045: Ready does not depend on it."""

    async def play(lab: Lab) -> None:
        await lab.ready("nodesets", "compute")
        assert lab.says("nodesets", "compute", "ContainersLimited")[0] != "True"
        for privileged, told in ((False, "True"), (True, "False")):
            slurmd = {"image": IMAGE, "securityContext": {"privileged": privileged}}
            lab.patch(f"{GROUP}/nodesets/compute", {"spec": {"slurmd": slurmd}})
            await lab.until(
                lambda told=told: lab.says("nodesets", "compute", "ContainersLimited")[0] == told
            )
            await lab.ready("nodesets", "compute")

    played(play)
