"""Reasons about partitions."""

from __future__ import annotations

from penstock.catalog.condition_reason import NOTHING, PERSON, WAIT, ConditionReason


class PartitionReason(ConditionReason):
    """Reasons about partitions."""

    IN_EFFECT = "InEffect", "slurmctld has the partition as declared.", NOTHING
    APPLYING = "Applying", "slurmctld does not have the partition as declared yet.", WAIT
    REFUSED = (
        "PartitionRefused",
        "slurmctld rejects the change of a partition and keeps it as it was.",
        "Correct the parameter by slurmctld's words in the message.",
        PERSON,
    )
    NAME_TAKEN = (
        "NameTaken",
        "Another object declares a partition of this name, and keeps it.",
        "Remove it there, or choose another spec.name.",
        PERSON,
    )
    NODE_SET_NOT_FOUND = (
        "NodeSetNotFound",
        "A NodeSet that a partition or a NodeSetPowerState names does not exist.",
        "Create the NodeSet, or correct the name.",
        PERSON,
    )
    CONTROLLER_EXTERNAL = (
        "ControllerExternal",
        "The Controller is external, so its partitions are not written here.",
        "Declare the partition in the slurm.conf of that slurmctld.",
        PERSON,
    )
    JOBS_IN_PARTITION = (
        "JobsInPartition",
        "A removed partition stays, drained, until its jobs have ended.",
        "Wait for the jobs, or end them with scancel --partition.",
    )
    JOBS_UNKNOWN = (
        "JobsUnknown",
        "A removed partition stays, drained, as its jobs are not known.",
        "Create a RestApi, or check slurmrestd.",
        PERSON,
    )
    GOING = "PartitionGoing", "A removed partition has no job and is being deleted.", WAIT
    REFERENCES_RESOLVED = (
        "AllNodeSetRefsResolved",
        "All NodeSets exist that partitions of the SlurmCluster name.",
        NOTHING,
    )
    REFERENCES_IGNORED = (
        "IgnoredNodeSetRefs",
        "Partitions of the SlurmCluster name NodeSets that do not exist.",
        "Create the NodeSets, or correct nodeSetRefs.",
        PERSON,
    )
