"""Reasons about the Slurm nodes of workers."""

from __future__ import annotations

from penstock.catalog.condition_reason import NOTHING, PERSON, ConditionReason


class SlurmNodeReason(ConditionReason):
    """Reasons about Slurm nodes."""

    UNKNOWN = (
        "SlurmUnknown",
        "Slurm's nodes, jobs or partitions are not known, so nothing is drained or deleted.",
        "Check slurmrestd: a RestApi must exist, be Ready, and reach slurmctld.",
        PERSON,
    )
    NOT_REGISTERED = (
        "SlurmNodeNotRegistered",
        "Ready pods have no node in Slurm; their slurmd is made to register again.",
        "Wait a minute; then read the log of slurmd.",
        PERSON,
    )
    SHARED = (
        "SlurmNodeShared",
        "Several pods have the host name of one Slurm node.",
        "Give the pods, or the annotations of their Kubernetes nodes, different names.",
        PERSON,
    )
    VERSION_UNSUPPORTED = (
        "SlurmdVersionUnsupported",
        "slurmctld or the probes do not work with the release of a worker's slurmd.",
        "Set the image of slurmd to a release that the message names.",
        PERSON,
    )
    TOPOLOGY_MISSING = (
        "TopologyMissing",
        "Slurm nodes are in no unit of the default topology, so no job can use them.",
        "Annotate their Kubernetes nodes with the command of the message.",
        PERSON,
    )
    TOPOLOGY_REFUSED = (
        "TopologyRefused",
        "slurmctld rejects the topology in the annotation of a Kubernetes node.",
        "Correct the annotation, or add the unit to topology.yaml.",
        PERSON,
    )
    GRES_DIFFERS = (
        "GresDiffers",
        "The GPUs of the pod, of Gres and of gres.conf differ.",
        "Declare the same number in all places that the message names.",
        PERSON,
    )
    GRES_AGREES = "GresAgrees", "The GPUs are declared alike in all places.", NOTHING
