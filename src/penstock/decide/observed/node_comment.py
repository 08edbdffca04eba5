"""The comment of a Slurm node: whose it is, and what the next pod of its name has to know.

It is a JSON object. Its first keys are those of an API (`WorkerMarks.comment`), for Slinky those
that slurm-operator writes; keys of ours come after them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from penstock.decide.observed.check_comment import (
    CHECK,
    check_comment,
    values,
    with_check_comment,
)
from penstock.model.worker_marks import TRUE, CommentKeys
from penstock.model.worker_set import WorkerSet

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
    check: str | None = None
    """The comment of a check; see `penstock.decide.check.reaction`."""

    def text(self, keys: CommentKeys) -> str:
        """The comment as it is written to Slurm."""
        found = {
            keys.namespace: self.namespace,
            keys.pod: self.pod,
            keys.node: self.node,
            keys.owner: self.nodeset,
            keys.owner_uid: self.nodeset_uid,
        }
        if self.drain is not None:
            found[DRAIN] = self.drain
        if self.renew:
            found[RENEW] = TRUE
        if self.live is not None:
            found[LIVE] = self.live
        if self.topology is not None:
            found[TOPOLOGY] = self.topology
        if self.check is not None:
            found[CHECK] = self.check
        return json.dumps(found, separators=(",", ":"), ensure_ascii=False)


def read(keys: CommentKeys, comment: str) -> NodeComment | None:
    """The comment, if it is one of ours."""
    found = values(comment)
    if found is None:
        return None
    of_api = (keys.namespace, keys.pod, keys.node, keys.owner, keys.owner_uid)
    parts = [found.get(key, "") for key in of_api]
    if not all(isinstance(part, str) for part in parts) or not parts[1]:
        return None
    drained, live, place = found.get(DRAIN), found.get(LIVE), found.get(TOPOLOGY)
    return NodeComment(
        *parts,
        drain=drained if isinstance(drained, str) else None,
        renew=found.get(RENEW) == TRUE,
        live=live if isinstance(live, str) else None,
        topology=place if isinstance(place, str) else None,
        check=check_comment(comment) or None,
    )


def with_check_of(comment: str, current: str) -> str:
    """A comment of ours with the comment of a check that the node has now, or without one."""
    is_json = values(current) is not None
    return with_check_comment(comment, check_comment(current) if is_json else "")


def is_owned_by(record: NodeComment, workers: WorkerSet) -> bool:
    """Whether a record is of exactly this object, not of a namesake before it."""
    meta = workers.metadata
    return (record.namespace, record.nodeset, record.nodeset_uid) == (
        meta.namespace,
        meta.name,
        meta.uid,
    )
