"""The comment of a Slurm node: whose it is, and what the next pod of its name has to know.

slurm-operator writes the same JSON object; keys of ours come after its own.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, cast

from penstock.model.worker_marks import TRUE
from penstock.model.worker_set import WorkerSet

COMMENT_NAMESPACE = "namespace"
COMMENT_POD = "podName"
COMMENT_NODE = "node"
COMMENT_NODESET = "nodeSetName"
COMMENT_NODESET_UID = "nodeSetUID"
DRAIN = "drain"
"""Our own key: the reason of somebody else's drain, remembered while the pod lives.

The preStop hook of worker pods puts its own words in the place of any reason; this brings them
back."""
RENEW = "renew"
"""Our own key: the pod has an older template, and its record is not for the pod that comes next.

slurmctld keeps a dynamic node's record as it was first registered: a slurmd with other resources or
another GRES would be rejected or misrepresented. Source: slurm-operator issue 233, and seen."""

LIVE = "conf"
"""Our own key: the parameters that the node was last given, when its pod has others; see
`penstock.decide.slurm_node.parameters`."""

TOPOLOGY = "topology"
"""Our own key: the topology of its Kubernetes node, while Slurm has it."""


@dataclass(frozen=True, slots=True)
class NodeComment:
    """A comment of ours, read."""

    namespace: str
    pod: str
    node: str
    nodeset: str
    nodeset_uid: str
    drain: str | None = None
    """Somebody else's drain, which may be without words; None when there is none."""
    renew: bool = False
    """Whether the record goes before another pod comes."""
    live: str | None = None
    """Parameters that it was given besides those of its slurmd, in `NodeParameters.text`."""
    topology: str | None = None
    """The topology that Slurm was given; see `penstock.decide.slurm_node.topology`."""

    @property
    def text(self) -> str:
        """The comment as it is written to Slurm."""
        found = {
            COMMENT_NAMESPACE: self.namespace,
            COMMENT_POD: self.pod,
            COMMENT_NODE: self.node,
            COMMENT_NODESET: self.nodeset,
            COMMENT_NODESET_UID: self.nodeset_uid,
        }
        if self.drain is not None:
            found[DRAIN] = self.drain
        if self.renew:
            found[RENEW] = TRUE
        if self.live is not None:
            found[LIVE] = self.live
        if self.topology is not None:
            found[TOPOLOGY] = self.topology
        return json.dumps(found, separators=(",", ":"), ensure_ascii=False)


def read(comment: str) -> NodeComment | None:
    """The comment, if it is one of ours."""
    if not comment.startswith("{"):
        return None
    try:
        found = json.loads(comment)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    values = cast("dict[str, Any]", found)
    parts = [
        values.get(key, "")
        for key in (
            COMMENT_NAMESPACE,
            COMMENT_POD,
            COMMENT_NODE,
            COMMENT_NODESET,
            COMMENT_NODESET_UID,
        )
    ]
    if not all(isinstance(part, str) for part in parts) or not parts[1]:
        return None
    drained, live, place = values.get(DRAIN), values.get(LIVE), values.get(TOPOLOGY)
    return NodeComment(
        *parts,
        drain=drained if isinstance(drained, str) else None,
        renew=values.get(RENEW) == TRUE,
        live=live if isinstance(live, str) else None,
        topology=place if isinstance(place, str) else None,
    )


def is_owned_by(record: NodeComment, workers: WorkerSet) -> bool:
    """Whether a record is of exactly this object, not of a namesake before it."""
    meta = workers.metadata
    return (record.namespace, record.nodeset, record.nodeset_uid) == (
        meta.namespace,
        meta.name,
        meta.uid,
    )
