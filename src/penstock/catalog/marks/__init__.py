"""Annotations, labels, finalizers, taints and pod conditions, by their domain."""

from __future__ import annotations

from typing import Final

from penstock.catalog.mark import Mark
from penstock.catalog.marks import kubernetes, nebius, penstock, slinky

DOMAINS: Final[dict[str, tuple[Mark, ...]]] = {
    "Penstock": penstock.MARKS,
    "slinky.slurm.net": slinky.MARKS,
    "slurm.nebius.ai": nebius.MARKS,
    "Kubernetes and other tools": kubernetes.MARKS,
}
