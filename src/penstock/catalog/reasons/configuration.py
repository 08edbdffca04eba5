"""Reasons about slurm.conf and the other files of a cluster, and about drift from them."""

from __future__ import annotations

from penstock.catalog.condition_reason import NOTHING, PERSON, WAIT, ConditionReason


class ConfigReason(ConditionReason):
    """Reasons about the configuration of a cluster."""

    ACCEPTED = "ConfigAccepted", "slurmctld accepts the declared configuration.", NOTHING
    IN_EFFECT = "ConfigInEffect", "slurmctld runs with the declared configuration.", NOTHING
    DELIVERED = (
        "ConfigDelivered",
        "The configuration was handed over without a trial, and nobody reports its result.",
        "Use Penstock's own reconfigure container to have it tried and reported.",
    )
    TRYING = "ConfigTrying", "The candidate configuration waits for its trial start.", WAIT
    DELIVERING = (
        "ConfigDelivering",
        "The candidate configuration waits for the daemon to take it over.",
        WAIT,
    )
    RESTARTING = (
        "ConfigRestarting",
        "slurmctld restarts for a change that no reconfigure brings into effect.",
        WAIT,
    )
    REFUSED = (
        "ConfigRefused",
        "The daemon rejects the configuration and keeps the last known good one.",
        "Correct the line that the message names.",
        PERSON,
    )
    FILE_REFUSED = (
        "ConfigFileRefused",
        "A ConfigMap has a file whose name is reserved for a generated file or a key.",
        "Remove the file from the ConfigMap, and use the field that the message names.",
        PERSON,
    )
    FILES_HIDDEN = (
        "ConfigFilesHidden",
        "Several ConfigMaps have a file of one name; the last of them is mounted.",
        "Keep the file in one ConfigMap only.",
    )
    KEYS_LEFT_OUT = (
        "ConfigKeysLeftOut",
        "Declared values are not in slurm.conf, as this Slurm does not know them.",
        "Remove the fields, or use a Slurm that knows them.",
    )
    TOPOLOGY_LABELS_REJECTED = (
        "TopologyLabelsRejected",
        "Topology labels of Kubernetes nodes contradict those of others, so they are not used.",
        "Correct the labels that the message names.",
    )
    VERSION_REFUSED = (
        "SlurmVersionRefused",
        "The declared release of slurmctld cannot read the state of the one that served last.",
        "Declare an image of a release that can: the same one, or up to three releases later.",
        PERSON,
    )
    TRIAL_IMAGE_DIFFERS = (
        "TrialImageDiffers",
        "The reconfigure container has another release than slurmctld, so it tries no files.",
        "Remove spec.reconfigure.image.",
    )
    DRIFT_UNKNOWN = (
        "DriftUnknown",
        "The annotation penstock.dev/drift has an unknown value; drift is only reported.",
        "Set the annotation to Report, Revert or Adopt.",
        PERSON,
    )
    CHANGED_IN_SLURM = (
        "ChangedInSlurm",
        "Somebody changed a partition or node in Slurm itself, against its declaration.",
        "Declare the change, or have it reverted or adopted.",
        PERSON,
    )
    AS_DECLARED = "AsDeclared", "Partitions and nodes in Slurm are as declared.", NOTHING
    IGNORE_SYSTEMD = (
        "IgnoreSystemd",
        "cgroup.conf has IgnoreSystemd, and slurm.conf has nodes outside of Kubernetes.",
        "Write IgnoreSystemdOnFailure=yes in its place.",
        PERSON,
    )
    CGROUP_CONF_NOT_SEEN = (
        "CgroupConfNotSeen",
        "An external slurmctld has other nodes too, and its cgroup.conf cannot be read here.",
        "Check that its cgroup.conf has no IgnoreSystemd=yes.",
        PERSON,
    )
