"""Reasons about JailedConfigs, whose files sconfigcontroller writes into a jail."""

from __future__ import annotations

from penstock.catalog.condition_reason import NOTHING, PERSON, WAIT, ConditionReason


class JailedConfigReason(ConditionReason):
    """Reasons about a JailedConfig; ObjectReason.INVALID is one, too."""

    INIT = "Init", "The files wait until the jail is filled.", WAIT
    REFRESH = "Refresh", "Files are being replaced, or slurmctld is being reconfigured.", WAIT
    SUCCESS = "Success", "The files are written, and the update actions are done.", NOTHING
    MISSING_ACTION = (
        "MissingAction",
        "The files are written; the JailedConfig has no update action.",
        NOTHING,
    )
    NOT_WRITTEN = (
        "NotWritten",
        "The update actions wait, as the files are not written.",
        "Read the condition FilesWritten.",
    )
    FAILED = (
        "Failed",
        "A file cannot be written, or slurmctld cannot be reconfigured. It is tried again.",
        "Remove the cause in the message: the jail's volume, or slurmrestd.",
        PERSON,
    )
    NOT_FOUND = (
        "NotFound",
        "The ConfigMap of the JailedConfig does not exist.",
        "Create the ConfigMap.",
        PERSON,
    )
    KEY_NOT_FOUND = (
        "KeyNotFound",
        "The ConfigMap lacks a key that spec.items names.",
        "Add the key, or remove the item.",
        PERSON,
    )
    CONFLICT = (
        "Conflict",
        "An older JailedConfig, or the cluster's configuration, writes the same file.",
        "Remove the file from one of them.",
        PERSON,
    )
