"""`penstock exporter`: metrics of a Slurm cluster, also of one outside Kubernetes."""

import typer

from penstock.cli.output import examples
from penstock.controllers.exporter.__main__ import main

EXAMPLES = examples(
    "penstock exporter --cluster-name site --standalone --slurm-api-server http://localhost:6820"
)


def exporter(context: typer.Context) -> None:
    """Serve metrics of a Slurm cluster for Prometheus (--help lists the options)."""
    main(context.args, "penstock exporter")
