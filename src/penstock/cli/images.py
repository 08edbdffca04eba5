"""`penstock images`: build the images, give them to a registry or a node, see which there are."""

import contextlib
import sys
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from penstock import __version__
from penstock.api.kubernetes.meta import Json
from penstock.cli.output import Format, Output, examples, print_json
from penstock.local import buildah, engines, image_prefix, images
from penstock.local.cache import cache_dir
from penstock.local.errors import LocalError
from penstock.local.image_prefix import EXAMPLE
from penstock.local.linux import require_root_linux
from penstock.local.node import DEFAULT_NAME
from penstock.local.push import Push
from penstock.local.recipes import LATEST, LOCAL, RELEASES, ROLES, Release
from penstock.local.registry_login import Login
from penstock.local.target import BuiltIn

app = typer.Typer(no_args_is_help=True, help="Container images of Slurm and the operator.")

Engine = Annotated[
    str | None,
    typer.Option(help="docker, buildah or podman: build on Debian's public base image with it."),
]
Base = Annotated[str, typer.Option(help="With --engine: the base image.")]
PushTo = Annotated[
    str | None, typer.Option("--push", metavar="PREFIX", help="With --engine: push them there.")
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
Prefix = Annotated[
    str, typer.Argument(metavar="PREFIX", help=f"Registry and path, such as {EXAMPLE}.")
]
Version = Annotated[
    str, typer.Option("--version", help="In the images' tags; global.imageVersion of the charts.")
]
Jail = Annotated[bool, typer.Option("--jail", help="Also the images of a SlurmCluster.")]
Slurm = Annotated[str, typer.Option(metavar="VERSION", help="The release of Slurm to build.")]


@app.command(
    epilog=examples("penstock images build --jail", "penstock images build --engine docker")
)
def build(
    engine: Engine = None,
    base: Base = engines.BASE,
    push_to: PushTo = None,
    kind: Kind = None,
    platform: Platform = None,
    slurm: Slurm = LATEST.tag,
    jail: Jail = False,
) -> None:
    """Build every image: without --engine, as files for `push` and `load`, with no registry."""
    release = _release(slurm, engine, jail=jail)
    if engine is None and (push_to or kind or platform):
        raise typer.BadParameter("--push, --kind and --platform need --engine")
    with _telling():
        if engine:
            to = str(image_prefix.parse(push_to)) if push_to else None
            lines = engines.build(engine, base, to, kind, platform or ())
        else:
            found = _built(release, jail=jail)
            lines = [f"{image.reference}  {image.exact}  {image.path}" for image in found]
    typer.echo("\n".join(lines))


@app.command(epilog=examples("penstock images push registry.example.com/slurm --jail"))
def push(
    prefix: Prefix,
    version: Version = __version__,
    slurm: Slurm = LATEST.tag,
    engine: Engine = None,
    base: Base = engines.BASE,
    platform: Platform = None,
    plain_http: Annotated[
        bool,
        typer.Option(
            "--plain-http",
            envvar="PENSTOCK_REGISTRY_PLAIN_HTTP",
            help="The registry has no TLS; one of this machine (localhost) needs no flag.",
        ),
    ] = False,
    username: Annotated[
        str,
        typer.Option(
            envvar="PENSTOCK_REGISTRY_USERNAME",
            help="Instead of the login that docker, podman or skopeo keeps for the registry.",
        ),
    ] = "",
    password_stdin: Annotated[
        bool, typer.Option("--password-stdin", help="Read its password from standard input.")
    ] = False,
    password: Annotated[
        str,
        typer.Option(envvar="PENSTOCK_REGISTRY_PASSWORD", hidden=True, show_default=False),
    ] = "",
    authfile: Annotated[
        Path | None, typer.Option(help="File with logins, as docker's config.json.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace images of another content.")
    ] = False,
    jail: Jail = False,
) -> None:
    """Build every image where need be and push to a registry what it lacks.

    The names are PREFIX/ROLE:TAG, and PREFIX is global.imageRegistry of both charts. The password
    of --username comes from PENSTOCK_REGISTRY_PASSWORD or --password-stdin. With --engine, or where
    the machine is no Debian and has one, the engine builds and pushes, with its own login.
    """
    release = _release(slurm, engine, jail=jail)
    if password_stdin:
        password = sys.stdin.read().rstrip("\r\n")
    if bool(username) != bool(password):
        raise typer.BadParameter(
            "--username goes with a password, in PENSTOCK_REGISTRY_PASSWORD or by --password-stdin"
        )
    with _telling():
        to = Push(
            image_prefix.parse(prefix),
            version,
            plain_http,
            Login(username, password, authfile),
            overwrite,
        )
        if engine is None and not buildah.usable():
            engine = engines.installed()
        if engine:
            _release(slurm, engine, jail=jail)
            if username or authfile or plain_http:
                raise LocalError(f"{engine} pushes by its own settings: {engine} login {prefix}.")
            named = engines.build(
                engine, base, str(to.prefix), None, platform or (), version=version
            )
            typer.echo("\n".join(f"pushed  {name}" for name in named))
        else:
            to.reach()
            found = _built(release, jail=jail)
            for one in to.images(found):
                typer.echo(f"{'pushed' if one.sent else 'is there'}  {one.name}")
        typer.echo(f"For both charts: --set global.imageRegistry={to.prefix}{_extra(version)}")


@app.command(epilog=examples("penstock images load --jail"))
def load(
    name: Annotated[str, typer.Option(help="The built-in cluster to load them into.")] = (
        DEFAULT_NAME
    ),
    jail: Jail = False,
) -> None:
    """Build every image where need be and load it into a built-in cluster, without a registry."""
    with _telling():
        require_root_linux()
        target = BuiltIn(name)
        target.node.images()  # before anything is built: there is such a node, and it runs
        target.load()
        if jail:
            target.load_jail()
    typer.echo(f"For both charts: --set global.imageRegistry={LOCAL}")


@app.command(
    name="list",
    epilog=examples(
        "penstock images list -o json", "penstock images list --prefix registry.example.com/slurm"
    ),
)
def list_(
    prefix: Annotated[
        str | None,
        typer.Option(metavar="PREFIX", help="Only print what `push PREFIX` calls the images."),
    ] = None,
    version: Version = __version__,
    slurm: Slurm = LATEST.tag,
    jail: Jail = False,
    output: Format = Output.TEXT,
) -> None:
    """List the images that are built, by role, newest first."""
    release = _release(slurm, None, jail=jail)
    if prefix:
        with _telling():
            of = str(image_prefix.parse(prefix))
        names = images.names(of, version, release, jail=jail)
        if output is Output.JSON:
            print_json(list(names))
        else:
            typer.echo("\n".join(names))
        return
    found = images.built()
    if output is Output.JSON:
        print_json([_as_json(one) for one in found])
        return
    if not found:
        typer.echo(f"No image of {', '.join(ROLES)} in {cache_dir()}: run `penstock images build`.")
    for image in found:
        size = image.path.stat().st_size / 1e6
        typer.echo(f"{image.exact}  {image.path} ({size:.0f} MB, shared)")


def _as_json(one: images.ImageArchive) -> Json:
    """`bytes` are those of the file, which images share."""
    return {
        "role": one.role,
        "image": one.exact,
        "reference": one.reference,
        "release": one.release,
        "file": str(one.path),
        "bytes": one.path.stat().st_size,
    }


def _built(release: Release, *, jail: bool) -> Sequence[images.ImageArchive]:
    more: dict[str, images.ImageArchive] = {}
    if jail:
        builds = (images.build_jail, images.build_nfs_server, images.build_backup)
        more = {role: image for build in builds for role, image in build(release).items()}
    return list({**images.build_all(release), **more}.values())


def _release(slurm: str, engine: str | None, *, jail: bool) -> Release:
    if jail and engine:
        raise typer.BadParameter("--jail goes without --engine")
    if engine and slurm != LATEST.tag:
        raise typer.BadParameter("--slurm goes without --engine")
    release = next((one for one in RELEASES if one.tag == slurm), None)
    if release is None:
        tags = ", ".join(one.tag for one in RELEASES)
        raise typer.BadParameter(f"--slurm takes {tags}, which Debian has; not {slurm!r}")
    return release


def _extra(version: str) -> str:
    return f" --set-string global.imageVersion={version}" if version != __version__ else ""


@contextlib.contextmanager
def _telling() -> Generator[None]:
    try:
        yield
    except LocalError as error:
        typer.echo(f"penstock: {error}", err=True)
        raise typer.Exit(1) from error
