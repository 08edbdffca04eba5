"""Reasons about connections to external daemons."""

from __future__ import annotations

from penstock.catalog.condition_reason import NOTHING, PERSON, WAIT, ConditionReason


class ConnectionReason(ConditionReason):
    """Reasons about external daemons."""

    EXTERNAL = "External", "slurmdbd is external, and its port is open.", NOTHING
    SLURMCTLD_ANSWERS = "SlurmctldAnswers", "The external slurmctld answers.", NOTHING
    SLURMCTLD_SILENT = (
        "SlurmctldSilent",
        "The port of the external slurmctld is open, and slurmrestd has no answer from it.",
        "Check slurmctld and the slurmrestd of the RestApi.",
        PERSON,
    )
    NAME_NOT_RESOLVED = (
        "NameNotResolved",
        "The host name of an external daemon does not resolve in this cluster, or to an address "
        "inside it.",
        "Correct spec.externalConfig.host, or add the name to the cluster's DNS.",
        PERSON,
    )
    PORT_UNREACHABLE = (
        "PortUnreachable",
        "The port of an external daemon does not take connections from the operator's pod.",
        "Start the daemon, or open the port in firewalls and routes.",
        PERSON,
    )
    AUTHENTICATION_FAILED = (
        "AuthenticationFailed",
        "The external slurmctld rejects the JWT key or the key of a worker.",
        "Put the key of that slurmctld into the Secret that the message names.",
        PERSON,
    )
    WORKERS_UNREACHABLE = (
        "WorkersUnreachable",
        "The external slurmctld does not reach slurmd in ready pods.",
        "Give it a route to the pods' addresses, without a firewall on the way.",
        PERSON,
    )
    PARTITION_UNKNOWN = (
        "PartitionUnknown",
        "Whether the external slurmctld has the partition of a NodeSet is not known.",
        WAIT,
    )
    PARTITION_OUTSIDE = (
        "PartitionOutside",
        "The partition of a NodeSet is written in the slurm.conf of an external slurmctld.",
        "Add the lines of the message there and reconfigure it, if they are missing.",
        PERSON,
    )
