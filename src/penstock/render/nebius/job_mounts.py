"""Mounts inside the jail that each job has for itself, by its id in the subPath.

No mount of Kubernetes can expand a job's id. So the pod has the whole volume outside of the jail,
where no user sees it, and chroot.so makes the mount for each step. The list of mounts is a
variable of the pod, which the entry point of the slurmd image writes to a file:

    VOLUME <tab> FOLDER <tab> TARGET <tab> rw|ro

VOLUME is the path of the mounted volume, FOLDER the subPath, TARGET the path in the jail.
Source of the form: images/jail/chroot/job_mounts.h.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Final

from penstock.api.kubernetes.meta import Json
from penstock.api.nebius.volumes import JOB_ID
from penstock.render.nebius.container import variable
from penstock.render.nebius.volumes import Mount, Volume, mount, normal

PATH: Final = "/mnt/jail.jobs"
"""Folder of the container with these volumes."""
VARIABLE: Final = "PENSTOCK_JOB_MOUNTS"


def job_mounts(own: Iterable[Volume], given: Sequence[Mount]) -> tuple[Mount, ...]:
    """Those of the declared mounts that each job has for itself.

    Each is of the first volume of the pod that has its PVC: of `own`, or of a mount before. So the
    list names the volume that stays (`pvc_volumes`).
    """
    others = (one.volume for one in given if JOB_ID not in one.sub_path)
    first: dict[str, Volume] = {}
    for volume in (*own, *others):
        if pvc := _writable_pvc(volume):
            first.setdefault(pvc, volume)
    found: list[Mount] = []
    for one in given:
        if JOB_ID in one.sub_path:
            pvc = _writable_pvc(one.volume)
            volume = first.setdefault(pvc, one.volume) if pvc else one.volume
            found.append(replace(one, volume=volume))
    return tuple(found)


def _writable_pvc(volume: Volume) -> str:
    """The PVC of a volume; empty for other volumes, and for a read-only one."""
    found: Json = volume.source.get("persistentVolumeClaim") or {}
    return "" if found.get("readOnly") else str(found.get("claimName") or "")


def volume_mounts(jobs: Iterable[Mount]) -> list[Json]:
    """Mounts of the container, writable whatever those of jobs are: folders are made in them."""
    return [
        mount(name, f"{PATH}/{name}") for name in dict.fromkeys(one.volume.name for one in jobs)
    ]


def variables(jobs: Iterable[Mount]) -> list[Json]:
    """The list of mounts; no variable without a mount."""
    text = "".join(map(_line, jobs))
    return [variable(VARIABLE, text)] if text else []


def _line(one: Mount) -> str:
    folder = str(PurePosixPath(one.sub_path))
    mode = "ro" if one.read_only else "rw"
    return "\t".join((_place(one), folder, normal(one.path), mode)) + "\n"


def _place(one: Mount) -> str:
    return f"{PATH}/{one.volume.name}"
