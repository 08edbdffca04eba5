"""`penstock demo`: an empty machine, or a cluster of yours, to a Slurm job's output."""

import time
from typing import Annotated

import typer

from penstock.local import demo, progress
from penstock.local.errors import LocalError
from penstock.local.target import choose

app = typer.Typer(no_args_is_help=True, help="A whole Slurm cluster to look at, and its end.")

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
        bool, typer.Option("--reset", help="Set back what was changed of the demo's Slurm cluster.")
    ] = False,
) -> None:
    """Bring everything up, run a job on two nodes, print what it wrote."""
    started = time.monotonic()
    try:
        target = choose(context, registry)
        progress.default.say(f"on {target.title}")
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
    """Stop and remove all that `up` made, and only that."""
    try:
        demo.down(choose(context))
    except LocalError as error:
        typer.echo(f"penstock demo: {error}", err=True)
        raise typer.Exit(1) from error
