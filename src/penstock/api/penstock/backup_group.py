"""The kinds of `penstock.dev/v1alpha1` that belong to a SlurmCluster, each with its rules."""

from __future__ import annotations

from penstock.api.admission import ApiGroup, KindRules
from penstock.api.penstock import (
    backup,
    backup_rules,
    jail_upgrade,
    jail_upgrade_rules,
    restore,
)
from penstock.api.penstock.backup_parts import GROUP as NAME
from penstock.api.penstock.backup_parts import VERSION

BACKUP = KindRules(
    info=backup.INFO,
    problems=backup_rules.backup_problems,
    references=backup_rules.backup_references,
    uses=backup_rules.backup_uses,
)
RESTORE = KindRules(
    info=restore.INFO,
    problems=backup_rules.restore_problems,
    references=backup_rules.restore_references,
    uses=backup_rules.restore_uses,
    finalizers=(restore.RESTORE_FINALIZER,),
)
JAIL_UPGRADE = KindRules(
    info=jail_upgrade.INFO,
    problems=jail_upgrade_rules.problems,
    references=jail_upgrade_rules.references,
    uses=jail_upgrade_rules.uses,
)

GROUP = ApiGroup(NAME, VERSION, (BACKUP, RESTORE, JAIL_UPGRADE))
"""A process that does not lead `slurm.nebius.ai` does without them."""
