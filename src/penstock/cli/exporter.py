"""`penstock exporter`: metrics of a Slurm cluster, also of one outside Kubernetes."""

import typer

from penstock.controllers.exporter.__main__ import main


def exporter(context: typer.Context) -> None:
    """Serve metrics of a Slurm cluster for Prometheus (--help lists the options)."""
    main(context.args, "penstock exporter")
