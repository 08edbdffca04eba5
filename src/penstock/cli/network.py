"""`penstock network`: whether Slurm's daemons reach each other, before any job is sent."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Annotated, Final

import typer

from penstock.api.cluster import labels as app_labels
from penstock.api.kubernetes.kinds import Pod
from penstock.api.kubernetes.meta import Json
from penstock.api.nebius.slurmcluster import SLURM_CLUSTERS, SlurmCluster
from penstock.api.slinky.accounting import ACCOUNTINGS
from penstock.api.slinky.controller import CONTROLLERS, Controller
from penstock.api.slinky.loginset import LOGINSETS
from penstock.api.slinky.nodeset import NODESETS
from penstock.api.slinky.restapi import RESTAPIS
from penstock.cli.network_places import (
    external_nodes,
    of_controller,
    of_kind,
    of_slurm_cluster,
)
from penstock.cli.output import Format, Output, examples, print_json
from penstock.decide.advice import cgroups
from penstock.decide.cluster.network import Place, SlurmNode, Way, lines, pairs, table

OPERATOR = "penstock-operator"
_READ: Final = (CONTROLLERS, ACCOUNTINGS, NODESETS, LOGINSETS, RESTAPIS, SLURM_CLUSTERS)
_FETCHED = "/run/slurm/conf/cgroup.conf"
"""Where slurmd keeps what it fetched. Source: slurmd(8), --conf-server."""
EXEC_S = 40.0
"""Time for a container to try all its addresses, at the same time, and to report."""
_TRY = """
try() {
  host=${1%:*}; port=${1##*:}
  getent ahosts "$host" >/dev/null 2>&1 || { echo "$1 nameless"; return; }
  said=$(LC_ALL=C timeout 4 bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$host" "$port" 2>&1)
  case $?/$said in
    0/*) echo "$1 open" ;;
    124/*) echo "$1 silent" ;;
    *refused*) echo "$1 refused" ;;
    *) echo "$1 noroute" ;;
  esac
}
for one; do try "$one" & done
wait
"""
_TRY_PYTHON = """
import socket, sys
for one in sys.argv[1:]:
    host, _, port = one.rpartition(":")
    try:
        socket.create_connection((host, int(port)), 4).close()
        said = "open"
    except socket.gaierror: said = "nameless"
    except ConnectionRefusedError: said = "refused"
    except TimeoutError: said = "silent"
    except OSError: said = "noroute"
    print(one, said)
"""
"""The operator's image has no shell."""

EXAMPLES = examples("penstock network -n slurm", "penstock network -n slurm -o json")

Namespace = Annotated[
    str, typer.Option("-n", "--namespace", help="Where the cluster's objects are.")
]
Kubeconfig = Annotated[str, typer.Option(help="Default: as kubectl has it.")]
Context = Annotated[str, typer.Option(help="Another context of the kubeconfig.")]


class KubectlError(Exception):
    """kubectl failed; the message is its output."""


@dataclass(frozen=True)
class Kubectl:
    """kubectl, as the user has it set up."""

    options: tuple[str, ...]

    def __call__(self, *arguments: str) -> str:
        """What it printed. Raises KubectlError."""
        try:
            done = subprocess.run(
                ["kubectl", *self.options, *arguments],
                capture_output=True,
                text=True,
                check=False,
                timeout=EXEC_S,
            )
        except FileNotFoundError as error:
            raise KubectlError(
                "kubectl is not installed; connections are tested with kubectl exec"
            ) from error
        except subprocess.TimeoutExpired as error:
            raise KubectlError(f"no answer within {EXEC_S:g} s") from error
        if done.returncode:
            raise KubectlError(done.stderr.strip().rpartition("\n")[2])
        return done.stdout

    def objects(self, resources: str, *options: str) -> list[Json]:
        """Objects as the API server has them."""
        found: Json = json.loads(self("get", resources, *options, "-o", "json"))
        items: list[Json] = found["items"]
        return items


def network(
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = "",
    context: Context = "",
    output: Format = Output.TEXT,
) -> None:
    """Print which daemon has to reach which port, and whether it does.

    Connections from a pod are tested there, by `kubectl exec`. For external hosts, slurmctld's
    node states are shown, or the command to run there. Exits 1 when a connection fails.
    """
    options = [f"--namespace={namespace}"] if namespace else []
    options += [f"--kubeconfig={kubeconfig}"] if kubeconfig else []
    options += [f"--context={context}"] if context else []
    kubectl = Kubectl(tuple(options))
    try:
        found = read_clusters(kubectl)
    except KubectlError as error:
        typer.echo(f"penstock network: {error}", err=True)
        raise typer.Exit(1) from error
    if output is Output.JSON:
        print_json([_as_json(one) for one in found])
    else:
        _print(found)
    if any(way.closed for one in found for way in one.ways):
        raise typer.Exit(1)


def _print(found: Sequence[Found]) -> None:
    for one in found:
        typer.echo(f"{one.kind} {one.name}")
        for line in (*lines(one.ways), *filter(None, (one.remark,))):
            typer.echo(f"  {line}")
    if not found:
        typer.echo("No Controller or SlurmCluster in this namespace: name another one with -n.")


def _as_json(one: Found) -> Json:
    ways = [
        {
            "from": _place(way.source),
            "to": _place(way.target),
            "address": way.target.address,
            "closed": way.closed,
            "result": way.found,
        }
        for way in one.ways
    ]
    return {"kind": one.kind, "name": one.name, "ways": ways, "remark": one.remark}


def _place(one: Place) -> Json:
    return {"role": one.role, "name": one.name, "pod": one.pod}


@dataclass(frozen=True, slots=True)
class Found:
    """Results for one cluster, which an object of this kind and name declares."""

    kind: str
    name: str
    ways: list[Way]
    remark: str = ""
    """About the cgroup.conf that pods and external nodes share; often empty."""


def read_clusters(kubectl: Kubectl) -> list[Found]:
    """The table of each Controller and SlurmCluster. Raises KubectlError when it cannot read."""
    objects = kubectl.objects(",".join([*_served(kubectl), "pods"]))
    operators: list[Json] = []
    try:
        select = f"--selector={app_labels.APP_NAME}={OPERATOR}"
        operators = kubectl.objects("pods", "--all-namespaces", select)
    except KubectlError:
        # Who may not look into other namespaces sees all other rows.
        pass
    found: list[Found] = []
    for controller in of_kind(Controller, objects):
        places = of_controller(controller, objects) + _operators(operators)
        nodes = _nodes(kubectl, places)
        machines = external_nodes(objects, nodes)
        remark = cgroups.fetched(_cgroup_conf(kubectl, places), [one.name for one in machines])
        ways = _ways(kubectl, places + machines, nodes)
        found.append(Found("Controller", controller.metadata.name, ways, remark))
    for cluster in of_kind(SlurmCluster, objects):
        places = of_slurm_cluster(cluster, objects) + _operators(operators)
        ways = _ways(kubectl, places, _nodes(kubectl, places))
        found.append(Found("SlurmCluster", cluster.metadata.name, ways))
    return found


def _served(kubectl: Kubectl) -> list[str]:
    """Kinds of either API that the cluster has."""
    there: list[str] = []
    for group in sorted({one.group for one in _READ}):
        there += kubectl("api-resources", f"--api-group={group}", "--output=name").split()
    wanted = (f"{one.plural}.{one.group}" for one in _READ)
    return [one for one in wanted if one in there]


def _ways(kubectl: Kubectl, places: Sequence[Place], nodes: Sequence[SlurmNode]) -> list[Way]:
    tried = _tried(kubectl, places)
    return table(places, tried, {one.name: one for one in nodes})


def _cgroup_conf(kubectl: Kubectl, places: Sequence[Place]) -> str:
    """The cgroup.conf that a worker got of slurmctld; empty when none has one to show."""
    for one in places:
        if one.role == "slurmd" and one.pod:
            try:
                return kubectl("exec", one.pod, "-c", one.container, "--", "cat", _FETCHED)
            except KubectlError:
                continue
    return ""


def _operators(pods: Sequence[Json]) -> list[Place]:
    found = [one for one in of_kind(Pod, pods) if one.ready][:1]
    return [
        Place("operator", "", f"{one.metadata.namespace}/{one.metadata.name}", "operator")
        for one in found
    ]


def _nodes(kubectl: Kubectl, places: Sequence[Place]) -> list[SlurmNode]:
    """Slurm nodes by slurmctld; none if no pod can ask it."""
    order = ("slurmctld", "login", "slurmd")
    clients = sorted(
        (one for one in places if one.pod and one.role in order),
        key=lambda one: order.index(one.role),
    )
    for one in clients:
        command = ("timeout", "10", "sinfo", "-h", "-N", "-a", "-o", "%N %o %T")
        try:
            said = kubectl("exec", one.pod, "-c", one.container, "--", *command)
        except KubectlError:
            continue
        words = [line.split() for line in said.splitlines()]
        found = {row[0]: SlurmNode(row[0], row[1], row[2]) for row in words if len(row) == 3}
        return sorted(found.values(), key=lambda node: node.name)
    return []


def _tried(kubectl: Kubectl, places: Sequence[Place]) -> dict[tuple[str, str], str]:
    """What became of each way that begins in a pod; pods side by side."""
    wanted: dict[Place, list[str]] = {}
    for source, target in pairs(places):
        if source.pod:
            wanted.setdefault(source, []).append(target.address)

    def ask(source: Place) -> dict[tuple[str, str], str]:
        targets = sorted(set(wanted[source]))
        space, _, pod = source.pod.rpartition("/")
        where = [f"--namespace={space}"] if space else []
        how = ["bash", "-c", _TRY, "bash"]
        if source.role == "operator":
            how = ["/usr/bin/python3", "-c", _TRY_PYTHON]
        inside = ["-c", source.container] if not space else []
        try:
            said = kubectl("exec", *where, pod, *inside, "--", *how, *targets)
        except KubectlError as error:
            return {(source.pod, one): f"kubectl exec failed: {error}" for one in targets}
        rows = (line.split() for line in said.splitlines())
        return {(source.pod, row[0]): row[1] for row in rows if len(row) == 2}

    found: dict[tuple[str, str], str] = {}
    with ThreadPoolExecutor(max_workers=8) as pool:
        for answers in pool.map(ask, wanted):
            found |= answers
    return found
