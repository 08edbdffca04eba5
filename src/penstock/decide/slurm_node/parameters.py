"""Which parameters of a worker set's nodes change in Slurm itself, with no new pod.

These are features, weight, comment and extra, and counts of generic resources up to what the pod's
slurmd has: a node whose slurmd reports less than slurmctld expects is drained by it. slurmd sends
the other parameters when it registers, so they need another slurmd. What a node was last given
stands in its comment; what somebody gave it by hand since then is left alone.
Source: scontrol(1), "update" of nodes (AvailableFeatures, ActiveFeatures, Weight, Extra, Gres).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from penstock.api.kubernetes.kinds import Pod
from penstock.model.recorded_revision import RecordedRevision
from penstock.model.worker_set import WorkerSet
from penstock.slurm import gres
from penstock.slurm.daemons import NOT_FOR_SLURMD
from penstock.slurm.node_parameters import FEATURES, GRES, WEIGHT, is_weight
from penstock.slurm.state import Node

USUAL_WEIGHT = 1
"""That of a node for which nobody says otherwise. Source: slurm.conf(5), Weight."""


@dataclass(frozen=True, slots=True)
class ParameterChange:
    """`given` is what a node gets, `told` what its comment is to say that it was given."""

    given: NodeParameters
    told: NodeParameters


@dataclass(frozen=True, slots=True)
class NodeParameters:
    """What a node is to be called for jobs, how readily it is taken, and what it has to give."""

    features: frozenset[str] = frozenset()
    weight: int = USUAL_WEIGHT
    gres: str = ""
    """Counts of generic resources, in the form of `penstock.slurm.gres.text`."""
    extra: str = ""
    comment: str = ""
    """A word of the user's; it stands among what the node was given, in the operator's comment."""

    @property
    def text(self) -> str:
        """As words of slurm.conf, always the same for the same."""
        words = (("Gres", self.gres), ("Extra", self.extra), ("Comment", self.comment))
        given = "".join(f" {key}={value}" for key, value in words if value)
        return f"Features={','.join(sorted(self.features))} Weight={self.weight}{given}"

    def on(self, node: Node, before: NodeParameters) -> NodeParameters:
        """What becomes of a node that was given `before`; what it has besides stays.

        Its `gres` is empty when that stays.
        """
        features = frozenset(node.features) - before.features | self.features
        weight = node.weight if self.weight == before.weight else self.weight
        counts = "" if self.gres == before.gres else self.gres
        return NodeParameters(features, weight, counts, self.extra, self.comment)


def read(text: str) -> NodeParameters:
    """The words of a worker set's parameters, or of a comment, as far as they are live."""
    features: set[str] = set()
    weight = USUAL_WEIGHT
    resources: list[str] = []
    told: dict[str, str] = dict.fromkeys(NOT_FOR_SLURMD, "")
    for word in text.replace("'", "").replace('"', "").split():
        key, _, value = word.partition("=")
        if key.lower() in FEATURES:
            features.update(filter(None, value.split(",")))
        elif key.lower() == WEIGHT and is_weight(value):
            weight = int(value)
        elif key.lower() == GRES:
            resources.append(value)
        elif key.lower() in told:
            told[key.lower()] = value
    counts = gres.text(gres.counts(",".join(resources)))
    return NodeParameters(frozenset(features), weight, counts, told["extra"], told["comment"])


def wanted(workers: WorkerSet, parameters: str | None = None) -> NodeParameters:
    """What the nodes of a set are given, by its own parameters or by those of a revision."""
    found = read(workers.parameters if parameters is None else parameters)
    return replace(found, features=found.features | {workers.names.feature})


def equal_revisions(
    wanted: RecordedRevision, records: Iterable[RecordedRevision], fixed: Collection[str] = ()
) -> dict[str, str]:
    """By hash, the parameters of recorded revisions that differ from `wanted` in live words only.

    `fixed` are the counts of generic resources that slurmctld did not take: they need another pod.
    """
    most = read(wanted.parameters).gres
    return {
        one.hash: one.parameters
        for one in records
        if one.fixed_form == wanted.fixed_form
        if (has := read(one.parameters).gres) == most
        or (most not in fixed and gres.within(gres.counts(most), gres.counts(has)))
    }


def change(
    workers: WorkerSet, pod: Pod, node: Node, last: str | None, confs: Mapping[str, str]
) -> ParameterChange | None:
    """What a node is to be given now, None when it has it.

    Counts of resources that jobs use wait for these jobs: slurmctld would drain the node for it.

    `last` is what its comment says that it was given, `confs` the parameters of revisions by hash.
    A pod of a revision that nobody knows is left alone.
    """
    own = confs.get(workers.marks.revision_of(pod.metadata.labels) or "")
    if last is None and own is None:
        return None
    after = wanted(workers)
    # No slurmd says extra and comment.
    before = read(last) if last is not None else replace(wanted(workers, own), extra="", comment="")
    if not before.gres:
        # Comments of earlier versions do not tell it; slurmd did, then.
        before = replace(before, gres=after.gres if own is None else read(own).gres)
    if not gres.unused(node.gres_used, node.gres, after.gres):
        after = replace(after, gres=before.gres)
    if after == before and own is not None:
        # A slurmctld that starts or is reconfigured gives its nodes the weight anew that they
        # registered with, and leaves their features. Seen with Slurm 26.05.
        registered = read(own).weight
        if node.weight == registered:
            before = replace(before, weight=registered)
    return None if after == before else ParameterChange(after.on(node, before), after)
