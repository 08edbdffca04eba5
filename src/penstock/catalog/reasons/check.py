"""Reasons about ActiveChecks."""

from __future__ import annotations

from penstock.catalog.condition_reason import NOTHING, PERSON, WAIT, ConditionReason


class CheckReason(ConditionReason):
    """Reasons about a check, and about its last run."""

    CLUSTER_MAINTENANCE = (
        "ClusterInMaintenance",
        "The SlurmCluster is in maintenance, so the check is suspended.",
        WAIT,
    )
    CLUSTER_NOT_AVAILABLE = (
        "ClusterNotAvailable",
        "The check waits until the SlurmCluster is available.",
        "Read the conditions of the SlurmCluster.",
    )
    DEPENDENCY = (
        "WaitsForChecks",
        "The check waits for those in spec.dependsOn to be Complete or Skipped.",
        "Read the status of the checks that the message names.",
    )
    POD_TEMPLATE_NOT_FOUND = (
        "PodTemplateNotFound",
        "The PodTemplate in spec.podTemplateNameRef does not exist in this namespace.",
        "Create the PodTemplate, or remove the reference.",
        PERSON,
    )
    NO_RUN = "NoRun", "The check has not run yet.", WAIT
    RUNNING = "CheckRunning", "A Job or Slurm jobs of the check run.", WAIT
    PASSED = "CheckPassed", "The last run completed.", NOTHING
    SKIPPED = (
        "CheckSkipped",
        "The last run submitted no job, for the reason in the message.",
        NOTHING,
    )
    FAILED = (
        "CheckFailed",
        "A job of the last run failed.",
        "Repair the nodes that the message names; a run that completes on them undrains them.",
        PERSON,
    )
    POSTPONED = (
        "DrainsPostponed",
        "The check failed on Slurm nodes that stay in service: checks have drained as many as they "
        "may.",
        "Find out whether the check or the nodes are at fault; repair drained nodes, or raise the "
        "share.",
        PERSON,
    )
    ERROR = (
        "CheckError",
        "A job of the last run did not run as it should, so it is no result of its nodes.",
        "Read the message: the Job's container, a time limit, or a node that was lost.",
    )
    CANCELLED = "CheckCancelled", "Jobs of the last run were cancelled.", NOTHING
    RESULTS_UNKNOWN = (
        "ResultsUnknown",
        "Slurm cannot be asked for the results of jobs. They are read once it answers.",
        WAIT,
    )
