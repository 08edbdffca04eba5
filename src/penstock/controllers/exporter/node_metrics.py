"""Metrics of Slurm nodes by the published names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from penstock.catalog import exporter_metric as of
from penstock.catalog.exporter_metric import Metric
from penstock.controllers.exporter import node_state
from penstock.controllers.exporter.family import Family, histogram, single
from penstock.controllers.exporter.history import state_labels
from penstock.controllers.exporter.node_state import MIB
from penstock.controllers.exporter.snapshot import Snapshot
from penstock.slurm.rest.records import NodeRecord

_LONGEST_RESERVATION: Final = 50
_FLAGS: Final = (
    "COMPLETING",
    "FAIL",
    "PLANNED",
    "NOT_RESPONDING",
    "INVALID",
    "CLOUD",
    "POWER_DOWN",
    "POWER_DRAIN",
    "POWERED_DOWN",
    "POWERING_DOWN",
    "POWERING_UP",
    "POWER_UP",
)
"""States whose label is `true` or empty, in the order of the labels. The three older ones have
`false`."""


def families(taken: Snapshot) -> Iterator[Family]:
    """All of them; their series are made while they are written."""
    nodes, history = taken.nodes, taken.history
    yield single(of.NODE_INFO, ((_info(node), 1) for node in nodes))
    for metric, amount in _AMOUNTS:
        found = ((node.name, amount(node)) for node in nodes)
        yield single(metric, (((name,), value) for name, value in found if value is not None))
    yield single(of.NODE_PARTITION, (((n.name, p), 1) for n in nodes for p in n.partitions))
    yield single(of.NODE_NVLINK, ((labels, 1) for labels in _nvlink(taken)))
    yield single(of.NODE_GPU_SECONDS, history.gpu_seconds.items())
    yield single(of.NODE_FAILS, history.fails.items())
    yield histogram(of.NODE_UNAVAILABILITY, history.saved.unavailable.ended.items())
    yield histogram(of.NODE_DRAINING, history.saved.draining.ended.items())


def _info(node: NodeRecord) -> tuple[str, ...]:
    name, *states = state_labels(node)
    flags = (
        node_state.is_invalid(node) if flag == "INVALID" else flag in node.states for flag in _FLAGS
    )
    return (
        name,
        node.instance_id,
        *states,
        *("true" if flag else "" for flag in flags),
        "true" if node_state.is_unavailable(node) else "",
        node.reservation[:_LONGEST_RESERVATION],
        node.address,
        node.reason,
        node.comment,
    )


def _nvlink(taken: Snapshot) -> Iterator[tuple[str, str, str, str]]:
    for node in taken.nodes:
        place = taken.place(node.name)
        if place.nvlink_group:
            yield node.name, node.instance_id, place.nvlink_group, place.node_set


def _cpus(node: NodeRecord) -> float | None:
    if node.cpus is not None:
        return node.cpus
    return node_state.tres_amounts(node.tres).get("cpu") or None


def _memory(node: NodeRecord) -> float | None:
    if node.memory is not None:
        return node.memory * MIB
    return node_state.tres_amounts(node.tres).get("mem") or None


def _effective_memory(node: NodeRecord) -> float | None:
    if node.memory is None:
        return _memory(node)
    return max(node.memory - (node.specialized_memory or 0), 0) * MIB


def _bytes(mib: int | None) -> float | None:
    return None if mib is None else mib * MIB


_AMOUNTS: Final[tuple[tuple[Metric, Callable[[NodeRecord], float | None]], ...]] = (
    (of.NODE_CPUS, _cpus),
    (of.NODE_CPUS_ALLOCATED, lambda node: node.allocated_cpus),
    (of.NODE_CPUS_IDLE, lambda node: node.idle_cpus),
    (of.NODE_CPUS_EFFECTIVE, lambda node: node.effective_cpus),
    (of.NODE_MEMORY, _memory),
    (of.NODE_MEMORY_ALLOCATED, lambda node: _bytes(node.allocated_memory)),
    (of.NODE_MEMORY_FREE, lambda node: _bytes(node.free_memory)),
    (of.NODE_MEMORY_EFFECTIVE, _effective_memory),
)
