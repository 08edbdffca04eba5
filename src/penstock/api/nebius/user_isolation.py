"""Memory limits for each user of a login pod."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from penstock.api.admission import Problem
from penstock.api.nebius.rule_parts import number
from penstock.api.nebius.slurm_nodes import LoginNode

HIGH_SHARE: Final = Fraction(8, 10)
MAX_SHARE: Final = Fraction(9, 10)
"""Shares of sshd's memory that apply without a value."""
_PATH: Final = "spec.slurmNodes.login.userIsolation"


def sshd_memory(login: LoginNode) -> Fraction | None:
    """Memory of the sshd container, in bytes; None when it has no request."""
    return number((login.sshd.resources or {}).get("memory"))


def user_isolation_problems(login: LoginNode) -> Iterator[Problem]:
    """Limits that no user could work with, in a spec that has them enabled."""
    isolation = login.user_isolation
    if isolation is None or not isolation.enabled:
        return
    memory = sshd_memory(login)
    high, most = number(isolation.memory_high), number(isolation.memory_max)
    for field, value in (("memoryHigh", high), ("memoryMax", most)):
        if value is not None and value <= 0:
            yield Problem(f"{_PATH}.{field}", "must be above 0")
        elif value is not None and memory and value >= memory:
            yield Problem(
                f"{_PATH}.{field}",
                f"must be below the memory of sshd, {(login.sshd.resources or {})['memory']}",
            )
    if high is None and memory:
        high = memory * HIGH_SHARE
    if most is None and memory:
        most = memory * MAX_SHARE
    if high is not None and most is not None and high > most:
        yield Problem(
            f"{_PATH}.memoryHigh",
            "must not exceed memoryMax; without a value they are 80 % and 90 % of sshd's memory",
        )
