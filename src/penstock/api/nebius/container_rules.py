"""Containers of daemons, counts and ports: values that no pod can have.

The schema takes any number, and leaves variables and probes open.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, cast

from penstock.api.admission import Problem
from penstock.api.kubernetes import shapes
from penstock.api.kubernetes.meta import Json
from penstock.api.nebius.common import NodeContainer
from penstock.api.nebius.nodeset import NodeSetSpec
from penstock.api.nebius.rule_parts import number, shape_problems
from penstock.api.nebius.slurmcluster import SlurmClusterSpec

MOST_NODES: Final = 65_536
"""Nodes of a Slurm cluster. Source: slurm.h, MAX_SLURM_NODES."""
_HIGHEST_PORT: Final = 65_535
_SHAPES: Final = cast("Mapping[str, shapes.Shape]", shapes.CONTAINER)
_NODES: Final = "spec.slurmNodes"


def cluster_containers(spec: SlurmClusterSpec) -> Iterator[Problem]:
    """Faults of the containers of a SlurmCluster, and more workers than Slurm has nodes."""
    for path, one in _of_cluster(spec):
        yield from _open(path, one.custom_env, one.liveness_probe, one.readiness_probe)
        yield from _amounts(f"{path}.resources", one.resources or {})
        yield from _port(f"{path}.port", one.port)
    worker = spec.slurm_nodes.worker
    if worker is not None:
        yield from _most(f"{_NODES}.worker.size", worker.size or 0)


def node_set_containers(spec: NodeSetSpec) -> Iterator[Problem]:
    """As `cluster_containers`, of a NodeSet."""
    slurmd = spec.slurmd
    for path, one, env in (
        ("spec.slurmd", slurmd, slurmd.custom_env),
        ("spec.munge", spec.munge, ()),
        *([("spec.sssd", spec.sssd, ())] if spec.sssd is not None else []),
    ):
        yield from _open(path, env, one.liveness_probe, one.readiness_probe)
        yield from _amounts(f"{path}.resources", one.resources)
    yield from _amounts(
        "spec.slurmd.volumes", {"sharedMemorySize": slurmd.volumes.shared_memory_size}
    )
    yield from _port("spec.slurmd.port", slurmd.port)
    yield from _most("spec.replicas", spec.replicas)


def cluster_counts(spec: SlurmClusterSpec) -> Iterator[Problem]:
    """Numbers below 0, which mean 0 in a stored object."""
    nodes, writer = spec.slurm_nodes, spec.sconfig_controller
    counts = {
        f"{_NODES}.login.size": nodes.login.size,
        f"{_NODES}.rest.size": nodes.rest.size,
        f"{_NODES}.worker.size": nodes.worker.size if nodes.worker is not None else None,
        "spec.sConfigController.node.size": writer.node.size,
        "spec.sConfigController.runAsUid": writer.run_as_uid,
        "spec.sConfigController.runAsGid": writer.run_as_gid,
    }
    for path, count in counts.items():
        yield from _not_below_0(path, count)


def node_set_counts(spec: NodeSetSpec) -> Iterator[Problem]:
    """As `cluster_counts`, of a NodeSet."""
    yield from _not_below_0("spec.replicas", spec.replicas)


def _of_cluster(spec: SlurmClusterSpec) -> Iterator[tuple[str, NodeContainer]]:
    nodes = spec.slurm_nodes
    yield f"{_NODES}.controller.slurmctld", nodes.controller.slurmctld
    yield f"{_NODES}.controller.munge", nodes.controller.munge
    yield f"{_NODES}.login.sshd", nodes.login.sshd
    yield f"{_NODES}.login.munge", nodes.login.munge
    for name, sssd in (("controller", nodes.controller.sssd), ("login", nodes.login.sssd)):
        if sssd is not None:
            yield f"{_NODES}.{name}.sssd", sssd
    if nodes.rest.rest is not None:
        yield f"{_NODES}.rest.rest", nodes.rest.rest
    if nodes.worker is not None:
        yield f"{_NODES}.worker.slurmd", nodes.worker.slurmd
        yield f"{_NODES}.worker.munge", nodes.worker.munge
    if nodes.exporter.enabled and nodes.exporter.exporter_container is not None:
        yield f"{_NODES}.exporter.exporterContainer", nodes.exporter.exporter_container
    accounting = nodes.accounting
    for field, one in (("slurmdbd", accounting.slurmdbd), ("munge", accounting.munge)):
        if accounting.enabled and one is not None:
            yield f"{_NODES}.accounting.{field}", one
    database = accounting.mariadb_operator
    if accounting.enabled and database is not None and database.enabled:
        yield f"{_NODES}.accounting.mariadbOperator", database
    yield "spec.sConfigController.container", spec.sconfig_controller.container


def _open(
    path: str, env: Sequence[Json], liveness: Json | None, readiness: Json | None
) -> Iterator[Problem]:
    yield from shape_problems(f"{path}.customEnv", list(env), _SHAPES["env"])
    for name, probe in (("livenessProbe", liveness), ("readinessProbe", readiness)):
        yield from shape_problems(f"{path}.{name}", probe or {}, _SHAPES[name])


def _amounts(path: str, amounts: Mapping[str, int | str]) -> Iterable[Problem]:
    for name, amount in amounts.items():
        if (found := number(amount)) is not None and found < 0:
            yield Problem(f"{path}.{name[:60]}", f"{amount!r} is below 0: write an amount from 0")


def _port(path: str, port: int | None) -> Iterator[Problem]:
    if port is not None and not 0 <= port <= _HIGHEST_PORT:
        yield Problem(path, f"{port} is no port: write one from 1 to {_HIGHEST_PORT}")


def _most(path: str, count: int) -> Iterator[Problem]:
    if count > MOST_NODES:
        yield Problem(path, f"{count} are more than {MOST_NODES}, the nodes of a Slurm cluster")


def _not_below_0(path: str, count: int | None) -> Iterator[Problem]:
    if count is not None and count < 0:
        yield Problem(path, f"{count} is below 0: write a number from 0")
