"""`penstock plan`: what a change would do, before it is made."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import structlog
import typer

from penstock.api.kubernetes.meta import Json
from penstock.cli.manifests import ManifestError, read
from penstock.cli.output import Format, Output, examples, print_json
from penstock.controllers.runtime.apis import SHARED, SLINKY
from penstock.kube import Client, ConfigError, HttpTransport, KubeError, from_kubeconfig
from penstock.preview.apis import PREVIEWED
from penstock.preview.cluster_copy import copy_cluster, is_served
from penstock.preview.dry_run import DryRunObject, RejectedError, dry_run_objects
from penstock.preview.effect import Effects
from penstock.preview.effects import effects
from penstock.preview.previewed_api import PreviewedApi
from penstock.preview.report import render_report
from penstock.preview.report_json import report_object
from penstock.preview.simulated_run import simulate_operator
from penstock.preview.state import ClusterCopy

CHANGES = 2
"""Exit status with --detailed-exitcode when something would change."""
EXAMPLES = examples(
    "penstock plan -f cluster.yaml",
    "helm template slurm oci://... | penstock plan -f -",
    "penstock plan --live -n slurm -o json",
)

File = Annotated[
    list[str] | None,
    typer.Option(
        "-f",
        "--filename",
        help="A file or folder of manifests; - is stdin. Several are one change.",
    ),
]
Namespace = Annotated[str, typer.Option("-n", "--namespace", help="For objects that name none.")]
Kubeconfig = Annotated[str, typer.Option(help="Default: $KUBECONFIG, or ~/.kube/config.")]
Context = Annotated[str, typer.Option(help="Another context of the kubeconfig.")]
Live = Annotated[
    bool, typer.Option("--live", help="Without a file: pending actions of the operator.")
]
Detailed = Annotated[
    bool, typer.Option("--detailed-exitcode", help=f"Exit {CHANGES} when something would change.")
]
Loaded = tuple[list[tuple[PreviewedApi[Any], ClusterCopy]], list[DryRunObject], list[str]]


def plan(
    filename: File = None,
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = "",
    context: Context = "",
    live: Live = False,
    detailed_exitcode: Detailed = False,
    output: Format = Output.TEXT,
) -> None:
    """Preview a change: objects, Slurm's configuration, pods and jobs.

    The operator's code works on a copy of the cluster. Nothing is changed, and read access is
    enough.
    """
    if bool(filename) == live:
        raise typer.BadParameter("give either files with -f, or --live")
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    try:
        documents = read(filename) if filename else []
        copies, wanted, unread = asyncio.run(_load(documents, namespace, kubeconfig, context))
    except (KubeError, ConfigError, RejectedError, ManifestError, OSError) as error:
        typer.echo(f"penstock plan: {error}", err=True)
        raise typer.Exit(1) from error
    done = _effects(copies, wanted)
    if output is Output.JSON:
        print_json(report_object(done, unread))
    else:
        _print_effects(done, unread)
    for failure in done.failed:
        typer.echo(f"penstock plan: the plan is not complete: {failure}", err=True)
    if done.failed:
        raise typer.Exit(1)
    if detailed_exitcode and not done.nothing:
        raise typer.Exit(CHANGES)


def _effects(
    copies: Iterable[tuple[PreviewedApi[Any], ClusterCopy]], wanted: Sequence[DryRunObject]
) -> Effects:
    found = Effects((), (), (), (), (), ())
    for api, live in copies:
        found = found.beside(effects(live, simulate_operator(live, wanted, api), api))
    return found


def _print_effects(done: Effects, unread: list[str]) -> None:
    typer.echo(render_report(done))
    if unread:
        typer.echo(
            f"Not compared, because the operator does not read these kinds: {', '.join(unread)}"
        )


async def _load(documents: list[Json], namespace: str, kubeconfig: str, context: str) -> Loaded:
    """A copy of the cluster for each API, the objects as they would be, and kinds of neither."""
    default = Path.home() / ".kube/config"
    given = kubeconfig or os.environ.get("KUBECONFIG", "") or str(default)
    config = from_kubeconfig([Path(one) for one in given.split(os.pathsep)], context or None)
    space = namespace or config.namespace
    transport = HttpTransport(config)
    try:
        client = Client(transport, field_manager="kubectl")
        apis = await _apis(client, documents, space)
        objects, unread = await dry_run_objects(client, documents, space, apis)
        spaces = {obj["metadata"]["namespace"] for _, obj in objects if _is_in_one(obj)} | {space}
        copies = [(api, await copy_cluster(client, sorted(spaces), api)) for api in apis]
        return copies, objects, unread
    finally:
        await transport.close()


def _is_in_one(obj: Json) -> bool:
    return bool(obj["metadata"].get("namespace"))


async def _apis(
    client: Client, documents: Iterable[Json], namespace: str
) -> list[PreviewedApi[Any]]:
    """Those whose kinds the files have; without any of them, those that the cluster serves."""
    groups = {str(one["apiVersion"]).partition("/")[0] for one in documents}
    named = [one for one in PREVIEWED if one.group in groups]
    if not named and SHARED in groups:
        named = [one for one in PREVIEWED if one.group == SLINKY]
    return named or [one for one in PREVIEWED if await is_served(client, one, namespace)]
