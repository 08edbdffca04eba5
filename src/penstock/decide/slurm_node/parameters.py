"""Parameters of Slurm nodes that change by an update in Slurm, without a new pod.

These are features, weight, comment and extra, and counts of generic resources up to those that the
pod's slurmd has: slurmctld drains a node whose slurmd reports less than expected. slurmd sends the
other parameters when it registers, so they need another slurmd. The node's comment records the
values last written; later changes by hand stay.
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
"""Weight of a node for which none is set. Source: slurm.conf(5), Weight."""


@dataclass(frozen=True, slots=True)
class ParameterChange:
    """`given` are the new values of a node, `recorded` those that its comment must record."""

    given: NodeParameters
    recorded: NodeParameters


@dataclass(frozen=True, slots=True)
class NodeParameters:
    """Parameters of one Slurm node that an update can change."""

    features: frozenset[str] = frozenset()
    weight: int = USUAL_WEIGHT
    gres: str = ""
    """Counts of generic resources, in the form of `penstock.slurm.gres.text`."""
    extra: str = ""
    comment: str = ""
    """A word of the user's; the operator's comment has it among the recorded values."""

    @property
    def text(self) -> str:
        """The parameters as words of slurm.conf, in a fixed order."""
        words = (("Gres", self.gres), ("Extra", self.extra), ("Comment", self.comment))
        given = "".join(f" {key}={value}" for key, value in words if value)
        return f"Features={','.join(sorted(self.features))} Weight={self.weight}{given}"

    def on(self, node: Node, before: NodeParameters) -> NodeParameters:
        """Return the values for a node whose last ones were `before`; its other values stay.

        `gres` is empty when it does not change.
        """
        features = frozenset(node.features) - before.features | self.features
        weight = node.weight if self.weight == before.weight else self.weight
        counts = "" if self.gres == before.gres else self.gres
        return NodeParameters(features, weight, counts, self.extra, self.comment)


def read(text: str) -> NodeParameters:
    """Read the parameters of a worker set, or of a comment, that an update can change."""
    features: set[str] = set()
    weight = USUAL_WEIGHT
    resources: list[str] = []
    texts: dict[str, str] = dict.fromkeys(NOT_FOR_SLURMD, "")
    for word in text.replace("'", "").replace('"', "").split():
        key, _, value = word.partition("=")
        if key.lower() in FEATURES:
            features.update(filter(None, value.split(",")))
        elif key.lower() == WEIGHT and is_weight(value):
            weight = int(value)
        elif key.lower() == GRES:
            resources.append(value)
        elif key.lower() in texts:
            texts[key.lower()] = value
    counts = gres.text(gres.counts(",".join(resources)))
    return NodeParameters(frozenset(features), weight, counts, texts["extra"], texts["comment"])


def wanted(workers: WorkerSet, parameters: str | None = None) -> NodeParameters:
    """Return the parameters for the nodes of a set, from its spec or from a revision's."""
    found = read(workers.parameters if parameters is None else parameters)
    return replace(found, features=found.features | {workers.names.feature})


def equal_revisions(
    wanted: RecordedRevision, records: Iterable[RecordedRevision], fixed: Collection[str] = ()
) -> dict[str, str]:
    """Return, by hash, parameters of revisions from which an update alone leads to `wanted`.

    `fixed` are counts of generic resources that slurmctld rejected: they need another pod.
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
    """Return the update that a node needs now; None for none.

    Counts of resources that jobs use wait for these jobs: slurmctld would drain the node for it.

    `last` are the values that its comment records, `confs` the parameters of revisions by hash. A
    pod of an unknown revision gets no update.
    """
    own = confs.get(workers.marks.revision_of(pod.metadata.labels) or "")
    if last is None and own is None:
        return None
    after = wanted(workers)
    # slurmd does not send extra and comment.
    before = read(last) if last is not None else replace(wanted(workers, own), extra="", comment="")
    if not before.gres:
        # Comments of earlier versions do not record gres; slurmd sent it then.
        before = replace(before, gres=after.gres if own is None else read(own).gres)
    if not gres.unused(node.gres_used, node.gres, after.gres):
        after = replace(after, gres=before.gres)
    if after == before and own is not None:
        # A slurmctld that starts or is reconfigured resets the weight of its nodes to that of their
        # registration, and keeps their features. Seen with Slurm 26.05.
        registered = read(own).weight
        if node.weight == registered:
            before = replace(before, weight=registered)
    return None if after == before else ParameterChange(after.on(node, before), after)
