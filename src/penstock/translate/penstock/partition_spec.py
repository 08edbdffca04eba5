"""From a Partition to the Slurm partition that it declares."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.api.kubernetes.kinds import Requirement
from penstock.api.penstock import partition as api
from penstock.api.penstock.validation import partition_problems
from penstock.model.partition_spec import PartitionSpec, WorkerSelector
from penstock.translate.object_ref import object_ref


def partition_spec(partition: api.Partition) -> PartitionSpec:
    """The Slurm partition of a Partition."""
    meta, spec = partition.metadata, partition.spec
    return PartitionSpec(
        declared_by=object_ref(api.PARTITIONS, partition),
        name=partition.slurm_name,
        created=meta.creation_timestamp or "",
        is_deleting=meta.deleting,
        is_valid=next(partition_problems(partition), None) is None,
        nodes=spec.nodes,
        worker_sets=spec.node_sets,
        selector=_selector(spec.selector),
        settings={**dict(_settings(spec)), **dict(sorted(spec.extra.items()))},
    )


def _selector(selector: api.WorkerSelector | None) -> WorkerSelector | None:
    if selector is None:
        return None
    return WorkerSelector(
        features=frozenset(selector.features),
        pod_labels=_requirements(selector.pod_labels),
        node_labels=_requirements(selector.node_labels),
    )


def _requirements(selector: api.LabelSelector | None) -> tuple[Requirement, ...]:
    if selector is None:
        return ()
    equal = (Requirement(key, "In", (value,)) for key, value in selector.match_labels.items())
    other = (Requirement(one.key, one.operator, one.values) for one in selector.match_expressions)
    return (*equal, *other)


def _settings(spec: api.PartitionSpec) -> Iterator[tuple[str, str]]:
    for name, key in api.KEYS.items():
        value: object = getattr(spec, name)
        if value is not None and value not in ((), ""):
            yield key, _written(value)


def _written(value: object) -> str:
    if isinstance(value, bool):
        return "YES" if value else "NO"
    if isinstance(value, tuple):
        return ",".join(map(str, value))  # pyright: ignore[reportUnknownArgumentType]
    return str(value)
