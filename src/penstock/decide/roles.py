"""Which pods stay, which go and which are missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from penstock.api.core import Pod
from penstock.api.slinky.names import ordinal_of, padded_name, pod_name
from penstock.decide import ordinals
from penstock.decide.drain import Cause
from penstock.decide.rollout import Rollout, rollout
from penstock.decide.scale_in_order import victims
from penstock.decide.slurm_view import SlurmView
from penstock.decide.view import NodeSetView


@dataclass(frozen=True, slots=True)
class Roles:
    """Each pod has one role.

    `updating` are those that `update` takes: others of a newer template come in their place.
    `missing` are ordinals without a pod, `taken` those whose name somebody else's pod has, `wanted`
    the names of all pods that shall be, and `cause` is why the `condemned` go.
    """

    kept: tuple[Pod, ...] = ()
    condemned: tuple[Pod, ...] = ()
    updating: tuple[Pod, ...] = ()
    terminating: tuple[Pod, ...] = ()
    missing: tuple[int, ...] = ()
    taken: Mapping[int, Pod] = field(default_factory=dict[int, Pod])
    wanted: frozenset[str] = frozenset()
    cause: Cause = Cause.SCALE_IN
    update: Rollout = field(default_factory=Rollout)


def assign(view: NodeSetView, slurm: SlurmView) -> Roles:
    """Give each pod its role.

    A terminating pod keeps its ordinal until it is gone, as in a StatefulSet: no two pods ever
    claim one Slurm node name. Pods whose name has no ordinal are left as they are, and so is
    everything in DaemonSet mode, which this version does not serve; only the deletion of the
    NodeSet takes them along.
    """
    terminating = tuple(pod for pod in view.pods if pod.metadata.deleting)
    alive = tuple(pod for pod in view.pods if not pod.metadata.deleting)
    if view.deleting:
        return Roles(condemned=alive, terminating=terminating, cause=Cause.DELETION)
    if view.nodeset.spec.scaling_mode != "StatefulSet":
        names = frozenset(pod.metadata.name for pod in alive)
        return Roles(kept=alive, terminating=terminating, wanted=names)

    numbers = {pod.metadata.name: ordinal_of(view.nodeset, pod.metadata.name) for pod in view.pods}
    sized = tuple(pod for pod in alive if numbers[pod.metadata.name] is not None)
    gone = victims(view, sized, len(sized) - view.replicas, slurm)
    names_gone = {pod.metadata.name for pod in gone}
    stays = tuple(p for p in sized if p.metadata.name not in names_gone) if gone else sized
    update = rollout(view, slurm, stays)
    names_gone |= {pod.metadata.name for pod in update.condemned}
    kept = tuple(p for p in alive if p.metadata.name not in names_gone) if names_gone else alive
    used = {number for number in numbers.values() if number is not None}
    staying = used
    if len(stays) < len(view.pods):
        staying = {n for pod in stays if (n := numbers[pod.metadata.name]) is not None}
    wanted = ordinals.wanted(view.replicas, staying)
    others = {pod.metadata.name: pod for pod in view.others}
    free = [number for number in wanted if number not in used]
    taken = {
        number: others[name]
        for number in free
        if (name := pod_name(view.nodeset, number)) in others
    }
    return Roles(
        kept=kept,
        condemned=gone,
        updating=update.condemned,
        terminating=terminating,
        missing=tuple(number for number in free if number not in taken),
        taken=taken,
        wanted=_named(view.nodeset.metadata.name, view.nodeset.spec.ordinal_padding, wanted)
        | {pod.metadata.name for pod in kept},
        update=update,
    )


@lru_cache(maxsize=64)
def _named(nodeset: str, padding: int, numbers: tuple[int, ...]) -> frozenset[str]:
    """Names of pods; a NodeSet that does not change its size has the same ones each time."""
    return frozenset(padded_name(nodeset, padding, number) for number in numbers)
