"""Reasons of conditions, one enumeration for each subject."""

from __future__ import annotations

from typing import Final

from penstock.catalog.condition_reason import ConditionReason
from penstock.catalog.reasons.accounting import AccountingReason
from penstock.catalog.reasons.backup import BackupReason
from penstock.catalog.reasons.check import CheckReason
from penstock.catalog.reasons.configuration import ConfigReason
from penstock.catalog.reasons.connection import ConnectionReason
from penstock.catalog.reasons.jail import JailReason
from penstock.catalog.reasons.jail_upgrade import JailUpgradeReason
from penstock.catalog.reasons.jailed_config import JailedConfigReason
from penstock.catalog.reasons.keys import KeyReason
from penstock.catalog.reasons.object import ObjectReason
from penstock.catalog.reasons.partition import PartitionReason
from penstock.catalog.reasons.pods import PodReason
from penstock.catalog.reasons.power import PowerReason
from penstock.catalog.reasons.slurm_nodes import SlurmNodeReason
from penstock.catalog.reasons.token import TokenReason
from penstock.catalog.reasons.updates import UpdateReason
from penstock.catalog.reasons.workers import WorkerReason

SUBJECTS: Final[tuple[type[ConditionReason], ...]] = (
    ObjectReason,
    ConfigReason,
    ConnectionReason,
    KeyReason,
    TokenReason,
    AccountingReason,
    PodReason,
    WorkerReason,
    PowerReason,
    SlurmNodeReason,
    UpdateReason,
    PartitionReason,
    JailReason,
    JailUpgradeReason,
    JailedConfigReason,
    CheckReason,
    BackupReason,
)
ALL: Final[tuple[ConditionReason, ...]] = tuple(one for subject in SUBJECTS for one in subject)
_BY_NAME: Final = {one.value: one for one in ALL}


def find_reason(name: str) -> ConditionReason | None:
    """The reason of that name; None for one that is not declared."""
    return _BY_NAME.get(name)
