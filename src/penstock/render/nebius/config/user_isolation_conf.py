"""user-isolation.conf: limits of each user's cgroup in a login pod.

The login's entry point and the PAM session hook read it as shell variables.
Source: Linux, Documentation/admin-guide/cgroup-v2: memory.high, memory.max, cpu.weight.
"""

from __future__ import annotations

from fractions import Fraction

from penstock.api.kubernetes.quantity import quantity
from penstock.api.nebius.rule_parts import number
from penstock.api.nebius.slurm_nodes import LoginNode
from penstock.api.nebius.user_isolation import HIGH_SHARE, MAX_SHARE, sshd_memory
from penstock.render.nebius.config.lines import file_text

_PREFIX = "SOPERATOR_USER_ISOLATION"
_WEIGHT = 100


def user_isolation_conf(login: LoginNode) -> str:
    """Whether users are isolated, and their limits; memory in bytes, rounded down."""
    isolation = login.user_isolation
    if isolation is None or not isolation.enabled:
        return file_text([f"{_PREFIX}_ENABLED=false"])
    memory = sshd_memory(login)
    limits = (
        ("MEMORY_HIGH", isolation.memory_high, HIGH_SHARE),
        ("MEMORY_MAX", isolation.memory_max, MAX_SHARE),
    )
    lines = [
        f"{_PREFIX}_{key}={value}"
        for key, given, share in limits
        if (value := _bytes(given, memory, share)) is not None
    ]
    weight = f"{_PREFIX}_CPU_WEIGHT={isolation.cpu_weight or _WEIGHT}"
    return file_text([f"{_PREFIX}_ENABLED=true", *lines, weight])


def _bytes(given: str | int | None, memory: Fraction | None, share: Fraction) -> int | None:
    """The declared limit, else the share of sshd's memory; None without either."""
    if number(given) is not None and given is not None:
        return int(quantity(given))
    return int(memory * share) if memory else None
