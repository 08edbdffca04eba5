"""A NodeSet whose declarations of GPUs differ says so, until they do not."""

from __future__ import annotations

from fault_plans.world import GROUP
from penstock.api.kubernetes.meta import Json
from unit.controllers.slinky.test_accounting import Lab, played

CONFIG_MAPS = "/api/v1/namespaces/slurm/configmaps"
CONDITION = "GresMismatch"


def gres_conf(files: str) -> Json:
    return {
        "kind": "ConfigMap",
        "metadata": {"name": "files"},
        "data": {"gres.conf": f"Name=gpu File=/dev/nvidia{files}\n"},
    }


def test_gpus_that_are_declared_differently_are_a_condition_until_they_agree() -> None:
    """Feature row 55: Ready does not depend on it, and a changed gres.conf is looked at."""

    async def play(lab: Lab) -> None:
        await lab.ready("nodesets", "compute")
        assert lab.says("nodesets", "compute", CONDITION)[0] != "True"
        lab.world.ask("POST", CONFIG_MAPS, gres_conf("[0-1]"))
        controller: Json = {"extraConf": "GresTypes=gpu\n", "configFileRefs": [{"name": "files"}]}
        lab.patch(f"{GROUP}/controllers/slurm", {"spec": controller})
        slurmd: Json = {"resources": {"limits": {"nvidia.com/gpu": 2}}}
        nodeset: Json = {"extraConf": "Gres=gpu:4", "slurmd": slurmd}
        lab.patch(f"{GROUP}/nodesets/compute", {"spec": nodeset})
        await lab.until(lambda: lab.says("nodesets", "compute", CONDITION)[1] == "GresDiffers")
        said = lab.says("nodesets", "compute", CONDITION)[2]
        assert "2 nvidia.com/gpu, and Gres in spec.extraConf has 4" in said
        words = "gres.conf has 2 for compute-0, and Gres has 4"
        await lab.until(lambda: words in lab.says("nodesets", "compute", CONDITION)[2])
        lab.patch(f"{GROUP}/nodesets/compute", {"spec": {"extraConf": "Gres=gpu:2"}})
        await lab.until(lambda: lab.says("nodesets", "compute", CONDITION)[0] == "False")
        lab.patch(f"{CONFIG_MAPS}/files", gres_conf("0"))
        await lab.until(lambda: "gres.conf has 1" in lab.says("nodesets", "compute", CONDITION)[2])
        lab.patch(f"{CONFIG_MAPS}/files", gres_conf("[0-1]"))
        await lab.until(lambda: lab.says("nodesets", "compute", CONDITION)[0] == "False")
        await lab.ready("nodesets", "compute")

    played(play)
