"""Workers: what each node has, gives and lacks."""

from __future__ import annotations

from typing import Final

from dashboards.cluster import CPUS_IN_USE, NAMESPACES, UNAVAILABLE
from dashboards.model import (
    NAMESPACE,
    RATE,
    Dashboard,
    Query,
    Row,
    Unit,
    curves,
    listing,
    number,
)
from dashboards.sources import either, or_zero


def _by_node(expr: str) -> str:
    """slurmctld's label of a node by the exporter's name."""
    return f'label_replace({expr}, "node_name", "$1", "node", "(.+)")'


WORKERS: Final = Dashboard(
    "workers",
    "Slurm / Workers",
    "Nodes of one cluster. Panels by node show the twenty with the largest or smallest value.",
    NAMESPACES,
    (
        Row(
            "Now",
            (
                UNAVAILABLE,
                CPUS_IN_USE,
                number(
                    "Nodes without job",
                    Query(
                        or_zero(
                            f"count(slurm_node_cpus_allocated{{{NAMESPACE}}} == 0)",
                        )
                    ),
                    about="Nodes of which jobs have no CPU, of the exporter.",
                ),
                number(
                    "Least free memory",
                    either(
                        f'min(slurm_node_memory_free_bytes{{{NAMESPACE},node_name!=""}})',
                        f'min(slurm_node_memory_free_bytes{{{NAMESPACE},node!=""}})',
                    ),
                    about="Memory that no process uses, on the node with the least.",
                    unit=Unit.BYTES,
                ),
                number(
                    "Nodes by partition",
                    either(
                        f"count by (partition) (slurm_node_partition{{{NAMESPACE}}})",
                        f"max by (partition) (slurm_partition_nodes{{{NAMESPACE}}})",
                        "{{partition}}",
                    ),
                    about="A node may be in several.",
                    width=8,
                ),
            ),
        ),
        Row(
            "By node",
            (
                curves(
                    "CPUs in use",
                    either(
                        f"topk(20, slurm_node_cpus_allocated{{{NAMESPACE}}} / "
                        f"slurm_node_cpus_total{{{NAMESPACE}}})",
                        _by_node(
                            f"topk(20, slurm_node_cpus_alloc{{{NAMESPACE}}} / "
                            f"slurm_node_cpus{{{NAMESPACE}}})"
                        ),
                        "{{node_name}}",
                    ),
                    about="Share of the node's CPUs that jobs have.",
                    unit=Unit.SHARE,
                    highest=1,
                ),
                curves(
                    "Free memory",
                    either(
                        f'bottomk(20, slurm_node_memory_free_bytes{{{NAMESPACE},node_name!=""}})',
                        _by_node(
                            f'bottomk(20, slurm_node_memory_free_bytes{{{NAMESPACE},node!=""}})'
                        ),
                        "{{node_name}}",
                    ),
                    about="Memory that no process uses.",
                    unit=Unit.BYTES,
                ),
                curves(
                    "Jobs",
                    Query(
                        f"topk(20, count by (node_name) (slurm_node_job{{{NAMESPACE}}}))",
                        "{{node_name}}",
                    ),
                    about="Jobs on the node, of the exporter.",
                ),
                curves(
                    "GPUs by state of their node",
                    Query(
                        "sum by (state_base) "
                        f"(rate(slurm_node_gpu_seconds_total{{{NAMESPACE}}}[{RATE}]))",
                        "{{state_base}}",
                    ),
                    about="Of the exporter; empty in a cluster without GPUs.",
                ),
            ),
        ),
        Row(
            "List",
            (
                listing(
                    "Nodes",
                    Query(f"slurm_node_info{{{NAMESPACE}}}"),
                    "State of each node, of the exporter.",
                    node_name="Node",
                    state_base="State",
                    state_is_drain="Drained",
                    is_unavailable="Takes no job",
                    reservation_name="Reservation",
                    reason="Reason",
                    address="Address",
                ),
            ),
        ),
    ),
)
