"""Pods that shall be made again.

Those that ended (evicted, or refused by the kubelet), and those that never got to work and are not
as declared any more.
"""

from __future__ import annotations

from penstock.api.kubernetes.kinds import Pod
from penstock.base import times
from penstock.decide.action import DeletionGround
from penstock.decide.drain.deletion_guard import can_delete
from penstock.decide.nodeset.status import current
from penstock.decide.observed.pod import is_finished
from penstock.decide.observed.slurm_view import SlurmSnapshot
from penstock.decide.observed.view import WorkerSetView

PAUSE_S = 10.0
"""Shortest life of a pod that is made again at once: a kubelet that refuses each pod in the moment
it sees it must not be fed at full speed."""

_USELESS = (DeletionGround.NEVER_BOUND, DeletionGround.NEVER_STARTED, DeletionGround.STOPPED)


def recreate_after(pod: Pod, now: float) -> float | None:
    """Seconds until the pod may be deleted to be made again, None when it has not ended."""
    if not is_finished(pod) or pod.metadata.deleting:
        return None
    made = times.parse(pod.metadata.creation_timestamp)
    return 0.0 if made is None else max(0.0, made + PAUSE_S - now)


def outdated(view: WorkerSetView, slurm: SlurmSnapshot, pod: Pod) -> DeletionGround | None:
    """Why a pod of an older revision may be replaced at once; None when it works or may do so.

    Its template is what keeps it from starting, for all that is known: an image that does not
    exist, an option that slurmd refuses. With strategy OnDelete users replace pods themselves.
    """
    if current(view, pod) or view.workers.update.type == "OnDelete":
        return None
    ground = can_delete(pod, slurm).ground
    return ground if ground in _USELESS else None
