"""A NodeSet that no job can use under the cluster's topology.yaml is not Ready, until it is."""

from __future__ import annotations

from fault_plans.world import GROUP
from penstock.api.kubernetes.meta import Json
from unit.controllers.slinky.test_accounting import Lab, played

CONFIG_MAPS = "/api/v1/namespaces/slurm/configmaps"
YAML = "- topology: net\n  cluster_default: true\n  tree: {switches: [{switch: s1}]}\n"


def test_a_nodeset_outside_of_the_default_tree_is_not_ready_until_its_nodes_are_in_it() -> None:
    """Feature row 49: it was Ready, and each job was rejected."""

    async def play(lab: Lab) -> None:
        await lab.ready("nodesets", "compute")
        files: Json = {"kind": "ConfigMap", "metadata": {"name": "files"}}
        lab.world.ask("POST", CONFIG_MAPS, {**files, "data": {"topology.yaml": YAML}})
        given: Json = {"spec": {"configFileRefs": [{"name": "files"}]}}
        lab.patch(f"{GROUP}/controllers/slurm", given)
        await lab.until(lambda: lab.says("nodesets", "compute", "Ready")[1] == "TopologyMissing")
        said = lab.says("nodesets", "compute", "Ready")
        assert said[0] == "False"
        assert "kubectl annotate node" in said[2]
        lab.patch(f"{GROUP}/controllers/slurm", {"spec": {"configFileRefs": None}})
        await lab.ready("nodesets", "compute")

    played(play)
