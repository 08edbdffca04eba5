"""`penstock images`: build the images and see which there are."""

from typing import Annotated

import typer

from penstock.local import engines, images
from penstock.local.cache import cache_dir
from penstock.local.errors import LocalError
from penstock.local.recipes import LATEST, RELEASES, ROLES

app = typer.Typer(no_args_is_help=True, help="Container images of Slurm and the operator.")

Engine = Annotated[
    str | None,
    typer.Option(help="docker, buildah or podman: build on Debian's public base image with it."),
]
Base = Annotated[str, typer.Option(help="With --engine: the base image.")]
Push = Annotated[
    str | None, typer.Option(metavar="REGISTRY/PATH", help="With --engine: push them there.")
]
Kind = Annotated[
    str | None, typer.Option(metavar="CLUSTER", help="With --engine docker: load them into kind.")
]
Platform = Annotated[
    list[str] | None,
    typer.Option(
        help="With --engine, again for each: linux/amd64 or linux/arm64. This machine's if absent."
    ),
]

Slurm = Annotated[str, typer.Option(metavar="VERSION", help="The release of Slurm to build.")]


@app.command()
def build(
    engine: Engine = None,
    base: Base = engines.BASE,
    push: Push = None,
    kind: Kind = None,
    platform: Platform = None,
    slurm: Slurm = LATEST.tag,
) -> None:
    """Build every image: without --engine, as files for the built-in node, with no registry."""
    if engine and slurm != LATEST.tag:
        raise typer.BadParameter("--slurm goes without --engine")
    release = next((one for one in RELEASES if one.tag == slurm), None)
    if release is None:
        tags = ", ".join(one.tag for one in RELEASES)
        raise typer.BadParameter(f"--slurm takes {tags}, which Debian has; not {slurm!r}")
    if engine is None and (push or kind or platform):
        raise typer.BadParameter("--push, --kind and --platform need --engine")
    try:
        if engine:
            lines = engines.build(engine, base, push, kind, platform or ())
        else:
            found = {**images.build_slurm(release), **images.build_operator()}.values()
            lines = [f"{image.reference}  {image.exact}  {image.path}" for image in found]
    except LocalError as error:
        typer.echo(f"penstock: {error}", err=True)
        raise typer.Exit(1) from error
    typer.echo("\n".join(lines))


@app.command(name="list")
def list_() -> None:
    """List the images that are built, by role, newest first."""
    found = images.built()
    if not found:
        typer.echo(f"No image of {', '.join(ROLES)} in {cache_dir()}: run `penstock images build`.")
    for image in found:
        size = image.path.stat().st_size / 1e6
        typer.echo(f"{image.exact}  {image.path} ({size:.0f} MB, shared)")
