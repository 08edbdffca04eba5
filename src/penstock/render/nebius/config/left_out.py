"""Declared values that are in no file, because slurmctld or its release has no use for them."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.api.kubernetes.conditions import Finding
from penstock.base.text import list_some
from penstock.catalog.reasons.configuration import ConfigReason
from penstock.render.nebius.config.inputs import ConfigInputs
from penstock.render.nebius.config.keys import has_metrics, mpi_default, values_of
from penstock.render.nebius.config.node_lines import slurmd_ports
from penstock.slurm.versions import METRICS_SINCE


def left_out(inputs: ConfigInputs) -> list[Finding]:
    """A remark with all of them; none when each value is in a file."""
    words = list(_left_out(inputs))
    return [Finding(True, ConfigReason.KEYS_LEFT_OUT, list_some(words, "; "))] if words else []


def _left_out(inputs: ConfigInputs) -> Iterator[str]:
    spec = inputs.cluster.spec
    if spec.slurm_config.topology_plugin and not inputs.topology_conf:
        yield (
            f"spec.slurmConfig.topologyPlugin {spec.slurm_config.topology_plugin} is not used: "
            "no Kubernetes node of a worker has a topology label"
        )
    if (default := mpi_default(inputs)) != "pmix":
        yield (
            f"MpiDefault=pmix is {default}: the image of slurmctld has no plug-in mpi_pmix.so. "
            "For PMIx use images of slurmctld, logins and workers that have it"
        )
    if values_of(inputs).open_metrics.enabled and not has_metrics(inputs):
        yield (
            f"spec.slurmNodes.controller.openMetrics is not used: Slurm {inputs.version} has no "
            f"metrics, {METRICS_SINCE} has"
        )
    for one in inputs.sorted_node_sets:
        if one.spec.ephemeral_nodes and not one.spec.node_config.auto_resume:
            yield (
                f"spec.nodeConfig.autoResume of NodeSet {one.metadata.name} is not used: "
                "Slurm has no AutoResume"
            )
    if len(slurmd_ports(inputs)) > 1:
        ports = ", ".join(map(str, slurmd_ports(inputs)))
        yield f"ports {ports} of slurmd differ: slurm.conf has one SlurmdPort for all workers"
