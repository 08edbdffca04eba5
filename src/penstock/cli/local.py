"""`penstock local`: the built-in Kubernetes node."""

import contextlib
from collections.abc import Generator
from typing import Annotated

import typer

from penstock.local import parts
from penstock.local.components import Size
from penstock.local.errors import LocalError
from penstock.local.linux import require_root_linux
from penstock.local.node import DEFAULT_NAME, FLEET_NODES, Node, all_nodes

app = typer.Typer(
    help="A real Kubernetes node on this machine, for trying and testing.", no_args_is_help=True
)

Name = Annotated[str, typer.Option(help="Which node; several can live side by side.")]


@app.command()
def up(
    name: Name = DEFAULT_NAME,
    size: Annotated[
        Size,
        typer.Option(
            help="api: only etcd and the API server; node: all of Kubernetes with one real "
            "kubelet; fleet: the control plane with simulated nodes (KWOK)."
        ),
    ] = Size.NODE,
    nodes: Annotated[int, typer.Option(min=0, help="Simulated nodes of a fleet.")] = FLEET_NODES,
) -> None:
    """Bring the node up and wait until it serves."""
    with _telling():
        node = Node(name).up(size, nodes=nodes)
    typer.echo(f"export KUBECONFIG={node.kubeconfig_path}")


@app.command()
def prepare() -> None:
    """Compile and fetch all that nodes are made of, so that nothing waits for it later."""
    with _telling():
        parts.everything()


@app.command()
def down(name: Name = DEFAULT_NAME) -> None:
    """Stop the node and remove everything of it; what was compiled stays cached."""
    with _telling():
        Node(name).down()


@app.command()
def status() -> None:
    """What runs of each node."""
    with _telling():
        require_root_linux()
    found = [node.status() for node in all_nodes()]
    if not found:
        typer.echo("no node")
    for one in found:
        typer.echo(f"{one.name}: {one.state} {one.size or ''} {one.server}".rstrip())
        for component, process in (one.components or {}).items():
            typer.echo(f"  {component} (pid {process.pid})")


@app.command()
def kubeconfig(
    name: Name = DEFAULT_NAME,
    path: Annotated[bool, typer.Option("--path", help="Print where it is instead.")] = False,
) -> None:
    """Print an administrator's kubeconfig."""
    with _telling():
        require_root_linux()
        file = Node(name).kubeconfig_path
        if not file.is_file():
            raise LocalError(f"There is no node {name}; bring it up with penstock local up.")
    typer.echo(str(file) if path else file.read_text().rstrip())


@contextlib.contextmanager
def _telling() -> Generator[None]:
    """Say what went wrong in one sentence, and exit 1."""
    try:
        yield
    except LocalError as error:
        typer.echo(f"penstock local: {error}", err=True)
        raise typer.Exit(1) from error
