"""`penstock demo`: a Slurm cluster for trials, on the built-in node or on your cluster."""

import time
from typing import Annotated

import typer

from penstock.local import demo, progress
from penstock.local.errors import LocalError
from penstock.local.target import choose

app = typer.Typer(no_args_is_help=True, help="Create and remove a Slurm cluster for trials.")

ContextName = Annotated[str | None, typer.Option(metavar="NAME", help="Use this kubectl context.")]
Registry = Annotated[
    str | None,
    typer.Option(metavar="REGISTRY/PATH", help="With --context: push the images there."),
]


@app.command()
def up(
    context: ContextName = None,
    registry: Registry = None,
    reset: Annotated[
        bool, typer.Option("--reset", help="Revert changes of the demo's Slurm cluster.")
    ] = False,
) -> None:
    """Create the cluster, run a job on two nodes and print its output."""
    started = time.monotonic()
    try:
        target = choose(context, registry)
        progress.default.report(f"on {target.title}")
        demo.up(target, reset=reset)
        typer.echo(demo.how_to_go_on(target, demo.ssh_key()))
    except LocalError as error:
        typer.echo(f"penstock demo: {error}", err=True)
        raise typer.Exit(1) from error
    typer.echo("\nTime:")
    for title, seconds in progress.default.timings.items():
        typer.echo(f"  {seconds:7.1f} s  {title}")
    typer.echo(f"  {time.monotonic() - started:7.1f} s  in all")


@app.command()
def down(context: ContextName = None) -> None:
    """Remove all that `up` created, and nothing else."""
    try:
        demo.down(choose(context))
    except LocalError as error:
        typer.echo(f"penstock demo: {error}", err=True)
        raise typer.Exit(1) from error
