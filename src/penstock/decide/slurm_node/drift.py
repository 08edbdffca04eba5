"""Drift of Slurm nodes: features and weight that somebody changed in Slurm.

The desired values are those last written (`decide.slurm_node.parameters`). Other features are no
drift: those by which nodes belong to a Partition, those of Kubernetes nodes, and those that a
worker set gives some of its nodes only.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from penstock.api.cluster import marks
from penstock.api.kubernetes.kinds import Pod
from penstock.base.text import list_some
from penstock.decide.drift import Found
from penstock.decide.observed import node_comment
from penstock.decide.observed.pod import slurm_node_name
from penstock.decide.slurm_node import parameters
from penstock.decide.slurm_node.features import FEATURE_PREFIX
from penstock.model.worker_set import WorkerSet
from penstock.slurm import hostlist
from penstock.slurm.partition.declaration import PREFIX, Difference
from penstock.slurm.state import Node

FEATURES, WEIGHT = "Features", "Weight"
_OTHERS = (f"{PREFIX}/", FEATURE_PREFIX)
_WORD = re.compile(r"\S+")
_KEYS = {"feature": FEATURES, "features": FEATURES, "weight": WEIGHT}


@dataclass(frozen=True, slots=True)
class NodeDrift:
    """Differences by node, and the nodes that were compared."""

    found: Found = field(default_factory=dict[str, tuple[Difference, ...]])
    compared: frozenset[str] = frozenset()


def drift(
    workers: WorkerSet, pods: Iterable[Pod], nodes: Mapping[str, Node], confs: Mapping[str, str]
) -> NodeDrift:
    """Compare the nodes of pods; `confs` are the extraConf of revisions by hash.

    Nodes that are about to change are left out: without a comment of ours because slurmd has just
    registered, with an update on its way, or of a pod with another template.
    """
    declared = parameters.wanted(workers)
    wanted = (_compared(workers, declared.features), declared.weight)
    alike: dict[tuple[tuple[str, ...], int], bool] = {}
    found: dict[str, tuple[Difference, ...]] = {}
    compared: set[str] = set()
    for pod in pods:
        node = nodes.get(slurm_node_name(pod))
        if node is None or pod.metadata.deleting or _is_of_another(workers, pod, node):
            continue
        # Thousands of nodes show a handful of values.
        shown = (node.features, node.weight)
        same = alike.get(shown)
        if same is None:
            live = _compared(workers, node.features)
            same = alike[shown] = (live, node.weight) == wanted
        if same:
            compared.add(node.name)
        elif _settled(workers, pod, node, confs):
            compared.add(node.name)
            found[node.name] = _differences(workers, node, *wanted)
    return NodeDrift(found, frozenset(compared))


def describe_drift(found: Found) -> str:
    """Return the differences as text for a message; nodes with the same ones are grouped."""
    groups: defaultdict[tuple[Difference, ...], list[str]] = defaultdict(list)
    for name, differences in found.items():
        groups[differences].append(name)
    parts = [
        f"{'node' if len(many) == 1 else 'nodes'} {hostlist.compress(many)}: "
        f"{'; '.join(map(str, differences))}"
        for differences, many in sorted(groups.items(), key=lambda one: sorted(one[1]))
    ]
    return f"changed in Slurm: {list_some(parts, '; ')}"


def desired_parameters(workers: WorkerSet, node: Node) -> parameters.NodeParameters:
    """Return the parameters that revert a node's drift; features of other owners stay."""
    declared = parameters.wanted(workers)
    others = frozenset(node.features) - _compared(workers, node.features)
    return replace(declared, features=declared.features | others)


def adopted(workers: WorkerSet, drifted: NodeDrift) -> tuple[str, str]:
    """Return the extraConf that declares the values of all nodes, or why there is none."""
    kinds = set(drifted.found.values())
    if len(kinds) != 1 or drifted.compared - drifted.found.keys():
        return "", "the nodes of the set differ from each other"
    own = workers.names.feature
    words: dict[str, str] = {}
    for one in next(iter(kinds)):
        words[one.key] = one.live
        if one.key == FEATURES:
            features = set(filter(None, one.live.split(",")))
            if own not in features:
                return "", f"feature {own} is that of the {workers.kind} itself"
            words[FEATURES] = ",".join(sorted(features - {own}))
        elif one.live == str(parameters.USUAL_WEIGHT):
            words[WEIGHT] = ""
    return _with(workers.parameters, words), ""


def _is_of_another(workers: WorkerSet, pod: Pod, node: Node) -> bool:
    """Whether another operator declared a node, by a line without the worker set's feature."""
    is_adopted = marks.ADOPTED_REVISION in pod.metadata.annotations
    return is_adopted and workers.names.feature not in node.features


def _settled(workers: WorkerSet, pod: Pod, node: Node, confs: Mapping[str, str]) -> bool:
    """Return whether a node has the desired parameters and no update is on its way to it."""
    record = node_comment.read(workers.marks.comment, node.comment)
    if record is None or not node_comment.is_owned_by(record, workers):
        return False
    known = workers.marks.revision_of(pod.metadata.labels) in confs
    ours = known and record.pod == pod.metadata.name
    return ours and parameters.change(workers, pod, node, record.live, confs) is None


def _compared(workers: WorkerSet, features: Iterable[str]) -> frozenset[str]:
    own = frozenset(one for one in features if not one.startswith(_OTHERS))
    return own - workers.own_features


def _differences(
    workers: WorkerSet, node: Node, features: frozenset[str], weight: int
) -> tuple[Difference, ...]:
    found: list[Difference] = []
    if (live := _compared(workers, node.features)) != features:
        found.append(Difference(FEATURES, ",".join(sorted(live)), ",".join(sorted(features))))
    if node.weight != weight:
        found.append(Difference(WEIGHT, str(node.weight), str(weight)))
    return tuple(found)


def _with(text: str, words: Mapping[str, str]) -> str:
    """An extraConf with these values; an empty one takes the word away. The rest stays as it is."""
    left = dict(words)
    spans: list[tuple[int, int, str]] = []
    for found in _WORD.finditer(text):
        key = found[0].strip("'\"").partition("=")[0]
        known = _KEYS.get(key.lower(), "")
        if known in words:
            value = left.pop(known, "")
            spans.append((*found.span(), f"{key}={value}" if value else ""))
    for start, end, word in reversed(spans):
        before = text[:start] if word else text[:start].rstrip()
        text = before + word + text[end:]
    for key, value in left.items():
        if value:
            gap = " " if text and not text[-1].isspace() else ""
            text = f"{text}{gap}{key}={value}"
    return text
