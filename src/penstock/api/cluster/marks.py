"""Penstock's own marks on objects of any API group, under `penstock.dev`: they must never change.

They have a domain of their own, so that they are never taken for a user's.
"""

from __future__ import annotations

from typing import Final

from penstock.catalog.marks import penstock

CORDONED_FOR: Final = penstock.CORDONED_FOR.key
SAME_REVISIONS: Final = penstock.SAME_REVISIONS.key
ROLLBACK: Final = penstock.ROLLBACK.key
ROLLED_BACK: Final = penstock.ROLLED_BACK.key
DRAIN_FINALIZER: Final = penstock.DRAIN_FINALIZER.key
ASK_FINALIZER: Final = penstock.ASK_FINALIZER.key
SLURMD_FAILING: Final = penstock.SLURMD_FAILING.key
FEATURE_PREFIX: Final = "k8s/"
"""Slurm features that come from an annotation of a Kubernetes node begin with it; all others are
left alone."""
CONFIG_HASH: Final = penstock.CONFIG_HASH.key
JWKS_HASH: Final = penstock.JWKS_HASH.key
CONFIG_CANDIDATE: Final = penstock.CONFIG_CANDIDATE.key
CONFIG_LIVE: Final = penstock.CONFIG_LIVE.key
CONFIG_RESTART: Final = penstock.CONFIG_RESTART.key
CONFIG_REFUSED: Final = penstock.CONFIG_REFUSED.key
CONFIG_DELIVERED_TO: Final = penstock.CONFIG_DELIVERED_TO.key
SLURMDBD: Final = penstock.SLURMDBD.key
CONFIG_REFRESH: Final = penstock.CONFIG_REFRESH.key
SSSD_HASH: Final = penstock.SSSD_HASH.key
TRIES_CONFIG: Final = penstock.TRIES_CONFIG.key
CONTENT_HASH: Final = penstock.CONTENT_HASH.key
RECONFIGURE: Final = penstock.RECONFIGURE.key
RESTART: Final = penstock.RESTART.key
METRICS: Final = penstock.METRICS.key
KEY_RING: Final = penstock.KEY_RING.key
SLURM_KEY_HASH: Final = penstock.SLURM_KEY_HASH.key
KEYS: Final = penstock.KEYS.key
ADOPTED_TEMPLATE: Final = penstock.ADOPTED_TEMPLATE.key
ADOPTED_PODS: Final = penstock.ADOPTED_PODS.key
ADOPTED_REVISION: Final = penstock.ADOPTED_REVISION.key
MAX_DRAINED: Final = penstock.MAX_DRAINED.key
REPLACE_NODES: Final = penstock.REPLACE_NODES.key
REPLACEMENTS: Final = penstock.REPLACEMENTS.key
REPLACE: Final = "Replace"
DRIFT: Final = penstock.DRIFT.key
DRIFTS: Final = ("Report", "Revert", "Adopt")
"""Report only (the default); also revert the change; or write it into the object."""
