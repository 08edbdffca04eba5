"""From the placement fields of a pod template to the model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from penstock.api.kubernetes.kinds import NodeTerms
from penstock.api.kubernetes.meta import Json
from penstock.model.worker_set import Placement, Toleration


def placement(
    node_selector: Mapping[str, str] | None, affinity: Json | None, tolerations: Iterable[Json]
) -> Placement | None:
    """What a pod template requires of Kubernetes nodes; None when it cannot be read."""
    try:
        nodes: Json = (affinity or {}).get("nodeAffinity") or {}
        required: Any = nodes.get("requiredDuringSchedulingIgnoredDuringExecution")
        terms = msgspec.convert(required, NodeTerms | None)
        return Placement(
            msgspec.convert(node_selector or {}, dict[str, str]),
            (terms.node_selector_terms or ()) if terms is not None else None,
            msgspec.convert(list(tolerations), tuple[Toleration, ...]),
        )
    except msgspec.ValidationError:
        return None
