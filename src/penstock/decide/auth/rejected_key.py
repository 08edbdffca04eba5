"""A worker whose slurmd has another slurm.key than slurmctld, and from which Secrets they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import Pod
from penstock.api.kubernetes.meta import Json
from penstock.api.kubernetes.spec_parts import SecretKeySelector
from penstock.catalog.reasons.keys import KeyReason
from penstock.decide.observed.pod import SLURMD, slurmd_container, slurmd_started_at
from penstock.slurm.auth.key_files import SLURM_KEY

PATIENCE_S = 15.0
"""Seconds after which the log of a slurmd that is not ready is read; it retries every ten."""
FOLDER = "/etc/slurm"
_NO_KEY = "Protocol authentication error"
"""slurmctld's reply to a daemon with another key. Source: slurm_errno.h, 1007."""
_FETCH = "failed to fetch remote configs"
"""slurmd's log line each time that it does not get its configuration; the reason follows."""
_STARTED = "slurmd started on"
"""slurmd's log line once it has its configuration."""


@dataclass(frozen=True, slots=True)
class KeyRejection:
    """A worker whose key slurmctld rejects, with slurmd's words."""

    pod: str
    words: str


def starting(pods: Sequence[Pod]) -> Pod | None:
    """Return a worker whose slurmd runs and has not registered; the reason is in its log."""
    return next(filter(_starts, pods), None)


def late(pods: Sequence[Pod], now: float) -> list[Pod]:
    """Return the workers whose slurmd has not registered in the time that a start takes."""
    return [pod for pod in pods if _starts(pod) and waited(pod, now) >= PATIENCE_S]


def late_in(pods: Sequence[Pod], now: float) -> float | None:
    """Return the seconds until the next worker is late; None while none starts.

    One that is late for a moment may have become so after the logs to read were chosen.
    """
    waits = [PATIENCE_S - waited(pod, now) for pod in pods if _starts(pod)]
    return min((max(1.0, wait) for wait in waits if wait > -PATIENCE_S), default=None)


def _starts(pod: Pod) -> bool:
    if pod.ready or pod.metadata.deleting:
        return False
    slurmd = slurmd_container(pod)
    return slurmd is not None and slurmd.state.running is not None


def waited(pod: Pod, now: float) -> float:
    """Return the seconds since a worker's slurmd was started; 0 when none runs."""
    began = slurmd_started_at(pod)
    return 0.0 if began is None else now - began


def find_rejection(pod: Pod, log: str) -> KeyRejection | None:
    """Return the rejection of a worker's key that slurmd's log shows; None for none."""
    last = log.rpartition(_FETCH)[2] if _FETCH in log else ""
    denied = _NO_KEY in last and _STARTED not in last
    return KeyRejection(pod.metadata.name, _NO_KEY) if denied else None


def source(
    pod: Json, file: str, *, container: str = SLURMD, folder: str = FOLDER
) -> SecretKeySelector | None:
    """The Secret, and the key in it, from which a container has a file of a folder.

    `pod` is the pod as the API server has it. None when it is of something else.
    """
    spec: Mapping[str, Any] = pod.get("spec") or {}
    volumes = {one["name"]: one for one in spec.get("volumes") or ()}
    every: list[Json] = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    given = [mount for one in every if one["name"] == container for mount in one["volumeMounts"]]
    # The innermost mount covers the others.
    mounts: list[Json] = sorted(given, key=lambda one: -len(one["mountPath"]))
    for mount in mounts:
        path = PurePosixPath(mount["mountPath"])
        inside = mount.get("subPath") or ""
        if path == PurePosixPath(folder, file):
            return _found(volumes.get(mount["name"], {}), inside)
        if path == PurePosixPath(folder):
            return _found(volumes.get(mount["name"], {}), str(PurePosixPath(inside, file)))
    return None


def _found(volume: Json, path: str) -> SecretKeySelector | None:
    """Return the last source of a path: it covers the ones before."""
    every = [one for one in _files(volume) if one[0] == path or (one[0] == "" and path)]
    if not every:
        return None
    _, name, key = every[-1]
    return SecretKeySelector(name=name, key=key or path)


def _files(volume: Json) -> Iterator[tuple[str, str, str]]:
    """Path, Secret and key of all files of a volume; no path when it has all keys of a Secret."""
    projected: Json = volume.get("projected") or {}
    sources = [volume.get("secret"), *(one.get("secret") for one in projected.get("sources") or ())]
    for secret in filter(None, sources):
        name: str = secret.get("secretName") or secret.get("name") or ""
        items = secret.get("items")
        yield from ((one["path"], name, one["key"]) for one in items or ())
        if not items:
            yield "", name, ""


def finding(
    rejected: KeyRejection,
    own: SecretKeySelector | None,
    wanted: SecretKeySelector,
    kind: str = SLURM_KEY,
) -> Finding:
    """Return the condition. `own` is the source of the worker's key, `wanted` of slurmctld's."""
    message = (
        f"authentication failed: slurmctld rejects the {kind} of slurmd of {rejected.pod} "
        f"({rejected.words}). "
    )
    of = f"key {wanted.key} of Secret {wanted.name}"
    if own is None:
        message += f"Have the worker mount {of}, as slurmctld does"
    elif own == wanted:
        message += f"Both have {of}, which was changed: restart the one that has the former key"
    else:
        message += (
            f"Put {of}, which slurmctld has, into key {own.key} of Secret {own.name}, which the "
            "worker has"
        )
    return Finding(False, KeyReason.DIFFERS, message)
