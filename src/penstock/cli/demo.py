"""`penstock demo`: a Slurm cluster for trials, on the built-in node or on your cluster."""

import time
from enum import StrEnum
from typing import Annotated

import typer

from penstock.cli.output import examples
from penstock.local import demo, demo_slurmcluster, progress
from penstock.local.demo_login import ssh_key
from penstock.local.errors import LocalError
from penstock.local.node import DEFAULT_NAME
from penstock.local.target import BuiltIn, Target, choose

app = typer.Typer(no_args_is_help=True, help="Create and remove a Slurm cluster for trials.")

ContextName = Annotated[str | None, typer.Option(metavar="NAME", help="Use this kubectl context.")]
Registry = Annotated[
    str | None,
    typer.Option(metavar="REGISTRY/PATH", help="With --context: push the images there."),
]


class Demo(StrEnum):
    """Which cluster a demo creates, by the API that declares it."""

    SLINKY = "slinky"
    SLURMCLUSTER = "slurmcluster"


WhichCluster = Annotated[
    Demo,
    typer.Option(
        "--cluster", help="slinky: a Controller and a NodeSet; slurmcluster: a SlurmCluster."
    ),
]
Name = Annotated[str, typer.Option("--name", help="Of the built-in node, without --context.")]


@app.command(
    epilog=examples(
        "penstock demo up",
        "penstock demo up --cluster slurmcluster",
        "penstock demo up --context my-cluster --registry registry.example.com/slurm",
    )
)
def up(
    cluster: WhichCluster = Demo.SLINKY,
    context: ContextName = None,
    registry: Registry = None,
    name: Name = DEFAULT_NAME,
    reset: Annotated[
        bool, typer.Option("--reset", help="Revert changes of the demo's Slurm cluster.")
    ] = False,
) -> None:
    """Create the cluster, run a job on two nodes and print its output."""
    started = time.monotonic()
    try:
        target = _target(cluster, context, registry, name)
        progress.default.report(f"on {target.title}")
        one = demo_slurmcluster if cluster is Demo.SLURMCLUSTER else demo
        one.up(target, reset=reset)
        typer.echo(one.how_to_go_on(target, ssh_key()))
    except LocalError as error:
        typer.echo(f"penstock demo: {error}", err=True)
        raise typer.Exit(1) from error
    typer.echo("\nTime:")
    for title, seconds in progress.default.timings.items():
        typer.echo(f"  {seconds:7.1f} s  {title}")
    typer.echo(f"  {time.monotonic() - started:7.1f} s  in all")


@app.command(epilog=examples("penstock demo down", "penstock demo down --context my-cluster"))
def down(
    cluster: WhichCluster = Demo.SLINKY, context: ContextName = None, name: Name = DEFAULT_NAME
) -> None:
    """Remove all that `up` created, and nothing else."""
    try:
        one = demo_slurmcluster if cluster is Demo.SLURMCLUSTER else demo
        one.down(_target(cluster, context, None, name))
    except LocalError as error:
        typer.echo(f"penstock demo: {error}", err=True)
        raise typer.Exit(1) from error


def _target(cluster: Demo, context: str | None, registry: str | None, name: str) -> Target:
    """Where a demo runs; only the built-in node gets the images of a SlurmCluster from files."""
    if context is None and (cluster is Demo.SLURMCLUSTER or name != DEFAULT_NAME):
        return BuiltIn(name)
    return choose(context, registry)
