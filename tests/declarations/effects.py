"""Fields whose effect is in no rendered object, each with the test that shows it.

A field that is neither rendered, nor reported as not served, nor in this list is ignored in
silence, and the chains call it a finding.
"""

from __future__ import annotations

from typing import Final

from declarations.properties import Path, dotted
from declarations.values import Case

ELSEWHERE: Final[dict[str, str]] = {
    "NodeSet.spec.updateStrategy.rollingUpdate.maxUnavailable": (
        "tests/unit/decide/rollout/test_rolling_update.py"
    ),
    "NodeSet.spec.updateStrategy.scheduledUpdate": "tests/unit/decide/rollout/test_maintenance.py",
    "NodeSet.spec.updateStrategy.type": "tests/unit/decide/rollout/test_rolling_update.py",
    "NodeSet.spec.revisionHistoryLimit": "tests/unit/decide/rollout/test_revision_history.py",
    "NodeSet.spec.persistentVolumeClaimRetentionPolicy.whenDeleted": (
        "tests/unit/decide/nodeset/test_pvc.py"
    ),
    "NodeSet.spec.persistentVolumeClaimRetentionPolicy.whenScaled": (
        "tests/unit/decide/nodeset/test_pvc.py"
    ),
    "NodeSet.spec.pinToNode": "tests/unit/decide/placement/test_node_pins.py",
    "NodeSet.spec.pruneSlurmNodeRecords": "tests/unit/decide/placement/test_daemonset.py",
    "NodeSet.spec.replicas": "tests/unit/decide/nodeset/test_plan.py",
    "NodeSet.spec.minReadySeconds": "tests/unit/decide/nodeset/test_plan.py",
    "NodeSet.spec.workloadDisruptionProtection": "tests/unit/decide/nodeset/test_promises.py",
    "Accounting.spec.mungeKeyRef": "tests/unit/render/test_accounting.py",
    "Partition.spec.drift": "tests/unit/decide/partition/test_drift_message.py",
    "Partition.spec.selector": "tests/unit/render/test_partitions.py",
}
"""By kind and path, for all below it too: the file whose tests show what the field does."""

_NEWER: Final = "jwtKeyRef is given and wins"
SAME: Final[dict[str, str]] = {
    "Accounting.spec.jwtHs256KeyRef": _NEWER,
    "Accounting.spec.jwtHs256KeyRef.key": _NEWER,
    "Accounting.spec.jwtHs256KeyRef.name": _NEWER,
    "Controller.spec.inplaceReconfigure": "either way the configuration is taken over in place",
    "LoginSet.spec.controllerRef.namespace": "the own namespace by name is the own namespace",
    "NodeSet.spec.controllerRef.namespace": "the own namespace by name is the own namespace",
    "Partition.spec.controllerRef.namespace": "the own namespace by name is the own namespace",
    "Token.spec.jwtHs256KeyRef": _NEWER,
    "Token.spec.jwtHs256KeyRef.key": _NEWER,
    "Token.spec.jwtHs256KeyRef.name": _NEWER,
    "RestApi.spec.controllerRef.namespace": "the own namespace by name is the own namespace",
}
"""By kind and path: why each legal value means the same."""


def of(kind: str, path: Path) -> str | None:
    """Where or why a field has an effect that no object shows; None when it has none such."""
    name = f"{kind}.{dotted(path)}"
    above = [name, *(name[:at] for at, letter in enumerate(name) if letter in ".[")]
    return next((ELSEWHERE[one] for one in above if one in ELSEWHERE), None) or SAME.get(name)


def reported(words: str, path: Path) -> bool:
    """Whether the condition Served names a field or one above it."""
    name = dotted(path)
    rows = [part.partition(":")[0] for part in words.split("; ")]
    return any(name == row or name.startswith((f"{row}.", f"{row}[")) for row in rows)


def is_default(case: Case) -> bool:
    """Whether a value is what the field means when it is absent."""
    name = f"{case.kind}.{dotted(case.path)}"
    if name in _DEFAULTS:
        return case.value == _DEFAULTS[name]
    return case.value in (False, None, case.default)


_DEFAULTS: Final = {
    "Accounting.spec.service.spec.publishNotReadyAddresses": True,
    "Controller.spec.persistence.enabled": True,
    "Controller.spec.service.spec.publishNotReadyAddresses": True,
    "Token.spec.lifetime": "0",
}
