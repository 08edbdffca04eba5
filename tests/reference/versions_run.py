"""The pairs of Kubernetes and Slurm that were run."""

from __future__ import annotations

from reference.page import Page
from versions.page import skips, table


def page() -> Page:
    """One table, and what older releases of Slurm leave out."""
    body = "\n".join(
        [
            "For platform engineers. End-to-end tests of installation, NodeSets, drains, "
            "configuration, Helm, jobs, SlurmClusters, jails and munge, on real Kubernetes and "
            "Slurm. `make versions` runs what is left, `make versions PAIR=1.35/26.05` only that "
            "of one pair.\n",
            table(),
            "\nSkipped is what a release of Slurm does not have:\n",
            *(f"- before {since}: {why}" for since, why in skips()),
        ]
    )
    title = "Kubernetes and Slurm that were run"
    return Page("versions-run", title, "Kubernetes and Slurm that were run", body)
