"""gres.conf of a SlurmCluster. Source: gres.conf(5)."""

from __future__ import annotations

from penstock.render.nebius.config.inputs import ConfigInputs
from penstock.render.nebius.config.keys import values_of
from penstock.render.nebius.config.lines import file_text, one_line
from penstock.render.nebius.config.node_lines import has_gpus, node_range


def gres_conf(inputs: ConfigInputs) -> str:
    """Detection of GPUs, then the lines that NodeSets declare for their nodes.

    `nvidia` reads files of the kernel, since Slurm 24.11. `nvml` needs a plug-in that Penstock's
    images lack: slurmd then finds no GPU. A node finds its lines by NodeName, so a NodeSet without
    nodes has none.
    """
    lines: list[str] = []
    if values_of(inputs).cluster_type == "gpu" or has_gpus(inputs):
        lines.append("AutoDetect=nvidia")
    for one in inputs.sorted_node_sets:
        nodes = node_range(one)
        lines += (
            f"NodeName={nodes} {line}"
            for raw in one.spec.node_config.gres_config
            if nodes and (line := one_line(raw))
        )
    return file_text(lines)
