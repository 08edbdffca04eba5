"""The command `penstock` and its parts."""

from typing import Annotated

import typer

from penstock import __version__
from penstock.cli import demo, explain, exporter, images, local, network, plan

app = typer.Typer(
    no_args_is_help=True,
    help="Slurm on Kubernetes.",
    pretty_exceptions_show_locals=False,
)
app.add_typer(demo.app, name="demo")
app.add_typer(local.app, name="local")
app.add_typer(images.app, name="images")
app.command(epilog=plan.EXAMPLES)(plan.plan)
app.command(epilog=network.EXAMPLES)(network.network)
# Its options are those of the program in the pod.
app.command(
    add_help_option=False,
    epilog=exporter.EXAMPLES,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)(exporter.exporter)
app.command(epilog=explain.EXAMPLES)(explain.explain)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"penstock {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version and exit.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Slurm on Kubernetes."""
    del version


def main() -> None:
    """Run the command line."""
    app()
