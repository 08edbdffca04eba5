"""`penstock network`: whether Slurm's daemons reach each other, before any job is sent."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import msgspec
import typer

from penstock.api.cluster import labels as app_labels
from penstock.api.kubernetes.kinds import Pod
from penstock.api.kubernetes.meta import Json
from penstock.api.slinky import names
from penstock.api.slinky.accounting import Accounting
from penstock.api.slinky.controller import Controller
from penstock.api.slinky.loginset import LoginSet
from penstock.api.slinky.nodeset import NodeSet
from penstock.api.slinky.restapi import RestApi
from penstock.cli.output import Format, Output, examples, print_json
from penstock.decide.advice import cgroups
from penstock.decide.cluster.network import Place, SlurmNode, Way, lines, pairs, table
from penstock.slurm import daemons

T = TypeVar("T")

OPERATOR = "penstock-operator"
_ROLE = {app_labels.APP_NAME: "slurmd"}
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
        typer.echo(f"Controller {one.controller}")
        for line in (*lines(one.ways), *filter(None, (one.remark,))):
            typer.echo(f"  {line}")
    if not found:
        typer.echo("No Controller in this namespace: name another one with -n.")


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
    return {"controller": one.controller, "ways": ways, "remark": one.remark}


def _place(one: Place) -> Json:
    return {"role": one.role, "name": one.name, "pod": one.pod}


@dataclass(frozen=True, slots=True)
class Found:
    """Results for one cluster."""

    controller: str
    ways: list[Way]
    remark: str
    """About the cgroup.conf that pods and external nodes share; often empty."""


def read_clusters(kubectl: Kubectl) -> list[Found]:
    """The table of each Controller. Raises KubectlError when the objects cannot be read."""
    objects = kubectl.objects("controllers,accountings,nodesets,loginsets,restapis,pods")
    operators: list[Json] = []
    try:
        select = f"--selector={app_labels.APP_NAME}={OPERATOR}"
        operators = kubectl.objects("pods", "--all-namespaces", select)
    except KubectlError:
        # Who may not look into other namespaces sees all other rows.
        pass
    found: list[Found] = []
    for controller in _of(Controller, objects):
        places = here(controller, objects) + _operators(operators)
        nodes = _nodes(kubectl, places)
        machines = external_nodes(objects, nodes)
        remark = cgroups.fetched(_cgroup_conf(kubectl, places), [one.name for one in machines])
        places += machines
        tried = _tried(kubectl, places)
        table_ = table(places, tried, {one.name: one for one in nodes})
        found.append(Found(controller.metadata.name, table_, remark))
    return found


def _cgroup_conf(kubectl: Kubectl, places: Sequence[Place]) -> str:
    """The cgroup.conf that a worker got of slurmctld; empty when none has one to show."""
    for one in places:
        if one.role == "slurmd" and one.pod:
            try:
                return kubectl("exec", one.pod, "-c", one.container, "--", "cat", _FETCHED)
            except KubectlError:
                continue
    return ""


def here(controller: Controller, objects: Sequence[Json]) -> list[Place]:
    """slurmctld, slurmdbd, and a pod of each NodeSet, LoginSet and RestApi of the cluster."""
    name, space = controller.metadata.name, controller.metadata.namespace
    pods = [one for one in _of(Pod, objects) if one.status.phase == "Running"]

    def place(role: str, instance: str, host: str = "", port: int = 0) -> list[Place]:
        wanted = app_labels.selector_labels(role, instance).items()
        fits = [one for one in pods if wanted <= one.metadata.labels.items()]
        fits.sort(key=lambda one: (not one.ready, one.metadata.name))
        if not fits:
            return []
        pod = fits[0]
        own = role == "slurmd"
        at, behind = (pod.status.pod_ip or "", daemons.SLURMD_PORT) if own else (host, port)
        # By its Slurm node, the key of slurmctld's node list.
        called = pod.host if own else pod.metadata.name
        return [Place(role, called, pod.metadata.name, role, at, behind)]

    host, port = names.slurmctld_host(controller), names.slurmctld_port(controller)
    found = place("slurmctld", name, host, port)
    if controller.spec.external:
        found = [Place("slurmctld", "", host=host, port=port)]
    ref = controller.spec.accounting_ref
    for one in _of(Accounting, objects):
        if ref is not None and one.metadata.name == ref.name:
            at, behind = names.accounting_host(one), names.accounting_port(one)
            inside = place("slurmdbd", one.metadata.name, at, behind)
            found += inside or [Place("slurmdbd", "", host=at, port=behind)]
    for kind, role in ((NodeSet, "slurmd"), (LoginSet, "login")):
        for member in _of(kind, objects):
            if member.spec.controller_ref.name == name:
                found += place(role, member.metadata.name)
    for rest in _of(RestApi, objects):
        if rest.spec.controller_ref.name == name:
            behind = rest.spec.service.port or daemons.SLURMRESTD_PORT
            at = f"{names.restapi_service(rest)}.{space}"
            found += place("slurmrestd", rest.metadata.name, at, behind)
    return found


def _operators(pods: Sequence[Json]) -> list[Place]:
    found = [one for one in _of(Pod, pods) if one.ready][:1]
    return [
        Place("operator", "", f"{one.metadata.namespace}/{one.metadata.name}", "operator")
        for one in found
    ]


def external_nodes(objects: Sequence[Json], nodes: Sequence[SlurmNode]) -> list[Place]:
    """The nodes that are no pods of this namespace."""
    workers = [one for one in _of(Pod, objects) if _ROLE.items() <= one.metadata.labels.items()]
    pods = {one.host for one in workers}
    return [
        Place("slurmd", one.name, host=one.address, port=daemons.SLURMD_PORT)
        for one in nodes
        if one.name not in pods
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


def _of(kind: type[T], objects: Sequence[Any]) -> list[T]:
    """Objects of one kind, typed."""
    return [msgspec.convert(one, kind) for one in objects if one["kind"] == kind.__name__]
