"""What to do when a namespace's pod security level refuses a worker.

Source: Kubernetes documentation, "Pod Security Standards" and "Pod Security Admission";
slurm.conf(5), SlurmdUser: slurmd runs as root, since it starts the jobs of all users.
"""

from __future__ import annotations

import re

from penstock.api.kubernetes.conditions import Finding

REFUSED = "PodSecurityRefused"
_VIOLATES = re.compile(r'violates PodSecurity "(\w+):[^"]*": ')
_ROOT = (
    "; slurmd runs as root, since it starts the jobs of all users, and that level admits no root. "
    "Have the namespace enforce `baseline`"
)
_LESS = (
    "; a worker is privileged unless it is declared otherwise. Say in spec.slurmd.securityContext "
    "`privileged: false` and `capabilities: {add: []}`, with which Slurm cannot use cgroups "
    "(ProctrackType=proctrack/linuxproc, TaskPlugin=task/none), or have the namespace enforce "
    "`privileged`"
)


def finding(refusal: str) -> Finding | None:
    """The condition for what the API server said to a pod; None when it was about something else.

    Below `restricted` it is only about rights that a worker can do without.
    """
    found = _VIOLATES.search(refusal)
    if found is None:
        return None
    level, which = found[1], refusal[found.end() :]
    advice = _ROOT if level == "restricted" else _LESS
    words = (
        f"The namespace enforces pod security `{level}`, which refuses a worker: {which}{advice}"
    )
    return Finding(False, REFUSED, words)
