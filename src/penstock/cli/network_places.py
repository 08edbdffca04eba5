"""Where the daemons of a cluster run, by its objects: what `penstock network` tries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeVar

import msgspec

from penstock.api.cluster import labels as app_labels
from penstock.api.kubernetes.kinds import Pod
from penstock.api.kubernetes.meta import Json
from penstock.api.nebius import labels as nebius_labels
from penstock.api.nebius import names as nebius_names
from penstock.api.nebius.slurmcluster import SlurmCluster
from penstock.api.slinky import names
from penstock.api.slinky.accounting import Accounting
from penstock.api.slinky.controller import Controller
from penstock.api.slinky.loginset import LoginSet
from penstock.api.slinky.nodeset import NodeSet
from penstock.api.slinky.restapi import RestApi
from penstock.decide.cluster.network import Place, SlurmNode
from penstock.slurm import daemons

T = TypeVar("T")

_PORTS: Final = {
    "slurmctld": daemons.SLURMCTLD_PORT,
    "slurmdbd": daemons.SLURMDBD_PORT,
    "slurmrestd": daemons.SLURMRESTD_PORT,
}
_ROLE: Final = {app_labels.APP_NAME: "slurmd"}


def of_controller(controller: Controller, objects: Sequence[Json]) -> list[Place]:
    """slurmctld, slurmdbd, and a pod of each NodeSet, LoginSet and RestApi of the cluster."""
    name, space = controller.metadata.name, controller.metadata.namespace
    pods = _running(objects)

    def place(role: str, instance: str, host: str = "", port: int = 0) -> list[Place]:
        fits = _with(pods, app_labels.selector_labels(role, instance))
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
    for one in of_kind(Accounting, objects):
        if ref is not None and one.metadata.name == ref.name:
            at, behind = names.accounting_host(one), names.accounting_port(one)
            inside = place("slurmdbd", one.metadata.name, at, behind)
            found += inside or [Place("slurmdbd", "", host=at, port=behind)]
    for kind, role in ((NodeSet, "slurmd"), (LoginSet, "login")):
        for member in of_kind(kind, objects):
            if member.spec.controller_ref.name == name:
                found += place(role, member.metadata.name)
    for rest in of_kind(RestApi, objects):
        if rest.spec.controller_ref.name == name:
            behind = rest.spec.service.port or daemons.SLURMRESTD_PORT
            at = f"{names.restapi_service(rest)}.{space}"
            found += place("slurmrestd", rest.metadata.name, at, behind)
    return found


def of_slurm_cluster(cluster: SlurmCluster, objects: Sequence[Json]) -> list[Place]:
    """slurmctld, slurmdbd, slurmrestd, a login, and a worker of each NodeSet of a SlurmCluster."""
    name, space = cluster.metadata.name, cluster.metadata.namespace
    declared = cluster.spec.slurm_nodes
    rest = declared.rest.rest
    pods = _running(objects)
    found: list[Place] = []
    for role, component, container, host, port in (
        ("slurmctld", "controller", "slurmctld", "", declared.controller.slurmctld.port),
        ("slurmdbd", "accounting", "accounting", "", None),
        ("slurmrestd", "rest", "slurmrestd", f".{space}", rest.port if rest else None),
    ):
        at = f"{nebius_names.service(name, component)}{host}"
        behind = port or _PORTS[role]
        found += [
            Place(role, one.metadata.name, one.metadata.name, container, at, behind)
            for one in _with(pods, nebius_labels.selector_labels(component, name))[:1]
        ]
    logins = _with(pods, nebius_labels.selector_labels("login", name))
    found += [Place("login", one.metadata.name, one.metadata.name, "sshd") for one in logins[:1]]
    workers = [
        one
        for component in ("worker", "nodeset")
        for one in _with(pods, nebius_labels.selector_labels(component, name))
    ]
    first = {one.metadata.labels.get(nebius_labels.NODE_SET, ""): one for one in workers[::-1]}
    for one in sorted(first.values(), key=lambda one: one.metadata.name):
        pod, at = one.metadata.name, one.status.pod_ip or ""
        found.append(Place("slurmd", one.host, pod, "slurmd", at, _slurmd_port(objects, pod)))
    return found


def _slurmd_port(objects: Sequence[Json], pod: str) -> int:
    """The port that a worker's container declares: each NodeSet may have another one."""
    containers: list[Json] = next(
        one["spec"]["containers"]
        for one in objects
        if one["kind"] == "Pod" and one["metadata"]["name"] == pod
    )
    ports = (
        port["containerPort"]
        for one in containers
        if one["name"] == "slurmd"
        for port in one.get("ports", ())
    )
    return next(ports, daemons.SLURMD_PORT)


def _running(objects: Sequence[Json]) -> list[Pod]:
    """Pods that run, the ready ones first."""
    pods = [one for one in of_kind(Pod, objects) if one.status.phase == "Running"]
    return sorted(pods, key=lambda one: (not one.ready, one.metadata.name))


def _with(pods: Sequence[Pod], labels: dict[str, str]) -> list[Pod]:
    return [one for one in pods if labels.items() <= one.metadata.labels.items()]


def external_nodes(objects: Sequence[Json], nodes: Sequence[SlurmNode]) -> list[Place]:
    """The nodes that are no pods of this namespace."""
    workers = [one for one in of_kind(Pod, objects) if _ROLE.items() <= one.metadata.labels.items()]
    pods = {one.host for one in workers}
    return [
        Place("slurmd", one.name, host=one.address, port=daemons.SLURMD_PORT)
        for one in nodes
        if one.name not in pods
    ]


def of_kind(kind: type[T], objects: Sequence[Any]) -> list[T]:
    """Objects of one kind, typed."""
    return [msgspec.convert(one, kind) for one in objects if one["kind"] == kind.__name__]
