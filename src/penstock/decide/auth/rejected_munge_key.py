"""A worker with another key than slurmctld, of munge or auth/slurm, and the Secrets of both.

slurmd runs all the same, and its pod is ready: only its Slurm node is absent or does not respond.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import Pod
from penstock.api.kubernetes.meta import Json
from penstock.api.kubernetes.spec_parts import SecretKeySelector
from penstock.catalog.reasons.keys import KeyReason
from penstock.decide.auth.rejected_key import PATIENCE_S, KeyRejection, source, waited
from penstock.decide.observed.pod import is_registered, slurmd_container
from penstock.slurm.auth.key_files import SLURM_KEY
from penstock.slurm.known import Fact, Unknown
from penstock.slurm.state import Node

_CONTAINER: Final = "munge"
_FOLDER: Final = "/mnt/munge-key"
"""Where the munge container has the Secret."""
_FILE: Final = "munge.key"
_SLURM_FOLDER: Final = "/mnt/slurm-key"
"""Where slurmd's container has the Secret with the key of auth/slurm."""
_REJECTIONS: Final = (
    "Invalid credential",
    "Invalid authentication credential",
    "Protocol authentication error",
)
"""Reason in the log of a daemon whose key differs. Source: munge.h, slurm_errno.h."""


def unregistered(pods: Sequence[Pod], nodes: Fact[Mapping[str, Node]]) -> list[Pod]:
    """Return the pods whose slurmd runs and is not registered.

    The Slurm node has the name of its pod. None while slurmctld does not answer.
    """
    if isinstance(nodes, Unknown):
        return []
    found = ((pod, nodes.value.get(pod.metadata.name)) for pod in pods if _runs(pod))
    return [pod for pod, node in found if node is None or not is_registered(pod, node)]


def _runs(pod: Pod) -> bool:
    slurmd = slurmd_container(pod)
    return not pod.metadata.deleting and slurmd is not None and slurmd.state.running is not None


def late(pods: Sequence[Pod], now: float) -> list[Pod]:
    """Return those that had the time that a start takes."""
    return [pod for pod in pods if waited(pod, now) >= PATIENCE_S]


def find_rejection(pod: Pod, log: str) -> KeyRejection | None:
    """Return the rejection that slurmd's log shows; None for none."""
    words = next((one for one in _REJECTIONS if one in log), "")
    return KeyRejection(pod.metadata.name, words) if words else None


def source_of(pod: Json) -> SecretKeySelector | None:
    """The Secret of a pod's key; None when its key is of something else."""
    munge = source(pod, _FILE, container=_CONTAINER, folder=_FOLDER)
    return munge or source(pod, SLURM_KEY, folder=_SLURM_FOLDER)


def finding(
    rejected: KeyRejection, own: SecretKeySelector | None, wanted: SecretKeySelector
) -> Finding:
    """Return the condition. `own` is the source of the worker's key, `wanted` of slurmctld's."""
    pod, kind = rejected.pod, "slurm.key" if wanted.key == SLURM_KEY else "munge key"
    message = (
        f"authentication failed: the {kind} of {pod} is not that of slurmctld ({rejected.words}). "
    )
    of = f"key {wanted.key} of Secret {wanted.name}"
    if own is None:
        message += f"Have {pod} mount {of}, as slurmctld does"
    elif own == wanted:
        message += (
            f"Both have {of}, which was changed: delete pod {pod} if the Secret has slurmctld's key"
        )
    else:
        message += (
            f"Put {of}, which slurmctld has, into key {own.key} of Secret {own.name}, then delete "
            f"pod {pod}"
        )
    return Finding(False, KeyReason.DIFFERS, message)
