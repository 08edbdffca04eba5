"""The patch that declares a recorded template of workers again.

A ControllerRevision records fields of a NodeSet's spec, or of spec.slurmNodes.worker.
"""

from __future__ import annotations

from typing import Any, Final, cast

from penstock.api.kubernetes.meta import Json
from penstock.api.nebius.nodeset import NodeSet
from penstock.api.nebius.slurmcluster import SlurmCluster
from penstock.translate.rollback_note import noted

_WORKER: Final = ("slurmNodes", "worker")


def patch(
    declared_by: NodeSet | SlurmCluster, live: Json, value: str, spec: Json | None
) -> list[Json]:
    """The JSON patch; `live` is the object's spec as the API server has it.

    `value` is noted as done. Without a `spec` nothing else changes; a field that is equal to the
    recorded one stays as it is written.
    """
    steps = noted(declared_by.metadata, value)
    if spec is None:
        return steps
    above = () if isinstance(declared_by, NodeSet) else _WORKER
    have: Any = live
    for name in above:
        have = cast("Json", have).get(name) or {}
    path = "/".join(("/spec", *above))
    for name, wanted in spec.items():
        if _bare(wanted) != _bare(have.get(name)):
            steps.append({"op": "add", "path": f"{path}/{name}", "value": wanted})
    return steps


def _bare(value: Any) -> Any:
    """For comparing: without what is empty, which means the default, at any depth of mappings."""
    if isinstance(value, dict):
        found = {key: _bare(one) for key, one in cast("Json", value).items()}
        return {key: one for key, one in found.items() if one not in (None, "", {}, [], False, 0)}
    if isinstance(value, list):
        return [_bare(one) for one in cast("list[Any]", value)]
    return value
