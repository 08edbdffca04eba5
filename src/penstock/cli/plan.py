"""`penstock plan`: what a change would do, before it is made."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Annotated, Any, cast

import structlog
import typer
import yaml

from penstock.api.kubernetes.meta import Json
from penstock.kube import Client, ConfigError, HttpTransport, KubeError, from_kubeconfig
from penstock.preview.cluster_copy import copy_cluster
from penstock.preview.dry_run import RejectedError, dry_run_objects
from penstock.preview.effects import Effects, effects
from penstock.preview.report import render_report
from penstock.preview.simulated_run import simulate_operator

CHANGES = 2
"""Exit status with --detailed-exitcode when something would change."""

File = Annotated[str, typer.Option("-f", "--filename", help="A file of manifests; - is stdin.")]
Namespace = Annotated[str, typer.Option("-n", "--namespace", help="For objects that name none.")]
Kubeconfig = Annotated[str, typer.Option(help="Default: $KUBECONFIG, or ~/.kube/config.")]
Context = Annotated[str, typer.Option(help="Another context of the kubeconfig.")]
Live = Annotated[
    bool, typer.Option("--live", help="Without a file: pending actions of the operator.")
]
Detailed = Annotated[
    bool, typer.Option("--detailed-exitcode", help=f"Exit {CHANGES} when something would change.")
]


def plan(
    filename: File = "",
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = "",
    context: Context = "",
    live: Live = False,
    detailed_exitcode: Detailed = False,
) -> None:
    """Preview a change: objects, Slurm's configuration, pods and jobs.

    The operator's code works on a copy of the cluster. Nothing is changed, and read access is
    enough.
    """
    if bool(filename) == live:
        raise typer.BadParameter("give either a file with -f or --live")
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    try:
        found = asyncio.run(_load(_documents(filename), namespace, kubeconfig, context))
        done = effects(found[0], simulate_operator(found[0], found[1]))
    except (KubeError, ConfigError, RejectedError, yaml.YAMLError, OSError) as error:
        typer.echo(f"penstock plan: {error}", err=True)
        raise typer.Exit(1) from error
    _print_effects(done, found[2])
    for failure in done.failed:
        typer.echo(f"penstock plan: the plan is not complete: {failure}", err=True)
    if done.failed:
        raise typer.Exit(1)
    if detailed_exitcode and not done.nothing:
        raise typer.Exit(CHANGES)


def _print_effects(done: Effects, unread: list[str]) -> None:
    typer.echo(render_report(done))
    if unread:
        typer.echo(
            f"Not compared, because the operator does not read these kinds: {', '.join(unread)}"
        )


async def _load(documents: list[Json], namespace: str, kubeconfig: str, context: str) -> Any:
    """The copy of the cluster, the objects as they would be, and the kinds that are not read."""
    default = Path.home() / ".kube/config"
    given = kubeconfig or os.environ.get("KUBECONFIG", "") or str(default)
    config = from_kubeconfig([Path(one) for one in given.split(os.pathsep)], context or None)
    space = namespace or config.namespace
    transport = HttpTransport(config)
    try:
        client = Client(transport, field_manager="kubectl")
        objects, unread = await dry_run_objects(client, documents, space)
        spaces = {obj["metadata"]["namespace"] for _, obj in objects} | {space}
        return await copy_cluster(client, sorted(spaces)), objects, unread
    finally:
        await transport.close()


def _documents(filename: str) -> list[Json]:
    if not filename:
        return []
    text = sys.stdin.read() if filename == "-" else Path(filename).read_text(encoding="utf-8")
    found: list[Json] = []
    for document in yaml.safe_load_all(text):
        if isinstance(document, dict):
            one = cast("Json", document)
            found += one["items"] if one.get("kind") == "List" else [one]
    return found
