"""PersistentVolumeClaimSpec of core/v1 in full: the Controller's `persistence` has it inline."""

from __future__ import annotations

from typing import Annotated

from penstock.api.kubernetes import quantity
from penstock.api.kubernetes.meta import KubeStruct
from penstock.api.kubernetes.schema import ATOMIC_LIST, ATOMIC_MAP, about

Quantity = Annotated[
    int | str,
    about(
        "A Kubernetes quantity, of at most 64 characters and with an exponent from -18 to 18.",
        {"pattern": quantity.PATTERN, "maxLength": quantity.LONGEST},
    ),
]


class LabelSelectorRequirement(KubeStruct, frozen=True):
    """One condition on a label."""

    key: Annotated[str, about("Label key.")]
    operator: Annotated[str, about("In, NotIn, Exists or DoesNotExist.")]
    values: Annotated[tuple[str, ...] | None, about("Values for In and NotIn.", ATOMIC_LIST)] = None


class LabelSelector(KubeStruct, frozen=True):
    """Objects by their labels."""

    match_labels: Annotated[dict[str, str] | None, about("Labels to have.")] = None
    match_expressions: Annotated[
        tuple[LabelSelectorRequirement, ...] | None,
        about("Conditions on labels.", ATOMIC_LIST),
    ] = None


class VolumeResources(KubeStruct, frozen=True):
    """Storage that a PVC requests."""

    limits: Annotated[dict[str, Quantity] | None, about("At most this much.")] = None
    requests: Annotated[dict[str, Quantity] | None, about("At least this much.")] = None


class DataSource(KubeStruct, frozen=True, kw_only=True):
    """What a volume is filled from, within the namespace."""

    api_group: Annotated[str | None, about("API group; empty for the core group.")] = None
    kind: Annotated[str, about("Kind of the source.")]
    name: Annotated[str, about("Name of the source.")]


class DataSourceRef(DataSource, frozen=True):
    """What a volume is filled from, maybe in another namespace."""

    namespace: Annotated[str | None, about("Namespace of the source.")] = None


class PvcSpec(KubeStruct, frozen=True):
    """PersistentVolumeClaimSpec."""

    access_modes: Annotated[
        tuple[str, ...] | None, about("How the volume is mounted: ReadWriteOnce...", ATOMIC_LIST)
    ] = None
    selector: Annotated[LabelSelector | None, about("Volumes to choose from.", ATOMIC_MAP)] = None
    resources: Annotated[VolumeResources | None, about("Size of the volume.")] = None
    volume_name: Annotated[str | None, about("A particular volume to bind to.")] = None
    storage_class_name: Annotated[str | None, about("Storage class; absent: the default.")] = None
    volume_mode: Annotated[str | None, about("Filesystem or Block.")] = None
    data_source: Annotated[DataSource | None, about("Snapshot or PVC to copy.", ATOMIC_MAP)] = None
    data_source_ref: Annotated[DataSourceRef | None, about("Object to fill the volume from.")] = (
        None
    )
    volume_attributes_class_name: Annotated[
        str | None, about("Volume attributes class, for drivers that can change a volume.")
    ] = None
