"""What a status shows of slurmctld's configuration, after one step of the transaction."""

from __future__ import annotations

from typing import TypeVar

from msgspec.structs import replace

from penstock.api.cluster.slurmctld_status import SlurmctldStatus
from penstock.base.times import write
from penstock.decide.config.triggers import TriggerStep
from penstock.decide.config.view import ConfigStep

S = TypeVar("S", bound=SlurmctldStatus)


def config_status(
    old: S,
    decision: ConfigStep,
    *,
    wanted: str,
    rejection: str,
    triggered: TriggerStep | None,
    now: float,
) -> S:
    """The status with the hashes of the `wanted` configuration and of the active one.

    `rejection` are the words with which slurmctld rejected the wanted one. `now` is in Unix
    seconds.
    """
    since = old.config_since
    if decision.active != old.effective_config_hash:
        since = write(now) if decision.active else ""
    return replace(
        old,
        config_hash=wanted,
        effective_config_hash=decision.active,
        config_since=since,
        last_error=rejection,
        triggers=triggered.status if triggered is not None else old.triggers,
    )
