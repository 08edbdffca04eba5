"""`penstock local`: the built-in Kubernetes node."""

import contextlib
import subprocess
import time
from collections.abc import Generator, Mapping
from typing import Annotated

import typer

from penstock.api.kubernetes.meta import Json
from penstock.base.table import aligned
from penstock.cli.output import Format, Output, examples, print_json
from penstock.local import clusters, parts
from penstock.local.components import Size
from penstock.local.errors import LocalError
from penstock.local.linux import require_root_linux
from penstock.local.node import DEFAULT_NAME, Node, NodeStatus, Status, all_nodes
from penstock.local.process import Process
from penstock.local.versions import KUBERNETES, RELEASES

app = typer.Typer(
    help="A real Kubernetes on this machine, for trying and testing.", no_args_is_help=True
)
node_app = typer.Typer(help="The Kubernetes nodes of a cluster.", no_args_is_help=True)
app.add_typer(node_app, name="node")

Name = Annotated[str, typer.Option(help="Which cluster; several can live side by side.")]
Kubernetes = Annotated[
    str,
    typer.Option(
        metavar="MINOR",
        help=f"The minor version: {', '.join(RELEASES)}; {KUBERNETES} unless given.",
    ),
]
NodeName = Annotated[str, typer.Argument(metavar="NODE", help="Its name in Kubernetes.")]


@app.command(
    epilog=examples(
        "penstock local up",
        "penstock local up --nodes 3",
        "penstock local up --kubernetes 1.35",
        "penstock local up --name big --size fleet --nodes 500",
    )
)
def up(
    name: Name = DEFAULT_NAME,
    size: Annotated[
        Size,
        typer.Option(
            help="api: only etcd and the API server; node: all of Kubernetes with one real "
            "kubelet; fleet: the control plane with simulated nodes (KWOK)."
        ),
    ] = Size.NODE,
    nodes: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Kubernetes nodes, a real kubelet each (1), or simulated ones of a fleet (100).",
        ),
    ] = None,
    node_names: Annotated[
        str,
        typer.Option(metavar="NAME,...", help="What the nodes are called, the first one first."),
    ] = "",
    kubernetes: Kubernetes = "",
    cluster_domain: Annotated[
        str,
        typer.Option(metavar="DOMAIN", help="Of DNS; cluster.local unless given."),
    ] = "",
) -> None:
    """Bring the cluster up and wait until it serves; nodes that it lacks are added."""
    with _reporting_errors():
        names = [one.strip() for one in node_names.split(",")] if node_names else []
        node = Node(name).up(
            size, nodes=nodes, names=names, kubernetes=kubernetes, domain=cluster_domain
        )
    typer.echo(f"export KUBECONFIG={node.kubeconfig_path}")


@app.command(epilog=examples("penstock local prepare"))
def prepare(kubernetes: Kubernetes = "") -> None:
    """Compile and fetch all that nodes are made of, so that nothing waits for it later."""
    with _reporting_errors():
        parts.everything(kubernetes)


@app.command(epilog=examples("penstock local down", "penstock local down --all"))
def down(
    name: Name = DEFAULT_NAME,
    every: Annotated[
        bool, typer.Option("--all", help="Every cluster that penstock local list shows.")
    ] = False,
) -> None:
    """Stop the cluster and remove everything of it; what was compiled stays cached."""
    with _reporting_errors():
        if not every:
            Node(name).down()
            return
        for one in clusters.down_all():
            typer.echo(f"ended {one}")


@app.command("list", epilog=examples("penstock local list", "penstock local list -o json"))
def list_clusters(output: Format = Output.TEXT) -> None:
    """Every cluster of this machine: its first process, and who started it when and where."""
    with _reporting_errors():
        require_root_linux()
        found = clusters.listed()
    if output is Output.JSON:
        print_json([clusters.as_json(one) for one in found])
    else:
        lines = aligned(clusters.table(found, time.time())) if found else ["no cluster"]
        typer.echo("\n".join(lines))


@app.command(epilog=examples("penstock local status", "penstock local status -o json"))
def status(output: Format = Output.TEXT) -> None:
    """What runs of each cluster."""
    with _reporting_errors():
        require_root_linux()
    found = [node.status() for node in all_nodes()]
    if output is Output.JSON:
        print_json([_as_json(one) for one in found])
        return
    if not found:
        typer.echo("no node")
    for one in found:
        typer.echo(f"{one.name}: {one.state} {one.size or ''} {one.server}".rstrip())
        for component, process in (one.components or {}).items():
            typer.echo(f"  {component} (pid {process.pid})")
        for further in Node(one.name).nodes()[1:]:
            typer.echo(f"  node {further.name}: {further.state} {further.address}".rstrip())
            for component, process in further.components.items():
                typer.echo(f"    {component} (pid {process.pid})")


