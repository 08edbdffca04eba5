"""Reasons about keys, and about sssd and its directory service."""

from __future__ import annotations

from penstock.catalog.condition_reason import NOTHING, PERSON, WAIT, ConditionReason


class KeyReason(ConditionReason):
    """Reasons about keys and directories."""

    CREATING = "CreatingKeys", "A Secret with generated keys is being created.", WAIT
    IN_USE = "KeyInUse", "All daemons use the key of the Secret.", NOTHING
    CHANGING = (
        "KeyChanging",
        "A key rotation is under way. With status False it waits for somebody.",
        "Wait while the status is Unknown; else act on the pods that the message names.",
        PERSON,
    )
    REFUSED = (
        "KeyRefused",
        "A key rotation cannot begin: the two keys cannot be valid at the same time.",
        "Put a key of 16 bytes or more into the Secret.",
        PERSON,
    )
    RING_UNREADABLE = (
        "KeyRingUnreadable",
        "The Secret with the key ring is not the operator's, so no rotation takes place.",
        "Delete that Secret; the operator creates it again.",
        PERSON,
    )
    DIFFERS = (
        "KeyDiffers",
        "A worker has another key than slurmctld, which rejects it.",
        "Put the same key into both Secrets that the message names.",
        PERSON,
    )
    UNUSABLE = (
        "KeyUnusable",
        "A key is empty, or too short for munge or auth/slurm.",
        "Put a longer key into the Secret.",
        PERSON,
    )
    OF_OTHER_CLUSTER = (
        "KeyOfOtherCluster",
        "The Secret for a new cluster's key was generated for another cluster.",
        "Give the cluster another name, or name a Secret of your own.",
        PERSON,
    )
    AUTH_TYPES_DIFFER = (
        "AuthTypesDiffer",
        "slurmctld and slurmdbd sign messages by different plug-ins or keys.",
        "Name the same Secret in Controller and Accounting.",
        PERSON,
    )
    JWKS_UNREADABLE = (
        "JwksUnreadable",
        "The JWKS file in the ConfigMap is not UTF-8.",
        "Write the file again with the command of the message.",
        PERSON,
    )
    SSSD_CONF_INVALID = (
        "SssdConfInvalid",
        "sssd.conf has no domain, and sssd does not start with it.",
        "Add the section [domain/NAME] to the file in the Secret.",
        PERSON,
    )
    SSSD_FAILS = (
        "SssdFails",
        "sssd does not get its users from the directory; local users still log in.",
        "Correct sssd.conf by sssd's words in the message.",
        PERSON,
    )
    SSSD_WORKS = "SssdWorks", "sssd gets its users from the directory again.", NOTHING
