"""Condition and remedy when a namespace's pod security level rejects a worker.

Source: Kubernetes documentation, "Pod Security Standards" and "Pod Security Admission";
slurm.conf(5), SlurmdUser: slurmd runs as root, since it starts the jobs of all users.
"""

from __future__ import annotations

import re

from penstock.api.kubernetes.conditions import Finding
from penstock.catalog.reasons.pods import PodReason

REFUSED = PodReason.SECURITY_REFUSED
_VIOLATES = re.compile(r'violates PodSecurity "(\w+):[^"]*": ')
_ROOT = (
    "; slurmd runs as root, since it starts the jobs of all users, and that level admits no root. "
    "Have the namespace enforce `baseline`"
)
_LESS = (
    "; a worker is privileged by default. Have the namespace enforce `privileged`, or set "
    "`privileged: false` and `capabilities: {add: []}` in spec.slurmd.securityContext, without "
    "cgroups (ProctrackType=proctrack/linuxproc, TaskPlugin=task/none)"
)


def finding(rejection: str) -> Finding | None:
    """Return the condition for the API server's rejection of a pod; None for another cause.

    Below `restricted` a worker can be declared without the rights that are rejected.
    """
    found = _VIOLATES.search(rejection)
    if found is None:
        return None
    level, which = found[1], rejection[found.end() :]
    advice = _ROOT if level == "restricted" else _LESS
    words = (
        f"The namespace enforces pod security `{level}`, which rejects a worker: {which}{advice}"
    )
    return Finding(False, REFUSED, words)
