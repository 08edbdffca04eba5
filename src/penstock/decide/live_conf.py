"""Which parameters of a NodeSet's nodes change in Slurm itself, with no new pod: features, weight.

The rest of `extraConf` is told by slurmd when it registers, and needs another slurmd. What a node
was last given stands in its comment; what somebody gave it by hand since then is left alone.
Source: scontrol(1), "update" of nodes (AvailableFeatures, ActiveFeatures, Weight).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from penstock.api.core import ControllerRevision, Pod
from penstock.api.meta import Json
from penstock.api.slinky import names, wellknown
from penstock.api.slinky.nodeset import NodeSet
from penstock.decide.history import hash_of
from penstock.slurm.model import Node

_FEATURES = frozenset({"feature", "features"})
_WEIGHT = "weight"
USUAL_WEIGHT = 1
"""That of a node for which nobody says otherwise. Source: slurm.conf(5), Weight."""


@dataclass(frozen=True, slots=True)
class LiveConf:
    """What a node is to be called for jobs, and how readily it is taken."""

    features: frozenset[str] = frozenset()
    weight: int = USUAL_WEIGHT

    @property
    def text(self) -> str:
        """As words of slurm.conf, always the same for the same."""
        return f"Features={','.join(sorted(self.features))} Weight={self.weight}"

    def on(self, node: Node, before: LiveConf) -> LiveConf:
        """What becomes of a node that was given `before`; what it has besides stays."""
        features = frozenset(node.features) - before.features | self.features
        return LiveConf(features, node.weight if self.weight == before.weight else self.weight)


def read(text: str) -> LiveConf:
    """The words of an extraConf, or of a comment, as far as they are live."""
    features: set[str] = set()
    weight = USUAL_WEIGHT
    for word in text.replace("'", "").replace('"', "").split():
        key, _, value = word.partition("=")
        if key.lower() in _FEATURES:
            features.update(filter(None, value.split(",")))
        elif key.lower() == _WEIGHT and value.isdecimal():
            weight = int(value)
    return LiveConf(frozenset(features), weight)


def wanted(nodeset: NodeSet, extra_conf: str | None = None) -> LiveConf:
    """What the nodes of a NodeSet are given, by its own extraConf or by that of a revision."""
    found = read(nodeset.spec.extra_conf if extra_conf is None else extra_conf)
    return LiveConf(found.features | {names.partition_name(nodeset)}, found.weight)


def alike(nodeset: NodeSet, data: Json, records: Iterable[ControllerRevision]) -> dict[str, str]:
    """By hash, the extraConf of recorded revisions that differ from `data` in live words only."""
    form = _without_live_words(data)
    return {
        hash_of(nodeset, one): _extra_conf(one.data)
        for one in records
        if _without_live_words(one.data) == form
    }


def change(
    nodeset: NodeSet, pod: Pod, node: Node, last: str | None, confs: Mapping[str, str]
) -> LiveConf | None:
    """What a node is to be given now, None when it has it.

    `last` is what its comment says that it was given, `confs` the extraConf of revisions by hash. A
    pod of a revision that nobody knows is left alone.
    """
    own = confs.get(pod.metadata.labels.get(wellknown.REVISION_HASH, ""))
    if last is None and own is None:
        return None
    before = read(last) if last is not None else wanted(nodeset, own)
    after = wanted(nodeset)
    if after == before and own is not None:
        # A slurmctld that starts or is reconfigured gives its nodes the weight anew that they
        # registered with, and leaves their features. Seen with Slurm 26.05.
        registered = read(own).weight
        if node.weight == registered:
            before = replace(before, weight=registered)
    return None if after == before else after.on(node, before)


def _extra_conf(data: Json) -> str:
    spec: dict[str, Any] = data.get("spec") or {}
    return str(spec.get("extraConf") or "")


def _without_live_words(data: Json) -> Json:
    words = [word for word in _extra_conf(data).split() if not _live(word)]
    return {**data, "spec": {**(data.get("spec") or {}), "extraConf": " ".join(words)}}


def _live(word: str) -> bool:
    key, _, value = word.partition("=")
    return key.lower() in _FEATURES or (key.lower() == _WEIGHT and value.isdecimal())