def _as_json(one: Status) -> Json:
    return {
        "name": one.name,
        "state": one.state,
        "size": one.size,
        "server": one.server,
        "components": _pids(one.components or {}),
        "nodes": [_node_json(node) for node in Node(one.name).nodes()],
    }


def _node_json(one: NodeStatus) -> Json:
    return {
        "name": one.name,
        "state": one.state,
        "address": one.address,
        "components": _pids(one.components),
    }


def _pids(components: Mapping[str, Process]) -> dict[str, int]:
    return {name: one.pid for name, one in components.items()}


@app.command(epilog=examples('export KUBECONFIG="$(penstock local kubeconfig --path)"'))
def kubeconfig(
    name: Name = DEFAULT_NAME,
    path: Annotated[bool, typer.Option("--path", help="Print where it is instead.")] = False,
) -> None:
    """Print an administrator's kubeconfig."""
    with _reporting_errors():
        require_root_linux()
        file = Node(name).kubeconfig_path
        if not file.is_file():
            raise LocalError(f"There is no node {name}; bring it up with penstock local up.")
    typer.echo(str(file) if path else file.read_text().rstrip())


@app.command("allow-plain-http", epilog=examples("penstock local allow-plain-http 10.96.7.7:5000"))
def allow_plain_http(
    registry: Annotated[
        str, typer.Argument(metavar="ADDRESS:PORT", help="Of a Service or pod of the cluster.")
    ],
    name: Name = DEFAULT_NAME,
) -> None:
    """Have the nodes pull images from a registry in the cluster that has no TLS."""
    with _reporting_errors():
        require_root_linux()
        Node(name).allow_plain_http(registry)


@node_app.command(epilog=examples("penstock local node add worker-2"))
def add(node: NodeName, name: Name = DEFAULT_NAME) -> None:
    """Add a node with a real kubelet, and wait until it is Ready."""
    with _reporting_errors():
        Node(name).add(node)


@node_app.command(epilog=examples("penstock local node stop worker-2"))
def stop(node: NodeName, name: Name = DEFAULT_NAME) -> None:
    """End every process of a node at once, as when its power fails."""
    with _reporting_errors():
        Node(name).stop(node)


@node_app.command(epilog=examples("penstock local node start worker-2"))
def start(node: NodeName, name: Name = DEFAULT_NAME) -> None:
    """Start a stopped node, with the disk it had, and wait until it is Ready."""
    with _reporting_errors():
        Node(name).start(node)


@node_app.command(epilog=examples("penstock local node delete worker-2"))
def delete(node: NodeName, name: Name = DEFAULT_NAME) -> None:
    """Stop a node and remove everything of it; its pods are not asked (kubectl drain does)."""
    with _reporting_errors():
        Node(name).delete(node)


@node_app.command(
    "exec",
    context_settings={"allow_interspersed_args": False},
    epilog=examples("penstock local node exec worker-2 crictl ps"),
)
def run_in(
    node: NodeName,
    command: Annotated[
        list[str], typer.Argument(metavar="COMMAND...", help="A program of the node: crictl ps.")
    ],
    name: Name = DEFAULT_NAME,
) -> None:
    """Run a command inside a node, as docker exec does in a container of kind."""
    with _reporting_errors():
        require_root_linux()
        enter = Node(name).inside(node)
    raise typer.Exit(subprocess.run([*enter, *command], check=False).returncode)


@node_app.command(
    "list", epilog=examples("penstock local node list", "penstock local node list -o json")
)
def list_nodes(name: Name = DEFAULT_NAME, output: Format = Output.TEXT) -> None:
    """The nodes of a cluster: name, state, address."""
    with _reporting_errors():
        require_root_linux()
        found = Node(name).nodes()
        if not found:
            raise LocalError(f"There is no cluster {name}; bring it up with penstock local up.")
    if output is Output.JSON:
        print_json([_node_json(one) for one in found])
        return
    for one in found:
        typer.echo(f"{one.name:{max(len(n.name) for n in found)}}  {one.state:10}  {one.address}")


@contextlib.contextmanager
def _reporting_errors() -> Generator[None]:
    """Print an error in one sentence, and exit 1."""
    try:
        yield
    except LocalError as error:
        typer.echo(f"penstock local: {error}", err=True)
        raise typer.Exit(1) from error
