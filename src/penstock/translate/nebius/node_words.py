"""The words of a worker's node in slurm.conf, as `slurmd --conf` takes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from penstock.api.kubernetes.quantity import is_quantity, quantity
from penstock.api.nebius.nodeset import NodeSetSpec
from penstock.slurm.node_parameters import FEATURES

_MIB = 1 << 20
_MEMORY = "realmemory"
_NOT_OF_A_RUNNING_NODE = frozenset({"state"})
"""Keys of a NodeName line that a node that registers itself does not have."""


def node_words(
    features: Iterable[str], static: str, resources: Mapping[str, str | int | float] | None
) -> str:
    """`Key=Value` words: features, the user's own words, and the memory of the container.

    RealMemory in MiB is the memory request, rounded down, unless the user's words have it.
    """
    words = [word for word in static.split() if _key(word) not in _NOT_OF_A_RUNNING_NODE]
    every = dict.fromkeys(filter(None, (one.strip() for one in features)))
    for word in words:
        if _key(word) in FEATURES:
            every |= dict.fromkeys(filter(None, word.partition("=")[2].split(",")))
    others = [word for word in words if _key(word) not in FEATURES]
    found = [f"Features={','.join(every)}"] if every else []
    memory = (resources or {}).get("memory")
    if is_quantity(memory) and memory is not None and _MEMORY not in map(_key, others):
        found.append(f"RealMemory={int(quantity(memory) // _MIB)}")
    return " ".join((*found, *others))


def adopted_node_config(spec: NodeSetSpec, parameters: str) -> dict[str, Any]:
    """The patch of a NodeSet's spec with which its nodes get these words.

    Features go to nodeConfig.features, which has them without that of the NodeSet itself, other
    words to nodeConfig.static. The memory that follows from the container's request is no word.
    """
    words = parameters.split()
    features = [
        one
        for word in words
        if _key(word) in FEATURES
        for one in word.partition("=")[2].split(",")
        if one
    ]
    declares_memory = any(_key(word) == _MEMORY for word in spec.node_config.static.split())
    static = [
        word
        for word in words
        if _key(word) not in FEATURES and (declares_memory or _key(word) != _MEMORY)
    ]
    states = [w for w in spec.node_config.static.split() if _key(w) in _NOT_OF_A_RUNNING_NODE]
    patch: dict[str, Any] = {
        "nodeConfig": {"features": features, "static": " ".join((*static, *states))}
    }
    if spec.node_attributes is not None and spec.node_attributes.features:
        patch["nodeAttributes"] = {"features": []}
    return patch


def _key(word: str) -> str:
    return word.partition("=")[0].lower()
