"""A second, tiny API: one kind, Crew, whose workers have names, labels and marks of their own.

Nothing of it is in the product. What a user of it sees must name no kind, field or mark of another.
"""

from __future__ import annotations

from typing import ClassVar, Final

from msgspec import field
from msgspec.structs import replace

from penstock.api.admission import ApiGroup, KindRules
from penstock.api.cluster import labels as app_labels
from penstock.api.kubernetes.meta import Json, KubeObject, KubeStruct
from penstock.api.kubernetes.resource import Resource
from penstock.api.kubernetes.schema import KindInfo
from penstock.api.kubernetes.spec_parts import Status
from penstock.model.image_sources import ImageSources
from penstock.model.worker_marks import CommentKeys, WorkerMarks
from penstock.model.worker_names import WorkerNames
from penstock.model.worker_set import (
    Placement,
    PvcPolicy,
    UpdatePolicy,
    Wording,
    WorkerSet,
)
from penstock.model.worker_status import WorkerSetStatus
from penstock.slurm.reservation_schedule import schedule

GROUP: Final = "tiny.example.org"
VERSION: Final = "v1"
MARKS: Final = WorkerMarks(
    kind="Crew",
    cordon=(f"{GROUP}/drain",),
    deadline="",
    deletion_cost=f"{GROUP}/cost",
    protect="",
    revision=(f"{GROUP}/revision",),
    per_node=f"{GROUP}/per-node",
    per_node_value="yes",
    labels={f"{GROUP}/role": "worker"},
    topology=f"{GROUP}/topology",
    features=f"{GROUP}/features",
    hostname=f"{GROUP}/hostname",
    cordon_reason=f"{GROUP}/reason",
    drain_prefix="tiny: ",
    state_prefix="TinyState",
    reservation_finalizer=f"{GROUP}/reservation",
    comment=CommentKeys("space", "crewPod", "on", "crew", "crewUID"),
)
WORDING: Final = Wording(
    cluster_kind="Controller", cluster_field="spec.cluster", template_field="spec"
)


class CrewUpdates(KubeStruct, frozen=True):
    """How pods reach a new template; in a reservation when `start` is set."""

    at_most: int | str = "25%"
    start: str = ""
    duration: str = "30m"
    flags: tuple[str, ...] = ()


class CrewSpec(KubeStruct, frozen=True):
    """Workers of the cluster of a Controller, which is named."""

    cluster: str
    replicas: int = 1
    image: str = "slurmd:1"
    words: str = ""
    updates: CrewUpdates = CrewUpdates()


class CrewStatus(Status, frozen=True, omit_defaults=False):
    """Counts by other names than those of a NodeSet."""

    identity: ClassVar[frozenset[str]] = frozenset({"observedGeneration", "template"})
    template: str = ""
    all: int = 0
    new: int = 0
    ready: int = 0
    available: int = 0
    missing: int = 0
    wanted: int = 0
    idle: int = 0
    busy: int = 0
    down: int = 0
    drained: int = 0
    places: dict[str, str] = field(default_factory=dict[str, str])


class Crew(KubeObject, frozen=True, kw_only=True):
    """A set of workers."""

    spec: CrewSpec
    status: CrewStatus = CrewStatus()


CREWS: Final = Resource(GROUP, VERSION, "Crew", "crews", Crew)
RULES: Final[KindRules[Crew]] = KindRules(info=KindInfo(CREWS, (), ()), problems=lambda _: ())
API_GROUP: Final = ApiGroup(GROUP, VERSION, (RULES,))


def names(crew: Crew) -> WorkerNames:
    name = crew.metadata.name
    return WorkerNames(
        pod_prefix=f"crew-{name}-w",
        host_prefix=f"{name}n",
        padding=3,
        uid=crew.metadata.uid,
        reservation=f"tiny-{name}",
        feature=name,
    )


def labels(crew: Crew) -> dict[str, str]:
    """Of all that belongs to a crew."""
    return {f"{GROUP}/crew": crew.metadata.name, f"{GROUP}/cluster": crew.spec.cluster}


def pod_labels(crew: Crew) -> dict[str, str]:
    """With the label by which the operator and others know Slurm's daemons."""
    return {**labels(crew), **MARKS.labels, app_labels.APP_NAME: "slurmd"}


def workers_of(crew: Crew) -> WorkerSet:
    """The workers that a Crew declares."""
    spec, status = crew.spec, crew.status
    updates = spec.updates
    window = schedule(updates.start, updates.duration, updates.flags) if updates.start else None
    return WorkerSet(
        api_version=CREWS.api_version,
        kind=CREWS.kind,
        metadata=crew.metadata,
        cluster=spec.cluster,
        names=names(crew),
        marks=MARKS,
        wording=WORDING,
        replicas=spec.replicas,
        per_node=False,
        placement=Placement({}, None, ()),
        host_network=False,
        pin_to_node=False,
        update=UpdatePolicy(
            "ScheduledUpdate" if updates.start else "RollingUpdate", updates.at_most, window
        ),
        pvcs=PvcPolicy(),
        parameters=spec.words,
        prune_missing_nodes=True,
        protect_busy_pods=False,
        min_ready_seconds=0,
        revision_history_limit=2,
        selector=labels(crew),
        images=ImageSources(crew.metadata.namespace, {}, {"worker": {"image": spec.image}}),
        chart_labels={},
        last=WorkerSetStatus(
            observed_generation=status.observed_generation,
            replicas=status.all,
            updated_replicas=status.new,
            ready_replicas=status.ready,
            available_replicas=status.available,
            unavailable_replicas=status.missing,
            desired=status.wanted,
            slurm_idle=status.idle,
            slurm_allocated=status.busy,
            slurm_down=status.down,
            slurm_drain=status.drained,
            revision=status.template,
            selector=",".join(f"{key}={value}" for key, value in sorted(labels(crew).items())),
            ordinal_to_node=status.places,
            conditions=status.conditions,
        ),
    )


def crew_status(old: CrewStatus, status: WorkerSetStatus) -> CrewStatus:
    """A Crew's next status."""
    return replace(
        old,
        observed_generation=status.observed_generation,
        template=status.revision,
        all=status.replicas,
        new=status.updated_replicas,
        ready=status.ready_replicas,
        available=status.available_replicas,
        missing=status.unavailable_replicas,
        wanted=status.desired,
        idle=status.slurm_idle,
        busy=status.slurm_allocated,
        down=status.slurm_down,
        drained=status.slurm_drain,
        places=dict(status.ordinal_to_node),
        conditions=status.conditions,
    )


def spec_of(parameters: str) -> Json:
    """The fields of the spec that declare parameters of nodes."""
    return {"words": parameters or None}
