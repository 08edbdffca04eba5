"""Checks: nodes that were taken out, why, and for how long."""

from __future__ import annotations

from typing import Final

from dashboards.model import NAMESPACE, Dashboard, Query, Row, Unit, curves, listing, number
from dashboards.sources import or_zero

NODE: Final = f"slurm_node_info{{{NAMESPACE}}}"
DRAINED: Final = f'slurm_node_info{{{NAMESPACE},state_is_drain="true"}}'
UNAVAILABLE: Final = f'slurm_node_info{{{NAMESPACE},is_unavailable="true"}}'
_OUT: Final = "slurm_node_unavailability_duration_seconds"
_DRAIN: Final = "slurm_node_draining_duration_seconds"
_COMMENTED: Final = f'slurm_node_info{{{NAMESPACE},comment!=""}}'


def _quantile(share: float, metric: str) -> str:
    return f"histogram_quantile({share}, sum by (le) ({metric}_bucket{{{NAMESPACE}}}))"


CHECKS: Final = Dashboard(
    "checks",
    "Slurm / Checks and repair",
    "Nodes of a SlurmCluster that checks or people took out. All of it is the exporter's.",
    "slurm_node_info",
    (
        Row(
            "Now",
            (
                number(
                    "Unavailable nodes",
                    Query(or_zero(f"count({UNAVAILABLE})")),
                    about="Down, silent, failed, or drained.",
                    width=6,
                ),
                number(
                    "Drained or draining",
                    Query(or_zero(f"count({DRAINED})")),
                    about="Nodes with the state DRAIN.",
                    width=6,
                ),
                number(
                    "Median outage",
                    Query(_quantile(0.5, _OUT)),
                    about="Of all ended outages: times in which no job could start on the node.",
                    unit=Unit.SECONDS,
                    width=6,
                ),
                number(
                    "95 % of outages are below",
                    Query(_quantile(0.95, _OUT)),
                    about="Of all ended outages: times in which no job could start on the node.",
                    unit=Unit.SECONDS,
                    width=6,
                ),
            ),
        ),
        Row(
            "Over time",
            (
                curves(
                    "Unavailable nodes by reason",
                    Query(f"count by (reason) ({UNAVAILABLE})", "{{reason}}"),
                    about="By the reason in Slurm.",
                ),
                curves(
                    "Changes to down or drained, by reason",
                    Query(f"sum by (reason) (slurm_node_fails_total{{{NAMESPACE}}})", "{{reason}}"),
                    about="Since the exporter's pod began.",
                ),
                curves(
                    "Total outage by node",
                    Query(
                        f"topk(20, sum by (node_name) ({_OUT}_sum{{{NAMESPACE}}}))",
                        "{{node_name}}",
                    ),
                    about="Sum of ended times in which no job could start on the node.",
                    unit=Unit.SECONDS,
                ),
                curves(
                    "Mean time until a drained node is free of jobs",
                    Query(
                        f"sum({_DRAIN}_sum{{{NAMESPACE}}}) / sum({_DRAIN}_count{{{NAMESPACE}}})",
                        "mean",
                    ),
                    about="Of drains that began while jobs were on the node, once they ended.",
                    unit=Unit.SECONDS,
                ),
                curves(
                    "Nodes with a comment",
                    Query(f"count by (comment) ({_COMMENTED})", "{{comment}}"),
                    about="By the comment, which a check leaves with commentSlurmNode.",
                ),
            ),
        ),
        Row(
            "List",
            (
                listing(
                    "Unavailable nodes, with their reason",
                    Query(UNAVAILABLE),
                    "With the reason in Slurm, and the comment that a check may have left.",
                    node_name="Node",
                    state_base="State",
                    state_is_drain="Drained",
                    state_is_not_responding="Silent",
                    reason="Reason",
                    comment="Comment",
                ),
            ),
        ),
    ),
)
